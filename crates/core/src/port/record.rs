//! The records of jobs as three ports: their facts, their files, and the housekeeping of the whole store.
//!
//! A user that needs all three asks for [`RecordStore`], which every type that fills in the three has by itself.
//!
//! Eleven methods are required of a store: with them jobs are supervised, reconciled, archived and pruned. The others
//! have defaults, which say what a store lacks that does not fill them in: keys, readers of answers, shell scripts,
//! excerpts of the output.

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
    /// The system would not; the message names the file.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A file that should name a job does not.
    #[error("`{name}` is damaged")]
    Damaged {
        /// The file.
        name: String,
    },
    /// A fact could not be put into words.
    #[error("a fact could not be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl StoreError {
    /// Whether the disk takes nothing at all, because it is read-only or full: what it holds is true all the same.
    pub fn is_unwritable(&self) -> bool {
        use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Self::Io(error) = self else { return false };
        matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
    }

    /// A store that does not keep this.
    pub fn unsupported(what: &str) -> Self {
        let message = format!("this store does not keep {what}");
        Self::Io(std::io::Error::new(std::io::ErrorKind::Unsupported, message))
    }

    /// Whether what the call was about is no longer there.
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
    /// Held shared by an owner who waits for the end, until its receipt is there: it is not to be woken as well.
    Reader,
    /// Held by the process that makes this attempt at a delivery.
    Lease(u32),
    /// Held by the process that sees the delivery through, asleep between attempts.
    Deliverer,
}

/// Who a key belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// The job that asked.
    Ours,
    /// An earlier one.
    Taken(JobId),
}

/// The facts of jobs: publish one, and see what is there.
pub trait FactStore: Send + Sync {
    /// Publishes a fact unless there is one of its name. An end uses the room reserved for it, so its caller must
    /// hold [`JobLock::Alive`].
    fn publish(&self, id: &JobId, fact: &Fact, durability: Durability) -> Result<Publish, StoreError>;

    /// Sees one job, open or in history; nothing when there is no folder of this id.
    ///
    /// Spec and begin are read before the locks are looked at, and all other facts after that: otherwise a job that
    /// begins or ends in between looks lost.
    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError>;

    /// Flushes a spec whose launcher died before it could. By default there is nothing to flush.
    fn flush_spec(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads the spec and nothing else: all that a supervisor needs before it begins. By default observes the job.
    fn spec(&self, id: &JobId) -> Result<Read<Spec>, StoreError> {
        Ok(self.observe(id)?.map_or(Read::Absent, |seen| seen.facts.spec))
    }

    /// Reads the requests to end a job whose number is above `after`, and nothing else. By default observes the job.
    fn kills(&self, id: &JobId, after: u32) -> Result<Vec<(u32, Read<Kill>)>, StoreError> {
        let kills = self.observe(id)?.map(|seen| seen.facts.kills).unwrap_or_default();
        Ok(kills.into_iter().filter(|(n, _)| *n > after).collect())
    }

    /// Notes that a reader has the answer of a job, in history as well: nothing else follows from it. Without a name
    /// the reader is the parent, which needs this only where no follow-up is owed to it. The first time counts.
    fn acknowledge(
        &self,
        _id: &JobId,
        _reader: Option<&Reader>,
        _at: &Stamp,
        _durability: Durability,
    ) -> Result<Publish, StoreError> {
        Err(StoreError::unsupported("readers of answers"))
    }

    /// Whether a reader has the answer of a job.
    fn is_acknowledged(&self, _id: &JobId, _reader: Option<&Reader>) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Takes the lock under which a reader is handed the answer of a job; nothing when another process has it.
    fn lock_reader(&self, _id: &JobId, _reader: Option<&Reader>) -> Result<Option<Lock>, StoreError> {
        Err(StoreError::unsupported("readers of answers"))
    }
}

/// The folder of a job, and what is in it besides facts: locks, room for the end, the script, the output.
pub trait JobFiles: Send + Sync {
    /// Makes an empty folder under a fresh id.
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError>;

    /// Makes the folder of a known id, if it is not there: of a job that is launched again under its key.
    fn recreate(&self, _id: &JobId) -> Result<(), StoreError> {
        Err(StoreError::unsupported("keys"))
    }

    /// Claims a key for a job; the first one keeps it.
    fn claim_key(&self, _session: Option<&Session>, _key: &Key, _id: &JobId) -> Result<KeyClaim, StoreError> {
        Err(StoreError::unsupported("keys"))
    }

    /// Takes a lock of a job; nothing when another process has it and `wait` is [`Wait::Try`].
    fn lock(&self, id: &JobId, lock: JobLock, mode: LockMode, wait: Wait)
    -> Result<Option<Lock>, StoreError>;

    /// Where the output of a job goes.
    fn log_path(&self, id: &JobId) -> PathBuf;

    /// Where the bell of a job is.
    fn bell_path(&self, id: &JobId) -> PathBuf;

    /// Where the end of the output goes if its middle cannot be given up. By default beside the log.
    fn log_tail_path(&self, id: &JobId) -> PathBuf {
        self.log_path(id).with_added_extension("tail")
    }

    /// Where a job that has an answer may write it. By default beside the log.
    fn answer_path(&self, id: &JobId) -> PathBuf {
        self.log_path(id).with_added_extension("answer")
    }

    /// Sets room aside for the end, so that it can be recorded on a full disk. By default there is always room.
    fn reserve_end(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Writes the text of a shell command where a shell can read it.
    fn write_script(&self, _id: &JobId, _script: &Script) -> Result<PathBuf, StoreError> {
        Err(StoreError::unsupported("scripts"))
    }

    /// Adds a line to the supervisor's own log. By default the line is dropped.
    fn note(&self, _id: &JobId, _line: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// Cuts the output of a job to a budget.
    fn excerpt(&self, _seen: &Observed, _head: u64, _tail: u64) -> Result<Excerpt, StoreError> {
        Err(StoreError::unsupported("output"))
    }

    /// What a job left behind that its answer can be worked out from: at most so many bytes of each.
    fn remains(&self, _seen: &Observed, _most: u64) -> Result<Remains, StoreError> {
        Err(StoreError::unsupported("output"))
    }

    /// Watches the folder of a job; nothing when there is none any more.
    fn watch(&self, _id: &JobId) -> Result<Option<Box<dyn Watch>>, StoreError> {
        Err(StoreError::unsupported("folders that can be watched"))
    }
}

/// The store as a whole: which jobs there are, and moving and removing them.
///
/// What is to go is decided by the caller. The store only refuses what is still in use, and removes by itself nothing
/// but leftovers that can never be of use again.
pub trait Housekeeping: Send + Sync {
    /// Every open job, oldest first.
    fn open_jobs(&self) -> Result<Vec<JobId>, StoreError>;

    /// The newest `most` jobs of history, newest first.
    fn past_jobs(&self, most: usize) -> Result<Vec<JobId>, StoreError>;

    /// Moves a settled job to history; tells whether it is there now. It stays where it is while it is in use.
    fn archive(&self, id: &JobId) -> Result<bool, StoreError>;

    /// Removes a job and everything that belongs to it; tells whether it is gone now.
    fn prune(&self, id: &JobId) -> Result<bool, StoreError>;

    /// Removes a folder that never became a job; tells whether it is gone now.
    fn discard(&self, id: &JobId) -> Result<bool, StoreError>;

    /// Removes what interrupted prunes and crashed writers left behind, and sessions of which nothing is left; tells
    /// how much that was. A file that was never finished goes if it was begun before `unfinished_before`: a younger
    /// one may still be at work. By default nothing is ever left behind.
    fn tidy(&self, _unfinished_before: Timestamp) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// The records of all jobs: everything above in one bound.
pub trait RecordStore: FactStore + JobFiles + Housekeeping {}

impl<T: FactStore + JobFiles + Housekeeping + ?Sized> RecordStore for T {}
