//! Looking at what has changed: what is due is sent out, and what is not is heard of or looked at later.

use std::collections::BTreeSet;
use std::time::Duration;

use hearback_core::port::disk::Wait;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, LockState, Session};
use tracing::{debug, info, warn};

use super::news::Task;
use super::open_job::OpenJob;
use super::run::{LOOK_AT_ALL_EVERY, Loop};
use super::work::{JobWork, SessionWork, of_job, of_session};
use crate::delivery::Turn;
use crate::{prune, reconcile};

/// After so long, what was heard meanwhile comes first: it may be a request to end.
const LOOK_FOR: Duration = Duration::from_millis(50);

impl Loop {
    /// Everything is to be looked at, and pruned if it is time.
    pub(super) fn add_all(&mut self) -> Result<(), StoreError> {
        let now = self.now();
        if self.pruning.is_due(now) {
            self.pruning.begin(now);
            // Jobs are brought up to date by this loop. A second thread that did it would hold their locks for a
            // moment, and an end under a held lock is none yet.
            self.workers.spawn(Task::Prune, |monitor| {
                say_what_was_pruned(&prune::settled(&monitor.ports, monitor.policy.retention)?);
                Ok(())
            });
        }
        let jobs: BTreeSet<_> = self.monitor.ports.store.open_jobs()?.into_iter().collect();
        self.job_pauses.retain(|id| jobs.contains(id));
        self.updates.forget_tries(None);
        jobs.into_iter().for_each(|id| self.jobs.add(id));
        let sessions: BTreeSet<_> = self.monitor.ports.sessions.sessions()?.into_iter().collect();
        self.session_pauses.retain(|session| sessions.contains(session));
        sessions.into_iter().for_each(|session| self.sessions.add(session));
        self.name_unreadable_sessions();
        Ok(())
    }

    /// Sessions whose records do not say which session they are of. Each is named once, as long as it is so.
    fn name_unreadable_sessions(&mut self) {
        let Ok(found) = self.monitor.ports.sessions.unreadable_sessions() else { return };
        let before = std::mem::take(&mut self.unreadable);
        for (folder, error) in found {
            if !before.contains(&folder) {
                warn!(folder, %error, "session cannot be read");
            }
            self.unreadable.insert(folder);
        }
    }

    /// Looks at what has to be looked at now, for a while, and tells when to look again; none if only changes matter.
    pub(super) fn look(&mut self) -> Option<Duration> {
        let began = self.now();
        self.jobs.advance(began);
        self.sessions.advance(began);
        while let Some(id) = self.deliveries.next_waiting() {
            self.look_at_job(&id);
        }
        loop {
            let (job, session) = (self.jobs.take_next(), self.sessions.take_next());
            if let Some(id) = &job {
                self.look_at_job(id);
            }
            if let Some(session) = &session {
                self.look_at_session(session);
            }
            let now = self.now();
            if (job.is_none() && session.is_none()) || now.saturating_sub(began) >= LOOK_FOR {
                return self.jobs.pause(now).into_iter().chain(self.sessions.pause(now)).min();
            }
        }
    }

    /// Does what is to be done about one job. A failure pauses this job and no other.
    fn look_at_job(&mut self, id: &JobId) {
        // It is looked at when the thread is back.
        if self.updates.has(id) || self.deliveries.has(id) {
            return;
        }
        let now = self.now();
        if let Some(left) = self.job_pauses.left(id, now) {
            return self.jobs.add_at(id.clone(), now.saturating_add(left));
        }
        match OpenJob::see(&self.monitor.ports, id) {
            Ok(Some(job)) => self.look_at_open_job(&job),
            Ok(None) => self.forget_job(id),
            Err(error) => self.fail_job(id, "job cannot be read", error),
        }
    }

    fn look_at_open_job(&mut self, job: &OpenJob) {
        if let Some(step) = job.step.filter(|step| !self.updates.has_tried(job.id(), *step)) {
            if self.updates.begin(job.id(), step) {
                let id = job.id().clone();
                self.workers.spawn(Task::Update(id.clone()), move |monitor| {
                    reconcile::job(&monitor.ports, &id).map(drop)
                });
            }
            return;
        }
        if self.options.once {
            self.leave_retries_of(job);
        }
        match of_job(&self.monitor.deliverer(), job) {
            Ok(work) => self.act_on_job(job, work),
            Err(error) => self.fail_job(job.id(), "job cannot be read", error),
        }
    }

    fn act_on_job(&mut self, job: &OpenJob, work: JobWork) {
        let id = job.id();
        if work == JobWork::Deliver {
            return self.deliver(id, job.session());
        }
        self.job_pauses.succeed(id);
        let pause = match work {
            JobWork::Rest(pause) | JobWork::AwaitAttempt(_, pause) => Some(pause),
            JobWork::Nothing | JobWork::AwaitEnd | JobWork::Deliver => None,
        };
        let again = self.closing.look(id, |lock| match lock {
            JobLock::Launch => job.seen.locks.launch == LockState::Held,
            JobLock::Alive => job.seen.locks.alive == LockState::Held,
            JobLock::Lease(n) => matches!(work, JobWork::AwaitAttempt(under_way, _) if under_way == n),
            JobLock::Keeper | JobLock::Reader | JobLock::Deliverer | JobLock::Input => false,
        });
        // Times further away than the next look at everything are found by that.
        if let Some(pause) = pause.into_iter().chain(again).min().filter(|it| *it < LOOK_AT_ALL_EVERY) {
            self.jobs.add_at(id.clone(), self.now().saturating_add(pause));
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
            if let Err(error) = self.monitor.relaunch.start_deliverer() {
                warn!(job = %job.id(), %error, "deliverer not started");
            }
        }
    }

    /// Leaves a job alone for a while. The first failure in a row is noted.
    pub(super) fn fail_job(&mut self, id: &JobId, what: &str, error: StoreError) {
        let now = self.now();
        let (pause, is_first) = self.job_pauses.fail(id.clone(), now);
        self.jobs.add_at(id.clone(), now.saturating_add(pause));
        // A job that was moved out of the way meanwhile needs nothing.
        if error.is_gone() {
            return;
        }
        if is_first {
            warn!(job = %id, %error, "{what}");
        }
        self.keep_for_the_end(error);
    }

    /// A job whose records cannot be brought up to date because the disk is full is still what it is: its owner is
    /// notified. Otherwise it is left alone.
    pub(super) fn fail_update(&mut self, id: &JobId, error: StoreError) {
        if !error.is_unwritable() {
            self.updates.forget_tries(Some(id));
            return self.fail_job(id, "job cannot be brought up to date", error);
        }
        debug!(job = %id, %error, "job cannot be brought up to date");
    }

    fn forget_job(&mut self, id: &JobId) {
        self.job_pauses.succeed(id);
        self.updates.forget_tries(Some(id));
        self.closing.forget(id);
    }

    /// Does what is to be done about the messages of one session. A failure pauses this session and no other.
    fn look_at_session(&mut self, session: &Session) {
        let now = self.now();
        if let Some(left) = self.session_pauses.left(session, now) {
            return self.sessions.add_at(session.clone(), now.saturating_add(left));
        }
        let ports = &self.monitor.ports;
        let facts = match ports.sessions.session(session) {
            Ok(facts) => facts,
            Err(error) => return self.fail_session(session, "session cannot be read", error),
        };
        let next = self.monitor.inbox().due(&facts);
        if let Err(error) = self.resume(session) {
            return self.fail_session(session, "session not continued", error);
        }
        match of_session(&next) {
            SessionWork::Nothing => self.session_pauses.succeed(session),
            SessionWork::Rest(pause) => {
                self.session_pauses.succeed(session);
                if pause < LOOK_AT_ALL_EVERY {
                    self.sessions.add_at(session.clone(), now.saturating_add(pause));
                }
            }
            SessionWork::HandOver => self.hand_over(session),
        }
    }

    /// Leaves a session alone for a while. The first failure in a row is noted.
    pub(super) fn fail_session(&mut self, session: &Session, what: &str, error: StoreError) {
        let now = self.now();
        let (pause, is_first) = self.session_pauses.fail(session.clone(), now);
        self.sessions.add_at(session.clone(), now.saturating_add(pause));
        if is_first {
            warn!(%session, %error, "{what}");
        }
        self.keep_for_the_end(error);
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
    use crate::host::news::News;
    use crate::host::pauses::AFTER_AN_ERROR;
    use crate::host::testing::{LONG, World, session};
    use crate::testing::Events;
    use hearback_core::port::disk::{Lock, LockMode};
    use hearback_core::port::record::{FactStore, Housekeeping, JobFiles};
    use hearback_core::port::session::SessionStore;
    use hearback_core::port::watch::Changes;
    use hearback_core::testing::sample;
    use hearback_core::{Durability, Extra, FORMAT, Facts, Read, ReceiptHow, Settled};

    /// Looks at everything, and tells when to look again.
    fn look_at_all(monitor: &mut Loop) -> Option<Duration> {
        monitor.add_all().unwrap();
        monitor.look()
    }

    /// Hears until everything that was sent out is back.
    fn settle(monitor: &mut Loop) {
        while !(monitor.deliveries.is_idle()
            && monitor.hand_overs.is_idle()
            && monitor.updates.is_idle()
            && monitor.pruning.is_idle())
        {
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
        look_at_all(&mut monitor);
        // None of them is heard of yet, so nothing more goes out.
        look_at_all(&mut monitor);
        settle(&mut monitor);
        let sessions: std::collections::BTreeSet<_> =
            world.sink.taken().into_iter().map(|delivery| delivery.session).collect();
        assert_eq!((world.delivered().len(), sessions.len()), (AT_ONCE, AT_ONCE));
        while world.delivered().len() < 2 * AT_ONCE + 1 {
            // Those that had to wait are not forgotten.
            monitor.look();
            settle(&mut monitor);
        }
        look_at_all(&mut monitor);
        assert!(monitor.deliveries.is_idle(), "each was delivered once");
    }

    #[test]
    fn a_failure_with_one_job_pauses_that_job_alone() {
        let world = World::new();
        let (broken, fine) = (world.ended(1, "a"), world.ended(2, "b"));
        world.store.refuse_locks(&broken);
        let mut monitor = world.stays();
        let events = Events::default();
        let look = |monitor: &mut Loop| events.of(|| look_at_all(monitor));
        assert_eq!(look(&mut monitor), Some(AFTER_AN_ERROR));
        settle(&mut monitor);
        assert_eq!(world.delivered(), [fine]);
        let notes = || events.with("cannot be read").iter().filter(|e| e.contains(broken.as_str())).count();
        assert_eq!(notes(), 1, "{events:?}");
        // It is left alone, then tried again, and not noted again.
        world.clock.advance(AFTER_AN_ERROR / 2);
        assert_eq!(look(&mut monitor), Some(AFTER_AN_ERROR / 2));
        world.clock.advance(AFTER_AN_ERROR / 2);
        assert_eq!(look(&mut monitor), Some(AFTER_AN_ERROR * 2));
        assert_eq!(notes(), 1);
    }

    /// A job that runs, and the lock of its supervisor.
    fn running(world: &World) -> (JobId, Option<Lock>) {
        let id = sample::id(1);
        let facts = Facts {
            spec: Read::Present(sample::spec("s")),
            begin: Read::Present(sample::begin()),
            ..Facts::default()
        };
        world.store.put(&id, facts);
        let alive = world.store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        (id, alive)
    }

    #[test]
    fn a_job_that_runs_costs_no_thread_and_its_end_is_found_when_its_lock_was_closed() {
        let world = World::new();
        let (id, alive) = running(&world);
        let mut monitor = world.stays();
        look_at_all(&mut monitor);
        settle(&mut monitor);
        assert_eq!(monitor.look(), None, "nothing but a change matters");
        // The file is closed first, and the lock is released a moment later.
        let closed = Changes { closed: [(id.clone(), JobLock::Alive)].into(), ..Changes::default() };
        monitor.workers.tell(News::Changed(closed));
        assert_eq!(monitor.hear(LONG), None);
        assert_eq!(monitor.look(), Some(Duration::from_millis(1)));
        assert!(monitor.updates.is_idle());
        drop(alive);
        world.clock.advance(Duration::from_millis(1));
        monitor.look();
        assert!(!monitor.updates.is_idle());
        settle(&mut monitor);
        assert!(!world.store.facts(&id).end.is_absent(), "it is recorded as lost");
    }

    #[test]
    fn a_step_that_cannot_be_done_is_left_until_the_next_look_at_everything() {
        let world = World::new();
        let (id, alive) = running(&world);
        drop(alive);
        let mut facts = world.store.facts(&id);
        let (at, copy, extra) = (sample::stamp(), Box::default(), Extra::new());
        facts.settled = Read::Present(Settled { format: FORMAT, at, facts: copy, extra });
        facts.end = Read::Present(sample::end(0));
        facts.receipt = Read::Present(sample::receipt(ReceiptHow::Delivered));
        world.store.put(&id, facts);
        // Another process uses the folder.
        let keeper = world.store.lock(&id, JobLock::Keeper, LockMode::Shared, Wait::Try).unwrap();
        let mut monitor = world.stays();
        for _ in 0..2 {
            look_at_all(&mut monitor);
            assert!(!monitor.updates.is_idle());
            settle(&mut monitor);
            assert_eq!(monitor.look(), None);
            assert!(monitor.updates.is_idle());
        }
        drop(keeper);
        look_at_all(&mut monitor);
        settle(&mut monitor);
        assert!(world.store.open_jobs().unwrap().is_empty());
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
        assert_eq!(look_at_all(&mut monitor), Some(Duration::from_secs(5)));
        assert!(monitor.deliveries.is_idle());
        // Another process makes the next attempt: its end is heard of.
        world.clock.advance(Duration::from_secs(5));
        let held = world.store.lock(&id, JobLock::Lease(1), LockMode::Exclusive, Wait::Try).unwrap();
        let mut facts = world.store.facts(&id);
        facts.results.clear();
        world.store.put(&id, facts);
        assert_eq!(monitor.look(), Some(Duration::from_secs(55)));
        assert!(monitor.deliveries.is_idle());
        let closed = Changes { closed: [(id, JobLock::Lease(1))].into(), ..Changes::default() };
        monitor.workers.tell(News::Changed(closed));
        assert_eq!(monitor.hear(LONG), None);
        assert_eq!(monitor.look(), Some(Duration::from_millis(1)));
        drop(held);
        world.clock.advance(Duration::from_millis(1));
        monitor.look();
        assert!(!monitor.deliveries.is_idle(), "the next attempt is due");
        settle(&mut monitor);
    }

    #[test]
    fn messages_are_handed_over_in_a_turn_of_their_session() {
        let world = World::new();
        for text in ["one", "two"] {
            world.store.queue(&sample::message("s", text), Durability::Process).unwrap();
        }
        let mut monitor = world.stays();
        look_at_all(&mut monitor);
        assert!(!monitor.hand_overs.is_idle());
        settle(&mut monitor);
        assert_eq!(world.sink.payloads().len(), 2);
        assert_eq!(world.store.session(&session("s")).unwrap().turns.len(), 2);
        assert_eq!(monitor.look(), None);
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
            look_at_all(monitor);
            settle(monitor);
            world.store.observe(&sample::id(n)).unwrap().is_none()
        };
        let month = Duration::from_secs(31 * 24 * 60 * 60);
        assert!(is_pruned_after(&mut monitor, 1, month), "it prunes when it begins");
        assert!(!is_pruned_after(&mut monitor, 2, Duration::from_secs(59 * 60)));
        assert!(is_pruned_after(&mut monitor, 3, Duration::from_secs(60)));
    }
}
