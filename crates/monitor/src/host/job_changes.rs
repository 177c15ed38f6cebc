//! Hearing which jobs have changed, for a process that waits for one of them and is no monitor.

use std::collections::BTreeSet;
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::watch::StoreChanges;
use hearback_core::{JobId, LockState, Observed, Session};

use super::agenda::Agenda;
use super::closing::Closing;
use super::run::LOOK_AT_ALL_EVERY;
use crate::{Ports, reconcile};

/// Hears of changes. It hears only of what happens after it was made: make it first, and look at the jobs second.
pub struct JobChanges<'a> {
    ports: &'a Ports,
    watch: Box<dyn StoreChanges>,
    agenda: Agenda<JobId>,
    closing: Closing,
    /// Sessions that have changed, if the caller wants to know.
    sessions: Option<BTreeSet<Session>>,
    /// Whether the host may have changed, if the caller wants to know.
    host: Option<bool>,
    /// Jobs that have printed more, once one is watched for it. A log is closed when its job ends, which is an event
    /// for all.
    outputs: Option<BTreeSet<JobId>>,
}

/// What has changed.
#[derive(Debug)]
pub enum Changed {
    /// Perhaps anything: look at every job.
    Everything,
    /// These jobs, and what is seen of each now; none if it is no longer there. Empty if nothing changed in time.
    Jobs(Vec<(JobId, Result<Option<Observed>, StoreError>)>),
}

impl<'a> JobChanges<'a> {
    /// Hears by this watch.
    pub fn new(ports: &'a Ports, watch: Box<dyn StoreChanges>) -> Self {
        Self {
            ports,
            watch,
            agenda: Agenda::default(),
            closing: Closing::default(),
            sessions: None,
            host: None,
            outputs: None,
        }
    }

    /// Hears of sessions as well: a wait returns when one has changed.
    #[must_use]
    pub fn with_sessions(self) -> Self {
        Self { sessions: Some(BTreeSet::new()), ..self }
    }

    /// Hears of the host as well: a wait returns when it began, was requested to end, or has ended.
    #[must_use]
    pub fn with_host(self) -> Self {
        Self { host: Some(false), ..self }
    }

    /// The sessions that have changed since this was called last.
    pub fn take_sessions(&mut self) -> BTreeSet<Session> {
        self.sessions.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether the host may have changed since this was called last.
    pub fn take_host(&mut self) -> bool {
        self.host.as_mut().is_some_and(std::mem::take)
    }

    /// Hears when this job prints more, once: a wait returns then.
    pub fn watch_output(&mut self, id: &JobId) {
        self.outputs.get_or_insert_default();
        self.watch.watch_output(id);
    }

    /// The jobs that have printed more since this was called last.
    pub fn take_outputs(&mut self) -> BTreeSet<JobId> {
        self.outputs.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sleeps until jobs have changed that `is_wanted`, but not longer than `within`, and brings them up to date. What
    /// no event tells is found by looking at everything, as a monitor does.
    pub fn wait(&mut self, within: Duration, is_wanted: impl Fn(&JobId) -> bool) -> Changed {
        self.wait_unless(within, || false, is_wanted)
    }

    /// The same, but returns when `is_cancelled`. That is looked at whenever something wakes the watch: what cancels
    /// has to wake it as well, by [`SessionStore::wake_host`](hearback_core::port::session::SessionStore::wake_host).
    pub fn wait_unless(
        &mut self,
        within: Duration,
        is_cancelled: impl Fn() -> bool,
        is_wanted: impl Fn(&JobId) -> bool,
    ) -> Changed {
        let began = self.ports.clock.awake();
        let most = within.min(LOOK_AT_ALL_EVERY);
        loop {
            let now = self.ports.clock.awake();
            self.agenda.advance(now);
            let mut changed = Vec::new();
            while let Some(id) = self.agenda.take_next() {
                if is_wanted(&id) {
                    let seen = self.look(&id);
                    changed.push((id, seen));
                } else {
                    self.closing.forget(&id);
                }
            }
            let left = most.saturating_sub(now.saturating_sub(began));
            let has_sessions = self.sessions.as_ref().is_some_and(|sessions| !sessions.is_empty());
            let has_outputs = self.outputs.as_ref().is_some_and(|outputs| !outputs.is_empty());
            let has_news = !changed.is_empty() || has_sessions || has_outputs || self.host == Some(true);
            if has_news || (left.is_zero() && most == within) || is_cancelled() {
                return Changed::Jobs(changed);
            }
            if left.is_zero() {
                return Changed::Everything;
            }
            let changes = self.watch.wait(self.agenda.pause(now).map_or(left, |pause| pause.min(left)));
            if changes.everything {
                return Changed::Everything;
            }
            for (id, lock) in changes.closed {
                self.closing.add(id.clone(), lock);
                self.agenda.add(id);
            }
            changes.jobs.into_iter().for_each(|id| self.agenda.add(id));
            if let Some(outputs) = &mut self.outputs {
                outputs.extend(changes.outputs);
            }
            if let Some(sessions) = &mut self.sessions {
                sessions.extend(changes.sessions);
            }
            if let Some(host) = &mut self.host {
                *host |= changes.host;
            }
        }
    }

    /// Looks at a job, and again later if a process has closed one of its locks and still holds it.
    fn look(&mut self, id: &JobId) -> Result<Option<Observed>, StoreError> {
        let seen = reconcile::seen(self.ports, id);
        let ports = self.ports;
        let locks = seen.as_ref().ok().and_then(|seen| seen.as_ref()).map(|seen| seen.locks);
        let is_held = |lock| match lock {
            JobLock::Launch => locks.is_some_and(|locks| locks.launch == LockState::Held),
            JobLock::Alive => locks.is_some_and(|locks| locks.alive == LockState::Held),
            // Only these say whether a job has ended, and whether its follow-up is free again.
            JobLock::Lease(n) => is_leased(ports, id, n),
            JobLock::Keeper | JobLock::Reader | JobLock::Deliverer | JobLock::Input => false,
        };
        if let Some(pause) = self.closing.look(id, is_held) {
            self.agenda.add_at(id.clone(), self.ports.clock.awake().saturating_add(pause));
        }
        seen
    }
}

fn is_leased(ports: &Ports, id: &JobId, n: u32) -> bool {
    matches!(ports.store.lock(id, JobLock::Lease(n), LockMode::Shared, Wait::Try), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::clock::Clock as _;
    use hearback_core::port::disk::Lock;
    use hearback_core::port::record::JobFiles;
    use hearback_core::port::watch::Changes;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
    use hearback_core::{Facts, Read};
    use std::collections::VecDeque;

    /// Reports what it was told to, and then nothing, for as long as it is waited for.
    struct Script(FakeClock, VecDeque<Changes>);

    impl StoreChanges for Script {
        fn wait(&mut self, within: Duration) -> Changes {
            self.1.pop_front().unwrap_or_else(|| {
                self.0.advance(within);
                Changes::default()
            })
        }
    }

    fn world() -> (FakeStore, FakeClock, Ports) {
        let (store, clock) = (FakeStore::default(), FakeClock::default());
        let ports =
            Ports::new(store.clone(), FakeProcesses::default(), clock.clone(), FakeExecutor::default());
        (store, clock, ports)
    }

    /// A job that has ended, and whose supervisor has not released its lock yet.
    fn ending(store: &FakeStore, id: &JobId) -> Lock {
        let facts = Facts {
            spec: Read::Present(sample::spec("s")),
            begin: Read::Present(sample::begin()),
            end: Read::Present(sample::end(0)),
            ..Facts::default()
        };
        store.put(id, facts);
        store.lock(id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap().unwrap()
    }

    fn has_ended(changed: &Changed) -> Vec<bool> {
        match changed {
            Changed::Jobs(jobs) => {
                let seen = jobs.iter().map(|(_, seen)| seen.as_ref().unwrap().as_ref().unwrap());
                seen.map(|seen| seen.locks.alive == LockState::Free).collect()
            }
            Changed::Everything => panic!("{changed:?}"),
        }
    }

    #[test]
    fn output_is_news_only_to_a_caller_that_watches_it() {
        let (_, clock, ports) = world();
        let output = || Changes { outputs: [sample::id(1)].into(), ..Changes::default() };
        let script = Script(clock.clone(), [output(), output()].into());
        let (mut changes, long) = (JobChanges::new(&ports, Box::new(script)), Duration::from_secs(5));
        let before = clock.awake();
        assert!(has_ended(&changes.wait(long, |_| true)).is_empty());
        assert_eq!(clock.awake() - before, long, "it waits to the end");
        let mut changes = JobChanges::new(&ports, Box::new(Script(clock.clone(), [output()].into())));
        changes.watch_output(&sample::id(1));
        let before = clock.awake();
        assert!(has_ended(&changes.wait(long, |_| true)).is_empty());
        assert_eq!((clock.awake(), changes.take_outputs().len()), (before, 1), "it returns at once");
    }

    #[test]
    fn a_job_whose_lock_was_closed_is_looked_at_until_it_is_free() {
        let (store, clock, ports) = world();
        let id = sample::id(1);
        let alive = ending(&store, &id);
        let closed = Changes { closed: [(id, JobLock::Alive)].into(), ..Changes::default() };
        let mut changes = JobChanges::new(&ports, Box::new(Script(clock, [closed].into())));
        let long = Duration::from_secs(5);
        assert_eq!(has_ended(&changes.wait(long, |_| true)), [false]);
        drop(alive);
        assert_eq!(has_ended(&changes.wait(long, |_| true)), [true]);
        assert!(has_ended(&changes.wait(long, |_| true)).is_empty(), "nothing more is heard of it");
    }

    #[test]
    fn what_is_not_wanted_is_not_looked_at_and_a_long_wait_looks_at_everything() {
        let (store, clock, ports) = world();
        let (other, mine) = (sample::id(1), sample::id(2));
        let _alive = [ending(&store, &other), ending(&store, &mine)];
        let changed = Changes { jobs: [other.clone(), mine.clone()].into(), ..Changes::default() };
        let missed = Changes::everything();
        let mut changes = JobChanges::new(&ports, Box::new(Script(clock.clone(), [changed, missed].into())));
        let hour = Duration::from_secs(60 * 60);
        let wants = |id: &JobId| *id == mine;
        assert!(matches!(changes.wait(hour, wants), Changed::Jobs(jobs) if jobs.len() == 1));
        assert!(matches!(changes.wait(hour, wants), Changed::Everything));
        let began = ports.clock.awake();
        assert!(matches!(changes.wait(hour, wants), Changed::Everything));
        assert_eq!(ports.clock.awake() - began, LOOK_AT_ALL_EVERY);
        assert!(has_ended(&changes.wait(Duration::ZERO, wants)).is_empty());
    }
}
