//! Jobs of one session that end at about the same time are told in one turn: waiting for them, and claiming them.

use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, JobState, LockState, NotifyPolicy, Observed, SmallSort, Spec, Stamp, Timestamp};
use tracing::debug;

use super::Deliverer;
use super::claim::{LeaseRule, LeasedFollowUp};
use super::due::{Claim, Due, age_of_end};
use super::hand_over::Route;

/// Jobs that end within this time of each other are told together.
const WITHIN: Duration = Duration::from_secs(1);
/// When to look whether the others have ended. The sum is [`WITHIN`].
const LOOKS_MS: [u64; 8] = [5, 10, 20, 40, 80, 160, 320, 365];
/// The most follow-ups in one turn: more is too much for one text.
const MOST: usize = 32;

impl Deliverer<'_> {
    /// Waits until no other job of the session runs that the same turn would tell of, but not longer than a moment
    /// after the end of this one. So an owner with one job never waits.
    pub(super) fn await_company(&self, seen: &Observed, route: &Route<'_>) {
        let left = || {
            let age = age_of_end(&seen.facts, &self.ports.clock.stamp());
            WITHIN.saturating_sub(age.unwrap_or(WITHIN))
        };
        if left().is_zero() {
            return;
        }
        let mut running = self.mates(seen, route);
        for pause in LOOKS_MS.map(Duration::from_millis) {
            running.retain(|id| self.is_running(id));
            let left = left();
            if running.is_empty() || left.is_zero() {
                return;
            }
            std::thread::sleep(pause.min(left));
        }
    }

    fn is_running(&self, id: &JobId) -> bool {
        let seen = self.ports.store.observe(id).ok().flatten();
        seen.is_some_and(|seen| matches!(seen.fold().state, JobState::Starting | JobState::Running { .. }))
    }

    /// Claims what else is due for the session of a follow-up, at the same sink, in the order of the ends. The caller
    /// holds the lock of the session's turn.
    ///
    /// Best effort: what cannot be claimed is delivered on its own.
    pub(super) fn company<'a>(
        &'a self,
        first: &LeasedFollowUp<'_>,
        route: &Route<'_>,
        within: Duration,
    ) -> Vec<LeasedFollowUp<'a>> {
        if !self.goes_together(&first.seen, first.claim) {
            return Vec::new();
        }
        let mates = self.mates(&first.seen, route);
        let mut due: Vec<_> = mates.iter().filter_map(|id| self.due_mate(id, route)).collect();
        due.small_sort_by(|(a, _), (b, _)| order(a).cmp(&order(b)));
        let claim = |(seen, claim): (Observed, Claim)| {
            let leased =
                LeasedFollowUp::claim(self, &seen, claim, within, true, LeaseRule::Required, first.chance);
            leased.unwrap_or_else(|error| {
                debug!(job = %seen.id, %error, "not claimed, it goes on its own");
                None
            })
        };
        due.into_iter().filter_map(claim).take(MOST - 1).collect()
    }

    /// Whether an attempt may be made together with others. One that makes the sink fail fails with all its company, so
    /// the second half of the attempts is made alone. So is one whose turn was cut short: what does that every time is
    /// held, and its company must not be.
    fn goes_together(&self, seen: &Observed, claim: Claim) -> bool {
        let was_cut_short = seen.facts.cut_short_before(claim.n).0 > 0;
        !was_cut_short && claim.attempts_used <= self.retry.attempts_max.div_ceil(2)
    }

    /// The other open jobs that a turn for this one could tell of: same session, same sink, same directory, because the
    /// agent is run there.
    fn mates(&self, seen: &Observed, route: &Route<'_>) -> Vec<JobId> {
        let Some(spec) = seen.facts.spec.present() else { return Vec::new() };
        let is_mate = |other: &Spec| {
            other.session == spec.session
                && other.cwd == spec.cwd
                && other.notify != NotifyPolicy::Never
                && self.may_go_to(other, route.name)
        };
        let open = self.ports.store.open_jobs().unwrap_or_else(|error| {
            debug!(job = %seen.id, %error, "other jobs of the session cannot be listed");
            Vec::new()
        });
        let spec_of = |id: &JobId| self.ports.store.spec(id).ok();
        let mates = open.into_iter().filter(|id| *id != seen.id);
        mates.filter(|id| spec_of(id).is_some_and(|spec| spec.present().is_some_and(is_mate))).collect()
    }

    /// A job whose follow-up is due at this sink, or will be in a moment, and that no owner waits for.
    pub(super) fn due_mate(&self, id: &JobId, route: &Route<'_>) -> Option<(Observed, Claim)> {
        let found = || -> Result<Option<(Observed, Claim)>, StoreError> {
            let Some(seen) = self.ports.store.observe(id)? else { return Ok(None) };
            let (is_due, last_lease) = self.look(&seen)?;
            let Due::Now(claim) = (match is_due {
                // What failed together is due again a few milliseconds apart.
                Due::In(_) if last_lease == LockState::Free => {
                    self.due_at(&seen, last_lease, &in_a_moment(self.ports.clock.stamp()))
                }
                other => other,
            }) else {
                return Ok(None);
            };
            let goes_there = self.route(&seen, claim).is_some_and(|other| other.name == route.name);
            if !goes_there || !self.goes_together(&seen, claim) {
                return Ok(None);
            }
            let no_reader = self.ports.store.lock(id, JobLock::Reader, LockMode::Exclusive, Wait::Try)?;
            Ok(no_reader.map(|_| (seen, claim)))
        };
        found().unwrap_or_else(|error| {
            debug!(job = %id, %error, "not looked at, it goes on its own");
            None
        })
    }
}

/// What ended first is told first.
pub(super) fn order(seen: &Observed) -> (Option<Timestamp>, &JobId) {
    let ended = seen.facts.end.present().map(|end| end.at_ms);
    (ended, &seen.id)
}

fn in_a_moment(now: Stamp) -> Stamp {
    let moment = u64::try_from(WITHIN.as_millis()).unwrap_or(u64::MAX);
    let wall = now.wall_ms.as_millis().saturating_add_unsigned(moment);
    Stamp {
        since_boot_ms: now.since_boot_ms.saturating_add(moment),
        wall_ms: Timestamp::from_millis(wall),
        ..now
    }
}
