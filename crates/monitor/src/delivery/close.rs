//! Closing a delivery by hand, or because its owner has seen the end; and retrying a dead letter.

use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::{Fact, FollowUpState, JobId, JobState, Lease, Observed, Receipt, ReceiptHow};
use tracing::debug;

use crate::{Ports, reconcile};

/// The result of closing a delivery, or of retrying it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It was done.
    Done,
    /// Nothing was to do: it was already in this state.
    Already(FollowUpState),
    /// The job has not ended.
    NotEnded,
    /// There is no such job, or none that may be changed.
    NoJob,
}

/// Publishes the receipt of a job's follow-up. There is one, and the first stands.
///
/// # Errors
///
/// When the records cannot be read or written.
pub fn close(ports: &Ports, id: &JobId, how: ReceiptHow) -> Result<Closed, StoreError> {
    change(ports, id, |state| !state.is_closed(), |_| Fact::Receipt(Receipt::new(how, ports.clock.stamp())))
}

/// Makes a dead letter due again, with all of its attempts.
///
/// # Errors
///
/// When the records cannot be read or written.
pub fn start_afresh(ports: &Ports, id: &JobId) -> Result<Closed, StoreError> {
    change(
        ports,
        id,
        |state| state == FollowUpState::DeadLetter,
        |seen| Fact::Lease(seen.last_lease() + 1, Lease::at(ports.clock.stamp())),
    )
}

fn change(
    ports: &Ports,
    id: &JobId,
    applies: impl Fn(FollowUpState) -> bool,
    fact: impl Fn(&Observed) -> Fact,
) -> Result<Closed, StoreError> {
    loop {
        let Some(seen) = ports.store.observe(id)? else { return Ok(Closed::NoJob) };
        let folded = seen.fold();
        // A job that runs in another store has no end here, and is refused for that.
        if seen.hands_off(&ports.here).is_some() || matches!(folded.state, JobState::Nothing) {
            return Ok(Closed::NoJob);
        }
        if !matches!(folded.state, JobState::Ended { .. }) {
            return Ok(Closed::NotEnded);
        }
        let state = folded.follow_up.state;
        if !applies(state) {
            return Ok(Closed::Already(state));
        }
        match ports.publish(&seen, &fact(&seen)) {
            Ok(Publish::New) => {
                // Best effort: every later command completes what is left undone.
                if let Err(error) = reconcile::job(ports, id) {
                    debug!(job = %id, %error, "job not settled");
                }
                return Ok(Closed::Done);
            }
            Ok(Publish::Exists) => {}
            // Another process was quicker, and has already moved the job to history.
            Err(error) if error.is_gone() && !is_here(ports, &seen)? => continue,
            Err(error) => return Err(error),
        }
        // Another process was quicker: look again, unless its receipt cannot be read. That would never end.
        if !seen.facts.receipt.is_absent() {
            return Ok(Closed::Already(state));
        }
    }
}

/// Whether a job is still where it was seen.
fn is_here(ports: &Ports, seen: &Observed) -> Result<bool, StoreError> {
    Ok(ports.store.observe(&seen.id)?.is_some_and(|now| now.place == seen.place))
}
