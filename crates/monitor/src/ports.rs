//! The ports that decisions are carried out through.

use hearback_core::port::clock::Clock;
use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::executor::Executors;
use hearback_core::port::no_sessions::NoSessions;
use hearback_core::port::process::ProcessControl;
use hearback_core::port::record::{JobLock, RecordStore, StoreError};
use hearback_core::port::session::{SessionLock, SessionStore};
use hearback_core::{BegunBy, Fact, HandsOff, Here, JobId, JobState, LockState, Observed, Session};

/// The ports that most decisions need, side by side.
pub struct Ports {
    /// The records of all jobs.
    pub store: Box<dyn RecordStore>,
    /// The records of all sessions, and of their host.
    pub sessions: Box<dyn SessionStore>,
    /// The processes of this machine.
    pub processes: Box<dyn ProcessControl>,
    /// Where targets run.
    pub executors: Executors,
    /// The time.
    pub clock: Box<dyn Clock>,
    /// This machine and this boot. They stay the same for the life of a process.
    pub here: Here,
}

/// Whether a host serves the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// No process does.
    Absent,
    /// One does.
    Answers,
    /// Its process is paused, by a signal or a debugger: other processes deliver meanwhile.
    Stopped {
        /// Its pid.
        pid: u32,
    },
    /// Its process runs, and does not do what has been due for long: other processes deliver meanwhile.
    Silent,
}

impl Ports {
    /// Collects implementations.
    pub fn new(
        store: impl RecordStore + SessionStore + Clone + 'static,
        processes: impl ProcessControl + 'static,
        clock: impl Clock + 'static,
        executors: impl Into<Executors>,
    ) -> Self {
        Self { sessions: Box::new(store.clone()), ..Self::of_jobs(store, processes, clock, executors) }
    }

    /// Puts implementations side by side, for a store that keeps jobs alone: it has no sessions and no host.
    pub fn of_jobs(
        store: impl RecordStore + 'static,
        processes: impl ProcessControl + 'static,
        clock: impl Clock + 'static,
        executors: impl Into<Executors>,
    ) -> Self {
        let here = processes.here();
        Self {
            sessions: Box::new(NoSessions),
            store: Box::new(store),
            processes: Box::new(processes),
            executors: executors.into(),
            clock: Box::new(clock),
            here,
        }
    }

    /// Why a job must not be changed, killed or delivered from here; none if it may be.
    pub fn hands_off(&self, seen: &Observed) -> Option<HandsOff> {
        // First: of all reasons, only this one says that the job runs.
        let other_store = self.is_of_other_store(seen).then_some(HandsOff::OtherStore);
        other_store.or_else(|| seen.hands_off(&self.here))
    }

    /// Whether the supervisor of a job is alive although its lock is free. Then this is not the store that it works
    /// in, but a copy, or another process replaced the lock. Nothing here says anything about the job.
    fn is_of_other_store(&self, seen: &Observed) -> bool {
        let supervisor = match seen.facts.begin.present().map(|begin| &begin.by) {
            Some(BegunBy::Supervisor(supervisor)) => supervisor,
            _ => return false,
        };
        seen.fold().state == JobState::Orphaned && self.processes.lives_on(supervisor)
    }

    /// Publishes a fact of a job that was seen, as durably as its owner chose.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn publish(&self, seen: &Observed, fact: &Fact) -> Result<Publish, StoreError> {
        self.store.publish(&seen.id, fact, seen.durability())
    }

    /// Whether a host serves the whole store.
    ///
    /// # Errors
    ///
    /// When the lock cannot be looked at.
    pub fn host_lock(&self) -> Result<LockState, StoreError> {
        let free = self.sessions.lock_monitor(LockMode::Shared, Wait::Try)?.is_some();
        Ok(if free { LockState::Free } else { LockState::Held })
    }

    /// Whether a host serves the whole store, and whether its process is paused.
    ///
    /// # Errors
    ///
    /// When the lock or the records of the host cannot be looked at.
    pub fn host_state(&self) -> Result<HostState, StoreError> {
        if self.host_lock()? == LockState::Free {
            return Ok(HostState::Absent);
        }
        let facts = self.sessions.host()?;
        let stopped = facts.last_begin().filter(|begin| self.processes.is_stopped(&begin.process));
        Ok(stopped.map_or(HostState::Answers, |begin| HostState::Stopped { pid: begin.process.pid }))
    }

    /// Whether a host is there that delivers. One that is paused does not, and one that cannot be looked at counts as
    /// none: a delivery is claimed before it is made, so two that try do no harm.
    pub fn is_monitored(&self) -> bool {
        self.host_state().is_ok_and(|state| state == HostState::Answers)
    }

    /// Takes the turn lock of a session. A session has one turn at a time.
    ///
    /// # Errors
    ///
    /// When the lock cannot be made.
    pub fn lock_turn(&self, session: &Session, wait: Wait) -> Result<Option<Lock>, StoreError> {
        self.sessions.lock_session(session, SessionLock::Turn, LockMode::Exclusive, wait)
    }

    /// Whether a session is in a turn.
    ///
    /// # Errors
    ///
    /// When the lock cannot be looked at.
    pub fn turn_lock(&self, session: &Session) -> Result<LockState, StoreError> {
        let lock = self.sessions.lock_session(session, SessionLock::Turn, LockMode::Shared, Wait::Try)?;
        Ok(if lock.is_some() { LockState::Free } else { LockState::Held })
    }

    /// Takes a lock of a job as a shared lock, together with other processes.
    ///
    /// # Errors
    ///
    /// When the lock cannot be made.
    pub fn share(&self, id: &JobId, lock: JobLock) -> Result<Option<Lock>, StoreError> {
        // An exclusive try makes the lock file. If the try fails, the holder has made it.
        drop(self.store.lock(id, lock, LockMode::Exclusive, Wait::Try)?);
        self.store.lock(id, lock, LockMode::Shared, Wait::Block)
    }
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}
