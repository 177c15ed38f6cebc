//! The world as the monitor sees it.

use hearback_core::port::clock::Clock;
use hearback_core::port::disk::{Lock, LockMode, Wait};
use hearback_core::port::executor::Executors;
use hearback_core::port::process::ProcessControl;
use hearback_core::port::record::{JobLock, RecordStore, StoreError};
use hearback_core::port::session::{SessionLock, SessionStore};
use hearback_core::{Here, JobId, LockState, Session};

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
    /// This machine and this boot: they do not change under a process.
    pub here: Here,
}

impl Ports {
    /// Puts implementations side by side.
    pub fn new(
        store: impl RecordStore + SessionStore + Clone + 'static,
        processes: impl ProcessControl + 'static,
        clock: impl Clock + 'static,
        executors: impl Into<Executors>,
    ) -> Self {
        let here = processes.here();
        Self {
            sessions: Box::new(store.clone()),
            store: Box::new(store),
            processes: Box::new(processes),
            executors: executors.into(),
            clock: Box::new(clock),
            here,
        }
    }

    /// Takes the lock of a session's turn, of which there is one at a time.
    ///
    /// # Errors
    ///
    /// When the lock cannot be made.
    pub fn lock_turn(&self, session: &Session, wait: Wait) -> Result<Option<Lock>, StoreError> {
        self.sessions.lock_session(session, SessionLock::Turn, LockMode::Exclusive, wait)
    }

    /// Whether a monitor is the host of this store.
    ///
    /// # Errors
    ///
    /// When the lock cannot be seen.
    pub fn host_lock(&self) -> Result<LockState, StoreError> {
        let free = self.sessions.lock_monitor(LockMode::Shared, Wait::Try)?.is_some();
        Ok(if free { LockState::Free } else { LockState::Held })
    }

    /// Takes a lock of a job together with others who hold it shared.
    ///
    /// # Errors
    ///
    /// When the lock cannot be made.
    pub fn share(&self, id: &JobId, lock: JobLock) -> Result<Option<Lock>, StoreError> {
        // Taking it alone makes the lock; whoever holds it already has made it.
        drop(self.store.lock(id, lock, LockMode::Exclusive, Wait::Try)?);
        self.store.lock(id, lock, LockMode::Shared, Wait::Block)
    }
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}
