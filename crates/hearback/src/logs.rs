//! The output of a job: reading it, following it, and cutting it to a budget.

use std::time::Duration;

use hearback_core::message::Excerpt;
use hearback_core::port::disk::{ReadError, Watch};
use hearback_core::port::record::{JobFiles, StoreError};
use hearback_core::{Gap, JobId};
use hearback_store::{Log, Piece};

use crate::{Hearback, Job};

const FOLLOW_BLOCK: usize = 64 * 1024;
/// A watch reports the death of a supervisor a moment before its lock is free, and then perhaps nothing more.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// A part of the output of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPiece<'a> {
    /// Bytes that are kept.
    Bytes {
        /// Their offset in all output.
        at: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A missing part.
    Gap(Gap),
}

/// Why a job could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// It was removed meanwhile.
    #[error("job `{0}` is gone")]
    Gone(JobId),
    /// Its records cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its output cannot be read.
    #[error("the output cannot be read")]
    Log(#[from] ReadError),
}

/// Reports that something about a job may have changed: its output has grown, or its state is another.
pub struct JobWatch {
    watch: Box<dyn Watch>,
}

impl JobWatch {
    /// Sleeps until something may have changed since the last call, but not longer than `within`. May return early.
    pub fn wait(&mut self, within: Duration) {
        self.watch.wait(within);
    }
}

impl std::fmt::Debug for JobWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobWatch").finish_non_exhaustive()
    }
}

impl Hearback {
    /// Watches a job; none if it has ended and moved to the history. Watch first, look second: a watch reports only
    /// what happens after it was made.
    ///
    /// # Errors
    ///
    /// When the system has no more watches to give.
    pub fn watch(&self, id: &JobId) -> Result<Option<JobWatch>, StoreError> {
        Ok(self.store.watch(id)?.map(|watch| JobWatch { watch }))
    }

    /// Opens the output of a job; none if there is no output yet.
    ///
    /// # Errors
    ///
    /// When the log is not a safe file, or cannot be read.
    pub fn log(&self, job: &Job) -> Result<Option<Log>, ReadError> {
        self.store.open_log(&job.view.id, job.recorded_output().cloned())
    }

    /// Passes the output of a job, from the offset `from` on, to `each`. Returns when the job has ended and all output
    /// was passed. Sleeps while there is no output.
    ///
    /// # Errors
    ///
    /// When the job cannot be read, or `each` fails.
    pub fn follow<E: From<FollowError>>(
        &self,
        id: &JobId,
        from: u64,
        mut each: impl FnMut(LogPiece<'_>) -> Result<(), E>,
    ) -> Result<Job, E> {
        let mut at = from;
        let mut log: Option<Log> = None;
        let mut block = vec![0; FOLLOW_BLOCK];
        // Watch before the first look, so that no change in between is missed.
        let mut watch = self.store.watch(id).map_err(FollowError::from)?;
        loop {
            let job = self.job(id).map_err(FollowError::from)?;
            let job = job.ok_or_else(|| FollowError::Gone(id.clone()))?;
            // The end records what is missing, and there may be a second file.
            if log.is_none() || job.recorded_output().is_some() {
                log = self.log(&job).map_err(FollowError::from)?;
            }
            while let Some(log) = &mut log {
                match log.read(at, &mut block).map_err(|error| FollowError::Log(error.into()))? {
                    Piece::Bytes(n) => {
                        each(LogPiece::Bytes { at, bytes: &block[..n] })?;
                        at += n as u64;
                    }
                    Piece::Gap(gap) => {
                        each(LogPiece::Gap(gap))?;
                        at = gap.end;
                    }
                    Piece::End => break,
                }
            }
            match &mut watch {
                Some(watch) if !job.view.state.has_ended() => watch.wait(LOOK_AT_LEAST_EVERY),
                _ => return Ok(job),
            }
        }
    }

    /// Cuts the output of a job to a budget.
    ///
    /// # Errors
    ///
    /// When the log is not a safe file, or cannot be read.
    pub fn excerpt(&self, job: &Job, head: u64, tail: u64) -> Result<Excerpt, ReadError> {
        match self.log(job)? {
            Some(mut log) => Ok(log.excerpt(head, tail)?),
            None => Ok(Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 }),
        }
    }
}
