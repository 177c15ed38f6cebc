//! Delivering the follow-ups that no process delivers: one process for the whole store, while no monitor runs.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::watch::StoreWatch;
use hearback_core::{JobId, LockState, Observed};
use tracing::{debug, warn};

use super::due::Due;
use super::follow_ups::{Attempt, Deliverer, Turn};

/// So many attempts are made at the same time. Each may be an agent.
const AT_ONCE: usize = 8;
/// When to look again while attempts are made, or while the session is in a turn.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The longest sleep between two looks, whatever is heard.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);

/// Says that an attempt is over, even if its thread panics.
struct Report {
    job: JobId,
    /// When to try again, if no record says so.
    again: Option<Duration>,
    to: Sender<(JobId, Option<Duration>)>,
}

impl Drop for Report {
    fn drop(&mut self) {
        // The receiver is gone only when its process ends.
        let _ = self.to.send((self.job.clone(), self.again));
    }
}

impl Deliverer<'_> {
    /// Delivers every follow-up of the store that no other process delivers, a few at a time, until none is left.
    /// Sleeps between attempts. Returns early if another process does this, or if a monitor runs, which does it from
    /// then on.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn deliver_forsaken(&self, watch: &dyn StoreWatch) -> Result<(), StoreError> {
        loop {
            let lock = self.ports.sessions.lock_deliverer(LockMode::Exclusive, Wait::Try)?;
            let Some(mine) = lock else { return Ok(()) }; // The process that has it looks again after its release.
            self.deliver_while_forsaken(watch)?;
            drop(mine);
            if self.ports.is_monitored() || self.forsaken()?.is_empty() {
                return Ok(());
            }
        }
    }

    fn deliver_while_forsaken(&self, watch: &dyn StoreWatch) -> Result<(), StoreError> {
        let mut changes = watch.watch_host()?;
        let (to, reports) = mpsc::channel();
        // Attempts that are being made, and jobs that have to rest although their records do not say so.
        let mut resting: BTreeMap<JobId, Duration> = BTreeMap::new();
        thread::scope(|scope| {
            let mut out: Vec<JobId> = Vec::new();
            loop {
                let now = self.ports.clock.awake();
                resting.retain(|_, until| *until > now);
                let mut next = LOOK_AT_LEAST_EVERY;
                let forsaken = self.forsaken()?;
                for (id, pause) in forsaken.iter().filter(|(id, _)| !out.contains(id)).collect::<Vec<_>>() {
                    let rest = resting.get(id).map_or(Duration::ZERO, |until| until.saturating_sub(now));
                    let pause = rest.max(*pause);
                    if pause.is_zero() && out.len() < AT_ONCE && self.send_out(scope, id, &to) {
                        out.push(id.clone());
                    }
                    next = next.min(pause.max(LOOK_SOON));
                }
                if self.ports.is_monitored() || (forsaken.is_empty() && out.is_empty()) {
                    return Ok(());
                }
                if out.is_empty() {
                    changes.wait(next);
                    continue;
                }
                for (job, again) in heard(&reports, next.min(LOOK_AGAIN)) {
                    out.retain(|id| *id != job);
                    resting.extend(again.map(|pause| (job, self.ports.clock.awake() + pause)));
                }
            }
        })
    }

    /// Makes an attempt in a thread of its own; tells whether there is one.
    fn send_out<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        id: &JobId,
        to: &Sender<(JobId, Option<Duration>)>,
    ) -> bool {
        let mut report = Report { job: id.clone(), again: Some(LOOK_AGAIN), to: to.clone() };
        let attempt = move || {
            // A process that is in a turn may have nothing to do with follow-ups, so it is not waited for.
            report.again = match self.attempt(&report.job, Turn::Try) {
                Ok(Attempt::InTurn) => Some(LOOK_AGAIN),
                Ok(_) => None,
                Err(error) => {
                    warn!(job = %report.job, %error, "follow-up not attempted, trying again");
                    Some(self.retry.first.max(LOOK_AGAIN))
                }
            };
        };
        let started = thread::Builder::new().spawn_scoped(scope, attempt);
        started.inspect_err(|error| debug!(job = %id, %error, "no thread for an attempt")).is_ok()
    }

    /// The follow-ups that no process delivers, each with the time until its next attempt is due.
    fn forsaken(&self) -> Result<Vec<(JobId, Duration)>, StoreError> {
        let mut forsaken = Vec::new();
        for id in self.ports.store.open_jobs()? {
            match self.ports.store.observe(&id).and_then(|seen| self.due_forsaken(seen.as_ref())) {
                Ok(Some(pause)) => forsaken.push((id, pause)),
                Ok(None) => {}
                Err(error) => debug!(job = %id, %error, "follow-up cannot be looked at"),
            }
        }
        Ok(forsaken)
    }

    fn due_forsaken(&self, seen: Option<&Observed>) -> Result<Option<Duration>, StoreError> {
        let Some(seen) = seen else { return Ok(None) };
        let pause = match self.look(seen)? {
            (Due::Never, _) => return Ok(None),
            // Another process makes this attempt, and may deliver it or die at any moment.
            (Due::In(pause), LockState::Held) => pause.min(LOOK_AGAIN),
            (Due::In(pause), LockState::Free) => self.look_after(seen, pause),
            (Due::Now(_) | Due::GiveUp { .. } | Due::Expired, _) => Duration::ZERO,
        };
        Ok((!self.is_delivered_by_another(seen)?).then_some(pause))
    }

    /// Whether a process is there for this follow-up alone: its supervisor, or a deliverer that the supervisor started.
    pub(super) fn is_delivered_by_another(&self, seen: &Observed) -> Result<bool, StoreError> {
        if self.supervisor_delivers(seen)? {
            return Ok(true);
        }
        // Taken as a deliverer takes it: if there is no room for the lock, no deliverer is started.
        let lock = self.ports.store.lock(&seen.id, JobLock::Deliverer, LockMode::Exclusive, Wait::Try)?;
        Ok(lock.is_none())
    }
}

/// Something is due at once and there is no room for it.
const LOOK_SOON: Duration = Duration::from_millis(20);

/// The attempts that are over, after a wait for the first one.
fn heard(reports: &Receiver<(JobId, Option<Duration>)>, within: Duration) -> Vec<(JobId, Option<Duration>)> {
    match reports.recv_timeout(within) {
        Ok(first) => std::iter::once(first).chain(reports.try_iter()).collect(),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Vec::new(),
    }
}
