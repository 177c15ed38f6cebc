//! The records of jobs as three ports: their facts, their files, and the housekeeping of the whole store.
//!
//! Code that needs all three uses [`RecordStore`], which every type that implements the three implements, too.

use std::path::PathBuf;

use super::disk::{Lock, LockMode, Publish, Wait, Watch};
use super::executor::Script;
use crate::message::Excerpt;
use crate::{
    Durability, Fact, JobId, Key, Kill, Observed, Read, Reader, Remains, Session, Spec, Stamp, Timestamp,
};

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store belongs to another user, or other users may write it.
    #[error("the store is not safe to use")]
    Unsafe(#[source] std::io::Error),
    /// The system refused. The message names the file.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A file that should name a job does not.
    #[error("`{name}` is damaged")]
    Damaged {
        /// The file.
        name: String,
    },
    /// A fact could not be serialized.
    #[error("a fact could not be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl StoreError {
    /// Whether nothing can be written, because the disk is read-only or full. What is on it is still true.
    pub fn is_unwritable(&self) -> bool {
        use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Self::Io(error) = self else { return false };
        matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
    }

    /// Whether the file or folder of the call does not exist any more.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
    }
}

/// The locks of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobLock {
    /// Held by the launcher from before `spec` until the supervisor has answered.
    Launch,
    /// Held by the supervisor until `end` is durable.
    Alive,
    /// Held shared by a process that still writes or delivers; moving and pruning need it exclusively.
    Keeper,
    /// Held shared by an owner that waits for the end, until its receipt is published: it needs no notification.
    Reader,
    /// Held by the process that makes this attempt at a delivery.
    Lease(u32),
    /// Held by the process that makes all attempts at the delivery, also while it sleeps between them.
    Deliverer,
}

/// The result of claiming a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// The key now names the given job.
    Ours,
    /// The key already names this job.
    Taken(JobId),
}

/// The facts of jobs: publishing and reading them.
pub trait FactStore: Send + Sync {
    /// Publishes a fact, unless its name is taken. An end uses the room reserved for it, so its caller must hold
    /// [`JobLock::Alive`].
    fn publish(&self, id: &JobId, fact: &Fact, durability: Durability) -> Result<Publish, StoreError>;

    /// Flushes a spec whose launcher died before it flushed it.
    fn flush_spec(&self, id: &JobId) -> Result<(), StoreError>;

    /// Reads only the spec, which is all that a supervisor needs before it begins.
    fn spec(&self, id: &JobId) -> Result<Read<Spec>, StoreError>;

    /// Reads only the kill requests of a job whose number is above `after`.
    fn kills(&self, id: &JobId, after: u32) -> Result<Vec<(u32, Read<Kill>)>, StoreError>;

    /// Observes one job, open or in history; none if there is no folder of this id.
    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError>;

    /// Records that a reader has the answer of a job, in history as well. Without a name the reader is the parent,
    /// which needs this only if no notification is wanted. The first record stands.
    fn acknowledge(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
        at: &Stamp,
        durability: Durability,
    ) -> Result<Publish, StoreError>;

    /// Whether a reader has the answer of a job.
    fn is_acknowledged(&self, id: &JobId, reader: Option<&Reader>) -> Result<bool, StoreError>;

    /// Takes the lock under which a reader gets the answer of a job; none if another process has it.
    fn lock_reader(&self, id: &JobId, reader: Option<&Reader>) -> Result<Option<Lock>, StoreError>;
}

/// The folder of a job, and what is in it besides facts: locks, room for the end, the script, the output.
pub trait JobFiles: Send + Sync {
    /// Makes an empty folder under a fresh id.
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError>;

    /// Makes the folder of a known id, if it does not exist.
    fn recreate(&self, id: &JobId) -> Result<(), StoreError>;

    /// Claims a key for a job. The first claim stands.
    fn claim_key(&self, session: Option<&Session>, key: &Key, id: &JobId) -> Result<KeyClaim, StoreError>;

    /// Takes a lock of a job; none if another process has it and `wait` is [`Wait::Try`].
    fn lock(&self, id: &JobId, lock: JobLock, mode: LockMode, wait: Wait)
    -> Result<Option<Lock>, StoreError>;

    /// Reserves room for the end, so that it can be recorded on a full disk.
    fn reserve_end(&self, id: &JobId) -> Result<(), StoreError>;

    /// Writes the text of a shell command into a file.
    fn write_script(&self, id: &JobId, script: &Script) -> Result<PathBuf, StoreError>;

    /// Where the output of a job goes.
    fn log_path(&self, id: &JobId) -> PathBuf;

    /// Where the end of the output goes if the file system cannot free the middle of a file.
    fn log_tail_path(&self, id: &JobId) -> PathBuf;

    /// The file into which a prompt job may write its answer.
    fn answer_path(&self, id: &JobId) -> PathBuf;

    /// Where the bell of a job is.
    fn bell_path(&self, id: &JobId) -> PathBuf;

    /// Cuts the output of a job to a budget.
    fn excerpt(&self, seen: &Observed, head: u64, tail: u64) -> Result<Excerpt, StoreError>;

    /// The files of a job from which its answer is worked out: at most `most` bytes of each.
    fn remains(&self, seen: &Observed, most: u64) -> Result<Remains, StoreError>;

    /// Watches the folder of a job; none if it does not exist any more.
    fn watch(&self, id: &JobId) -> Result<Option<Box<dyn Watch>>, StoreError>;
}

/// The store as a whole: which jobs there are, and moving and removing them.
///
/// The caller decides what is moved or removed. The store refuses if a process still uses it. By itself it removes only
/// leftovers that no process can need again.
pub trait Housekeeping: Send + Sync {
    /// Every open job, oldest first.
    fn open_jobs(&self) -> Result<Vec<JobId>, StoreError>;

    /// The newest `most` jobs of history, newest first.
    fn past_jobs(&self, most: usize) -> Result<Vec<JobId>, StoreError>;

    /// Moves a settled job to history; returns whether it is there now. It stays where it is while a process uses it.
    fn archive(&self, id: &JobId) -> Result<bool, StoreError>;

    /// Removes a job and everything that belongs to it; returns whether it is gone now.
    fn prune(&self, id: &JobId) -> Result<bool, StoreError>;

    /// Removes a folder that never became a job; returns whether it is gone now.
    fn discard(&self, id: &JobId) -> Result<bool, StoreError>;

    /// Removes what interrupted prunes and crashed writers left behind, and sessions without facts; returns how many
    /// leftovers there were. An unfinished file is removed if it was begun before `unfinished_before`: a process may
    /// still write a younger one.
    fn tidy(&self, unfinished_before: Timestamp) -> Result<usize, StoreError>;
}

/// The records of all jobs: the three traits in one bound.
pub trait RecordStore: FactStore + JobFiles + Housekeeping {}

impl<T: FactStore + JobFiles + Housekeeping + ?Sized> RecordStore for T {}
