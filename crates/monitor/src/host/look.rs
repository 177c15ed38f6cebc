//! One look at the whole store: what is due is sent out, and what is not is awaited.

use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, Session};
use tracing::{debug, info, warn};

use super::news::Task;
use super::open_jobs::{OpenJob, OpenJobs};
use super::run::Loop;
use super::work::{JobWork, SessionWork, of_job, of_session};
use crate::delivery::{Turn, message_due};
use crate::prune;
use crate::wait::until_ended;

/// A monitor looks at everything at least this often, whatever it heard.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
/// How soon a launcher holds the lock of the folder that it has made.
const LAUNCH_LOCKED_WITHIN: Duration = Duration::from_millis(50);

impl Loop {
    /// Looks at everything, sends out what is due, and tells when to look again.
    pub(super) fn look(&mut self) -> Result<Duration, StoreError> {
        let now = self.now();
        if self.pruning.is_due(now) {
            say_what_was_pruned(&prune::all(&self.monitor.ports, self.monitor.policy.retention)?);
            self.pruning.done(now);
        }
        let jobs = self.look_at_jobs()?;
        Ok(jobs.min(self.look_at_sessions()?))
    }

    fn look_at_jobs(&mut self) -> Result<Duration, StoreError> {
        let open = OpenJobs::look(&self.monitor.ports)?;
        self.job_pauses.retain(|id| open.jobs.iter().any(|job| job.id() == id));
        if !self.options.once {
            self.await_launches(open.blank);
        }
        Ok(open.jobs.iter().map(|job| self.look_at_job(job)).min().unwrap_or(LOOK_AT_LEAST_EVERY))
    }

    /// Does what is to be done about one job, and tells when to look again. A failure pauses this job and no other.
    fn look_at_job(&mut self, job: &OpenJob) -> Duration {
        let now = self.now();
        if let Some(left) = self.job_pauses.left(job.id(), now) {
            return left;
        }
        if self.options.once {
            self.leave_retries_of(job);
        }
        match of_job(&self.monitor.deliverer(), job) {
            Ok(work) => self.act_on_job(job, work),
            Err(error) => {
                let is_first = self.job_pauses.fail(job.id().clone(), now);
                // A job that was moved out of the way meanwhile needs nothing.
                if !error.is_gone() {
                    if is_first {
                        warn!(job = %job.id(), %error, "job cannot be read");
                    }
                    self.keep_for_the_end(error);
                }
                self.job_pauses.left(job.id(), now).unwrap_or_default()
            }
        }
    }

    fn act_on_job(&mut self, job: &OpenJob, work: JobWork) -> Duration {
        if work != JobWork::Deliver {
            self.job_pauses.succeed(job.id());
        }
        match work {
            JobWork::Nothing => LOOK_AT_LEAST_EVERY,
            JobWork::Rest(pause) => pause.min(LOOK_AT_LEAST_EVERY),
            JobWork::AwaitEnd => {
                self.await_end(job.id());
                LOOK_AT_LEAST_EVERY
            }
            JobWork::AwaitAttempt(n, pause) => {
                self.await_attempt(job.id(), n);
                pause.min(LOOK_AT_LEAST_EVERY)
            }
            JobWork::Deliver => {
                self.deliver(job.id(), job.session());
                LOOK_AT_LEAST_EVERY
            }
        }
    }

    fn deliver(&mut self, id: &JobId, session: Option<&Session>) {
        if !self.deliveries.begin(id, session) {
            return;
        }
        let turn = if self.options.once { Turn::Try } else { Turn::Wait };
        let id = id.clone();
        self.workers.spawn(Task::Deliver(id.clone()), move |monitor| {
            // An attempt that the sink refused is recorded, and due again later.
            monitor.deliverer().attempt(&id, turn).map(drop)
        });
    }

    /// A monitor that does not stay leaves further attempts to a process of their own. Best effort.
    fn leave_retries_of(&self, job: &OpenJob) {
        if self.monitor.deliverer().needs_deliverer(&job.seen).unwrap_or(false) {
            debug!(job = %job.id(), "leaving retries to a process of their own");
            if let Err(error) = self.monitor.relaunch.start_deliverer(job.id()) {
                warn!(job = %job.id(), %error, "deliverer not started");
            }
        }
    }

    fn await_end(&mut self, id: &JobId) {
        if self.options.once || !self.sleepers.begin(id) {
            return;
        }
        let id = id.clone();
        self.workers
            .spawn(Task::AwaitJob(id.clone()), move |monitor| until_ended(&monitor.ports, &id).map(drop));
    }

    /// The process that makes this attempt leaves the next one to the monitor, and may end at any moment.
    fn await_attempt(&mut self, id: &JobId, n: u32) {
        if self.options.once || !self.sleepers.begin(id) {
            return;
        }
        let id = id.clone();
        self.workers.spawn(Task::AwaitJob(id.clone()), move |monitor| {
            monitor.ports.store.lock(&id, JobLock::Lease(n), LockMode::Shared, Wait::Block).map(drop)
        });
    }

    /// Hears of jobs that are being launched: they have a folder, and nothing in it yet that says what they are.
    fn await_launches(&mut self, blank: Vec<JobId>) {
        for id in self.sleepers.launches(blank) {
            self.workers.spawn(Task::AwaitLaunch(id.clone()), move |monitor| {
                // A launcher makes the folder, and then takes its lock.
                std::thread::sleep(LAUNCH_LOCKED_WITHIN);
                monitor.ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block).map(drop)
            });
        }
    }

    fn look_at_sessions(&mut self) -> Result<Duration, StoreError> {
        let sessions = self.monitor.ports.sessions.sessions()?;
        self.session_pauses.retain(|session| sessions.contains(session));
        Ok(sessions.iter().map(|session| self.look_at_session(session)).min().unwrap_or(LOOK_AT_LEAST_EVERY))
    }

    /// Does what is to be done about the messages of one session, and tells when to look again. A failure pauses this
    /// session and no other.
    fn look_at_session(&mut self, session: &Session) -> Duration {
        let (ports, now) = (&self.monitor.ports, self.now());
        if let Some(left) = self.session_pauses.left(session, now) {
            return left;
        }
        let facts = match ports.sessions.session(session) {
            Ok(facts) => facts,
            Err(error) => {
                let is_first = self.session_pauses.fail(session.clone(), now);
                if is_first {
                    warn!(%session, %error, "session cannot be read");
                }
                self.keep_for_the_end(error);
                return self.session_pauses.left(session, now).unwrap_or_default();
            }
        };
        match of_session(&message_due(&facts, &ports.clock.stamp(), &self.monitor.policy.retry)) {
            SessionWork::Nothing => {}
            SessionWork::Rest(pause) => return pause.min(LOOK_AT_LEAST_EVERY),
            SessionWork::HandOver => self.hand_over(session),
        }
        LOOK_AT_LEAST_EVERY
    }

    fn hand_over(&mut self, session: &Session) {
        if !self.hand_overs.begin(session) {
            return;
        }
        let wait = if self.options.once { Wait::Try } else { Wait::Block };
        let session = session.clone();
        self.workers.spawn(Task::HandOver(session.clone()), move |monitor| {
            monitor.inbox().hand_over_when_free(&session, wait).map(drop)
        });
    }

    /// A monitor that does not stay returns the first failure with one item when it is done.
    fn keep_for_the_end(&mut self, error: StoreError) {
        if self.options.once {
            self.failure.get_or_insert(error);
        }
    }
}

fn say_what_was_pruned(report: &prune::Report) {
    for (job, error) in &report.failed {
        warn!(%job, error, "job not pruned");
    }
    if !report.pruned.is_empty() || report.tidied > 0 {
        info!(jobs = report.pruned.len(), leftovers = report.tidied, "store pruned");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::deliveries::AT_ONCE;
    use crate::host::pauses::AFTER_AN_ERROR;
    use crate::host::testing::{LONG, World, session};
    use crate::testing::Events;
    use hearback_core::port::record::{FactStore, JobFiles};
    use hearback_core::port::session::SessionStore;
    use hearback_core::testing::sample;
    use hearback_core::{Durability, Extra, FORMAT, Facts, Read, Settled};

    /// Hears until everything that was sent out is back.
    fn settle(monitor: &mut Loop) {
        while !(monitor.deliveries.is_idle() && monitor.hand_overs.is_idle()) {
            assert_eq!(monitor.hear(LONG), None);
        }
    }

    #[test]
    fn one_look_sends_out_so_many_deliveries_each_to_another_session() {
        let world = World::new();
        for n in 0..AT_ONCE as u64 {
            world.ended(2 * n, &format!("s{n}"));
            world.ended(2 * n + 1, &format!("s{n}"));
        }
        world.ended(9999, "one-more");
        let mut monitor = world.stays();
        monitor.look().unwrap();
        // None of them is heard of yet, so nothing more goes out.
        monitor.look().unwrap();
        settle(&mut monitor);
        let sessions: std::collections::BTreeSet<_> =
            world.sink.taken().into_iter().map(|delivery| delivery.session).collect();
        assert_eq!((world.delivered().len(), sessions.len()), (AT_ONCE, AT_ONCE));
        while world.delivered().len() < 2 * AT_ONCE + 1 {
            monitor.look().unwrap();
            settle(&mut monitor);
        }
        monitor.look().unwrap();
        assert!(monitor.deliveries.is_idle(), "each was delivered once");
    }

    #[test]
    fn a_failure_with_one_job_pauses_that_job_alone() {
        let world = World::new();
        let (broken, fine) = (world.ended(1, "a"), world.ended(2, "b"));
        world.store.refuse_locks(&broken);
        let mut monitor = world.stays();
        let events = Events::default();
        let look = |monitor: &mut Loop| events.of(|| monitor.look().unwrap());
        assert_eq!(look(&mut monitor), AFTER_AN_ERROR);
        settle(&mut monitor);
        assert_eq!(world.delivered(), [fine]);
        let notes = || events.with("cannot be read").iter().filter(|e| e.contains(broken.as_str())).count();
        assert_eq!(notes(), 1, "{events:?}");
        // It is left alone, then tried again, and not noted again.
        world.clock.advance(AFTER_AN_ERROR / 2);
        assert_eq!(look(&mut monitor), AFTER_AN_ERROR / 2);
        world.clock.advance(AFTER_AN_ERROR / 2);
        assert_eq!(look(&mut monitor), AFTER_AN_ERROR);
        assert_eq!(notes(), 1);
    }

    #[test]
    fn a_job_that_runs_is_awaited_by_one_thread_and_its_end_is_heard_of() {
        let world = World::new();
        let id = sample::id(1);
        let facts = Facts {
            spec: Read::Present(sample::spec("s")),
            begin: Read::Present(sample::begin()),
            ..Facts::default()
        };
        world.store.put(&id, facts);
        let alive = world.store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        let mut monitor = world.stays();
        for _ in 0..2 {
            assert_eq!(monitor.look().unwrap(), LOOK_AT_LEAST_EVERY);
        }
        assert!(!monitor.sleepers.begin(&id), "it is awaited");
        drop(alive);
        // The thread finds it lost, and records that.
        while !monitor.sleepers.begin(&id) {
            assert_eq!(monitor.hear(LONG), None);
        }
        assert!(!world.store.facts(&id).end.is_absent());
    }

    #[test]
    fn what_is_not_due_is_looked_at_when_it_is() {
        let world = World::new();
        let id = world.ended(1, "s");
        let mut facts = world.store.facts(&id);
        facts.leases.push((1, Read::Present(sample::lease())));
        facts.results.push((1, Read::Present(sample::lease_result(false))));
        world.store.put(&id, facts);
        let mut monitor = world.stays();
        assert_eq!(monitor.look().unwrap(), Duration::from_secs(5));
        assert!(monitor.deliveries.is_idle());
        // Another process makes the next attempt: its end is awaited.
        world.clock.advance(Duration::from_secs(5));
        let held = world.store.lock(&id, JobLock::Lease(1), LockMode::Exclusive, Wait::Try).unwrap();
        let mut facts = world.store.facts(&id);
        facts.results.clear();
        world.store.put(&id, facts);
        assert_eq!(monitor.look().unwrap(), Duration::from_secs(55));
        assert!(!monitor.sleepers.begin(&id));
        drop(held);
        while !monitor.sleepers.begin(&id) {
            assert_eq!(monitor.hear(LONG), None);
        }
    }

    #[test]
    fn messages_are_handed_over_in_a_turn_of_their_session() {
        let world = World::new();
        for text in ["one", "two"] {
            world.store.queue(&sample::message("s", text), Durability::Process).unwrap();
        }
        let mut monitor = world.stays();
        monitor.look().unwrap();
        assert!(!monitor.hand_overs.is_idle());
        settle(&mut monitor);
        assert_eq!(world.sink.payloads().len(), 2);
        assert_eq!(world.store.session(&session("s")).unwrap().turns.len(), 2);
        assert_eq!(monitor.look().unwrap(), LOOK_AT_LEAST_EVERY);
    }

    #[test]
    fn a_look_prunes_once_an_hour() {
        let world = World::new();
        let mut monitor = world.stays();
        let is_pruned_after = |monitor: &mut Loop, n: u64, pause: Duration| {
            // Settled long ago, and kept until the next prune.
            let (at, facts, extra) = (sample::stamp(), Box::default(), Extra::new());
            let settled = Settled { format: FORMAT, at, facts, extra };
            let facts = Facts {
                settled: Read::Present(settled),
                spec: Read::Present(sample::unowned(&sample::id(n))),
                begin: Read::Present(sample::begin()),
                end: Read::Present(sample::end(0)),
                ..Facts::default()
            };
            world.store.put(&sample::id(n), facts);
            world.clock.advance(pause);
            monitor.look().unwrap();
            world.store.observe(&sample::id(n)).unwrap().is_none()
        };
        let month = Duration::from_secs(31 * 24 * 60 * 60);
        assert!(is_pruned_after(&mut monitor, 1, month), "it prunes when it begins");
        assert!(!is_pruned_after(&mut monitor, 2, Duration::from_secs(59 * 60)));
        assert!(is_pruned_after(&mut monitor, 3, Duration::from_secs(60)));
    }
}
