//! The records of jobs as three ports: their facts, their files, and the housekeeping of the whole store.
//!
//! Code that needs all three uses [`RecordStore`], which every type that implements the three implements, too.
//!
//! A store must have eleven methods: with them jobs are supervised, reconciled, archived and pruned. The others have
//! defaults, for a store without keys, readers of answers, shell scripts or excerpts of the output.

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

    /// A store that does not keep this.
    pub fn unsupported(what: &str) -> Self {
        let message = format!("this store does not keep {what}");
        Self::Io(std::io::Error::new(std::io::ErrorKind::Unsupported, message))
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
    /// Held by the process that writes to the input, so that what two processes write is not mixed.
    Input,
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
    /// [`JobLock::Alive`]. A kill request uses the room reserved for it if there is no other.
    fn publish(&self, id: &JobId, fact: &Fact, durability: Durability) -> Result<Publish, StoreError>;

    /// Observes one job, open or in history; none if there is no folder of this id.
    ///
    /// Reads spec and begin, then looks at the locks, then reads all other facts: otherwise a job that begins or ends
    /// in between looks lost.
    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError>;

    /// Flushes a spec whose launcher died before it flushed it. By default there is nothing to flush.
    fn flush_spec(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Reads only the spec, which is all that a supervisor needs before it begins. By default observes the job.
    fn spec(&self, id: &JobId) -> Result<Read<Spec>, StoreError> {
        Ok(self.observe(id)?.map_or(Read::Absent, |seen| seen.facts.spec))
    }

    /// Reads only the kill requests of a job whose number is above `after`. By default observes the job.
    fn kills(&self, id: &JobId, after: u32) -> Result<Vec<(u32, Read<Kill>)>, StoreError> {
        let kills = self.observe(id)?.map(|seen| seen.facts.kills).unwrap_or_default();
        Ok(kills.into_iter().filter(|(n, _)| *n > after).collect())
    }

    /// Records that a reader has the answer of a job, in history as well. Without a name the reader is the parent,
    /// which needs this only if no notification is wanted. The first record stands.
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

    /// Takes the lock under which a reader gets the answer of a job; none if another process has it.
    fn lock_reader(&self, _id: &JobId, _reader: Option<&Reader>) -> Result<Option<Lock>, StoreError> {
        Err(StoreError::unsupported("readers of answers"))
    }
}

/// The folder of a job, and what is in it besides facts: locks, room for the end, the script, the output.
pub trait JobFiles: Send + Sync {
    /// Makes an empty folder under a fresh id.
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError>;

    /// Makes the folder of a known id, if it does not exist: for a job that is launched again under its key.
    fn recreate(&self, _id: &JobId) -> Result<(), StoreError> {
        Err(StoreError::unsupported("keys"))
    }

    /// Claims a key for a job. The first claim stands.
    fn claim_key(&self, _session: Option<&Session>, _key: &Key, _id: &JobId) -> Result<KeyClaim, StoreError> {
        Err(StoreError::unsupported("keys"))
    }

    /// The job that a key names, if it names one.
    fn job_of_key(&self, _session: Option<&Session>, _key: &Key) -> Result<Option<JobId>, StoreError> {
        Ok(None)
    }

    /// Takes a lock of a job; none if another process has it and `wait` is [`Wait::Try`].
    fn lock(&self, id: &JobId, lock: JobLock, mode: LockMode, wait: Wait)
    -> Result<Option<Lock>, StoreError>;

    /// The pid of a process that holds a lock of a job, to be shown; none where the system does not tell.
    fn lock_holder(&self, _id: &JobId, _lock: JobLock) -> Option<u32> {
        None
    }

    /// Where the output of a job goes.
    fn log_path(&self, id: &JobId) -> PathBuf;

    /// Gives the log of a job a name that stays when the job moves to the history. By default no log moves.
    ///
    /// # Errors
    ///
    /// Where the file system has no such names: then the path of the log changes once.
    fn share_log(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    /// The path of the log for other programs: the name that stays, if there is one.
    fn shared_log_path(&self, id: &JobId) -> PathBuf {
        self.log_path(id)
    }

    /// The file that exists once the follow-up of a job is closed; none if receipts are no files.
    fn receipt_path(&self, _id: &JobId) -> Option<PathBuf> {
        None
    }

    /// Where the bell of a job is.
    fn bell_path(&self, id: &JobId) -> PathBuf;

    /// Where other processes hand input to a job. By default beside the bell.
    fn input_path(&self, id: &JobId) -> PathBuf {
        self.bell_path(id).with_file_name("input")
    }

    /// Removes the name of the input of a job: no other process writes to it any more, and when its supervisor looks,
    /// the target sees the end. Safe to repeat.
    fn end_input(&self, _id: &JobId) -> Result<(), StoreError> {
        Err(StoreError::unsupported("input"))
    }

    /// Where the end of the output goes if the file system cannot free the middle of a file. By default beside the log.
    fn log_tail_path(&self, id: &JobId) -> PathBuf {
        self.log_path(id).with_added_extension("tail")
    }

    /// Where samples of what a job uses go. By default beside the log.
    fn samples_path(&self, id: &JobId) -> PathBuf {
        self.log_path(id).with_added_extension("samples")
    }

    /// The file into which a prompt job may write its answer. By default beside the log.
    fn answer_path(&self, id: &JobId) -> PathBuf {
        self.log_path(id).with_added_extension("answer")
    }

    /// Reserves room for the end and for a kill request, so that both can be recorded on a full disk. By default there
    /// is always room.
    fn reserve(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Writes the text of a shell command into a file.
    fn write_script(&self, _id: &JobId, _script: &Script) -> Result<PathBuf, StoreError> {
        Err(StoreError::unsupported("scripts"))
    }

    /// Removes the text of a shell command, which a job that has ended does not need. By default there is none.
    fn remove_script(&self, _id: &JobId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Cuts the output of a job to a budget.
    fn excerpt(&self, _seen: &Observed, _head: u64, _tail: u64) -> Result<Excerpt, StoreError> {
        Err(StoreError::unsupported("output"))
    }

    /// The files of a job from which its answer is worked out: at most `most` bytes of each.
    fn remains(&self, _seen: &Observed, _most: u64) -> Result<Remains, StoreError> {
        Err(StoreError::unsupported("output"))
    }

    /// Watches the folder of a job; none if it does not exist any more.
    fn watch(&self, _id: &JobId) -> Result<Option<Box<dyn Watch>>, StoreError> {
        Err(StoreError::unsupported("folders that can be watched"))
    }
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
    /// still write a younger one. By default nothing is ever left behind.
    fn tidy(&self, _unfinished_before: Timestamp) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// The records of all jobs: the three traits in one bound.
pub trait RecordStore: FactStore + JobFiles + Housekeeping {}

impl<T: FactStore + JobFiles + Housekeeping + ?Sized> RecordStore for T {}
