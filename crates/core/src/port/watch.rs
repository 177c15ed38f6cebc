//! Watching a store as a port: a monitor, or a process that waits, sleeps until something changes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::disk::Watch;
use super::record::{JobLock, StoreError};
use crate::{JobId, Session};

/// Watches a store.
///
/// A watch reports only what happens after it was made, so make it first and look at the store second.
pub trait StoreWatch: Send + Sync {
    /// Watches everything that a monitor has to know of. A store that cannot be written is watched as it is.
    ///
    /// # Errors
    ///
    /// When the store cannot be watched in any way.
    fn watch_all(&self) -> Result<Box<dyn StoreChanges>, StoreError>;

    /// Watches for requests to the host, and for its answers.
    ///
    /// # Errors
    ///
    /// When the system has no more watches to give.
    fn watch_host(&self) -> Result<Box<dyn Watch>, StoreError>;
}

/// Hears of changes in a store.
pub trait StoreChanges: Send {
    /// Sleeps until something changes, but not longer than `within`, and returns all that has changed. May return
    /// early.
    fn wait(&mut self, within: Duration) -> Changes;

    /// Reports when this job prints more, once.
    fn watch_output(&mut self, _id: &JobId) {}

    /// Why it looks from time to time although this system can report changes; told once each time that it begins to.
    fn problem(&mut self) -> Option<std::io::Error> {
        None
    }
}

/// What has changed in a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Jobs with a new fact, and jobs that are new or no longer open.
    pub jobs: BTreeSet<JobId>,
    /// Locks whose file was closed by a process that may have held them. Such a process may hold the lock for another
    /// moment.
    pub closed: BTreeSet<(JobId, JobLock)>,
    /// Sessions with a new fact, or whose turn has let go of its lock.
    pub sessions: BTreeSet<Session>,
    /// Jobs that have printed more, among those that [`StoreChanges::watch_output`] names.
    pub outputs: BTreeSet<JobId>,
    /// Whether there may be a new request to the host, or news of one.
    pub host: bool,
    /// Whether anything may have changed.
    pub everything: bool,
}

impl Changes {
    /// Anything may have changed.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
