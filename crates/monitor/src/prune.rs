//! Removing settled jobs after retention, oldest first; never an open job.

use std::time::Duration;

use hearback_core::port::disk::Wait;
use hearback_core::port::record::StoreError;
use hearback_core::session::{MessageFacts, SessionFacts};
use hearback_core::{HandsOff, Here, JobId, JobState, Observed, Place, SmallSort, Stamp};
use tracing::{debug, warn};

use crate::{Ports, reconcile};

/// An unfinished file that is older than this belongs to a writer that died: writing takes moments.
const UNFINISHED: Duration = Duration::from_secs(60 * 60);

/// How long settled jobs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Not longer than this after they were settled.
    pub max_age: Duration,
    /// And not more than this many.
    pub max_jobs: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(30 * 24 * 60 * 60), max_jobs: 10_000 }
    }
}

/// Decides which settled jobs go, oldest first.
pub fn plan(settled: &[(JobId, Stamp)], retention: Retention, now: &Stamp) -> Vec<JobId> {
    let mut by_age: Vec<_> = settled.iter().map(|(id, at)| (at.age_ms(now), id)).collect();
    by_age.small_sort();
    let max_age_ms = u64::try_from(retention.max_age.as_millis()).unwrap_or(u64::MAX);
    let kept = by_age.iter().take(retention.max_jobs).take_while(|(age, _)| *age <= max_age_ms).count();
    by_age[kept..].iter().rev().map(|(_, id)| (*id).clone()).collect()
}

/// The jobs that would go now.
///
/// # Errors
///
/// When history cannot be listed.
pub fn plan_all(ports: &Ports, retention: Retention) -> Result<Vec<JobId>, StoreError> {
    let mut settled = Vec::new();
    // On a full disk, a job that has ended may be stuck among the open ones. Pruning is to free that disk.
    let open = ports.store.open_jobs()?;
    for id in ports.store.past_jobs(usize::MAX)?.into_iter().chain(open) {
        // A job that cannot be read is kept: a person may want to look at it.
        let seen = ports.store.observe(&id).ok().flatten();
        settled.extend(seen.and_then(|seen| Some((id, settled_at(&seen, &ports.here)?))));
    }
    Ok(plan(&settled, retention, &ports.clock.stamp()))
}

fn settled_at(seen: &Observed, here: &Here) -> Option<Stamp> {
    match seen.hands_off(here) {
        // Settled jobs of another machine, in a copy of its store, take room here and go like any other.
        None | Some(HandsOff::OtherMachine) => {}
        Some(HandsOff::Newer | HandsOff::OtherStore) => return None,
    }
    let folded = seen.fold();
    let has_ended = seen.place == Place::History || matches!(folded.state, JobState::Ended { .. });
    // A damaged record may leave something pending. A person has to look at it first.
    if !has_ended || !folded.follow_up.state.is_closed() {
        return None;
    }
    // The settled fact is not flushed. After a power cut, the end still has a time.
    let ended = || Some(Stamp { wall_ms: seen.facts.end.present()?.at_ms, boot: None, since_boot_ms: 0 });
    // An abandoned job has no end, and a power cut may have lost its begin and settled facts: then the launch time
    // counts. A job whose end cannot be read is kept, for a person to look at.
    let launched = || {
        let spec = seen.facts.spec.present().filter(|_| seen.facts.end.is_absent())?;
        Some(Stamp { wall_ms: spec.launched_at_ms, boot: None, since_boot_ms: 0 })
    };
    folded.settled.cloned().or_else(ended).or_else(launched)
}

/// Removes sessions that were silent for too long. Best effort: the next prune does the rest.
fn forget_sessions(ports: &Ports, retention: Retention) {
    for session in ports.sessions.sessions().unwrap_or_default() {
        // A session is kept while another process holds its turn lock.
        let Ok(Some(_turn)) = ports.lock_turn(&session, Wait::Try) else { continue };
        let facts = ports.sessions.session(&session);
        if facts.is_ok_and(|facts| is_silent(&facts, retention, &ports.clock.stamp())) {
            match ports.sessions.forget(&session, 0) {
                Ok(()) => debug!(%session, "session forgotten"),
                Err(error) => warn!(%session, %error, "session not forgotten"),
            }
        }
    }
}

/// Whether no message waits for a session, and nothing has happened in it for longer than jobs are kept.
fn is_silent(facts: &SessionFacts, retention: Retention, now: &Stamp) -> bool {
    let is_old = |at: &Stamp| Duration::from_millis(at.age_ms(now)) > retention.max_age;
    let turns =
        facts.turns.iter().all(|(_, turn)| turn.begin.present().is_some_and(|begin| is_old(&begin.at)));
    let taken = |message: &MessageFacts| message.receipt.present().is_some_and(|receipt| is_old(&receipt.at));
    turns && facts.messages.iter().all(|(_, message)| taken(message))
}

/// What a prune did.
#[derive(Debug, Default)]
pub struct Report {
    /// Jobs that were removed.
    pub pruned: Vec<JobId>,
    /// Jobs that could not be removed, and why.
    pub failed: Vec<(JobId, String)>,
    /// How many leftovers of crashes were removed.
    pub tidied: usize,
}

/// Brings every open job up to date, and then removes what is to go; see [`settled`].
///
/// # Errors
///
/// When history cannot be listed.
pub fn all(ports: &Ports, retention: Retention) -> Result<Report, StoreError> {
    // Jobs that have ended since the last look count as well.
    if let Err(error) = reconcile::all(ports) {
        warn!(%error, "open jobs cannot be listed");
    }
    settled(ports, retention)
}

/// Removes the planned jobs, and what crashes left behind. A job that cannot be removed does not stop the others.
///
/// # Errors
///
/// When history cannot be listed.
pub fn settled(ports: &Ports, retention: Retention) -> Result<Report, StoreError> {
    let mut report = Report::default();
    for id in plan_all(ports, retention)? {
        match ports.store.prune(&id) {
            Ok(true) => report.pruned.push(id),
            Ok(false) => report.failed.push((id, "another process still uses it".into())),
            Err(error) => report.failed.push((id, error.to_string())),
        }
    }
    forget_sessions(ports, retention);
    // Best effort as well: the next prune tries again.
    report.tidied = ports.processes.end_unbegun().unwrap_or(0);
    report.tidied += ports.store.tidy(ports.clock.wall().before(UNFINISHED))?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::clock::Clock;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};

    fn settlement(clock: &FakeClock, n: u64) -> (JobId, Stamp) {
        (sample::id(n), clock.stamp())
    }

    #[test]
    fn scenario_42_the_oldest_settlements_go_first_and_age_counts_from_settlement() {
        let clock = FakeClock::default();
        // The first was launched last: what counts is when it was settled.
        let mut jobs = vec![settlement(&clock, 999)];
        for n in 1..200 {
            clock.advance(Duration::from_secs(60));
            jobs.push(settlement(&clock, n));
        }
        let keep = Retention { max_jobs: 64, ..Retention::default() };
        let gone = plan(&jobs, keep, &clock.stamp());
        assert_eq!(gone.len(), 200 - 64);
        assert_eq!(gone.first(), Some(&sample::id(999)));
        assert!(gone.iter().all(|id| *id == sample::id(999) || *id < sample::id(136)));

        let by_age = Retention { max_age: Duration::from_secs(600), ..Retention::default() };
        assert_eq!(plan(&jobs, by_age, &clock.stamp()).len(), 200 - 11);
        assert!(plan(&jobs, Retention::default(), &clock.stamp()).is_empty());
    }

    #[test]
    fn a_wall_clock_that_jumps_prunes_nothing() {
        let clock = FakeClock::default();
        let jobs = [settlement(&clock, 1)];
        for jump in [365, -365, 20 * 365] {
            clock.step_wall(jump * 24 * 60 * 60 * 1000);
            assert!(plan(&jobs, Retention::default(), &clock.stamp()).is_empty());
        }
    }

    #[test]
    fn a_file_that_a_process_may_still_finish_is_left_alone() {
        let (store, clock) = (FakeStore::default(), FakeClock::default());
        let ports =
            Ports::new(store.clone(), FakeProcesses::default(), clock.clone(), FakeExecutor::default());
        all(&ports, Retention::default()).unwrap();
        let age = clock.wall().millis_since(store.tidied_before().unwrap());
        assert_eq!(Duration::from_millis(age), Duration::from_secs(60 * 60));
    }
}
