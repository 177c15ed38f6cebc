//! The output of a job: reading it, following it, and cutting it to a budget.

use std::time::Duration;

use hearback_core::message::Excerpt;
use hearback_core::port::disk::ReadError;
use hearback_core::port::record::{JobFiles, StoreError};
use hearback_core::{Gap, JobId};
use hearback_store::{Log, Piece};

use crate::{Hearback, Job};

const FOLLOW_BLOCK: usize = 64 * 1024;
/// That a supervisor was killed is heard a moment before its lock is free, and then perhaps not again.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);

/// A part of what a job printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed<'a> {
    /// It is there.
    Bytes {
        /// Where it begins, counting every byte that was ever printed.
        at: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// It is not kept.
    Gap(Gap),
}

/// Why a job could not be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// It has been removed meanwhile.
    #[error("job `{0}` is gone")]
    Gone(JobId),
    /// Its records cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What it printed cannot be read.
    #[error("the output cannot be read")]
    Log(#[from] ReadError),
}

impl Hearback {
    /// Opens what a job printed; nothing when it printed nothing yet.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn log(&self, job: &Job) -> Result<Option<Log>, ReadError> {
        self.store.open_log(&job.view.id, job.printed().cloned())
    }

    /// Hands everything that a job prints from `from` on to `each`, and returns when the job is over and all of it
    /// was seen. Sleeps while nothing is printed.
    ///
    /// # Errors
    ///
    /// When the job cannot be read, or `each` fails.
    pub fn follow<E: From<FollowError>>(
        &self,
        id: &JobId,
        from: u64,
        mut each: impl FnMut(Printed<'_>) -> Result<(), E>,
    ) -> Result<Job, E> {
        let mut at = from;
        let mut log: Option<Log> = None;
        let mut block = vec![0; FOLLOW_BLOCK];
        // Watched before it is looked at, so that nothing can happen unseen between the two.
        let mut watch = self.store.watch(id).map_err(FollowError::from)?;
        loop {
            let job = self.job(id).map_err(FollowError::from)?;
            let job = job.ok_or_else(|| FollowError::Gone(id.clone()))?;
            // With the end there is a record of what is missing, and perhaps a file more.
            if log.is_none() || job.printed().is_some() {
                log = self.log(&job).map_err(FollowError::from)?;
            }
            while let Some(log) = &mut log {
                match log.read(at, &mut block).map_err(|error| FollowError::Log(error.into()))? {
                    Piece::Bytes(n) => {
                        each(Printed::Bytes { at, bytes: &block[..n] })?;
                        at += n as u64;
                    }
                    Piece::Gap(gap) => {
                        each(Printed::Gap(gap))?;
                        at = gap.end;
                    }
                    Piece::End => break,
                }
            }
            match &mut watch {
                Some(watch) if !job.view.state.is_over() => watch.wait(LOOK_AT_LEAST_EVERY),
                _ => return Ok(job),
            }
        }
    }

    /// Cuts what a job printed to a budget.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn excerpt(&self, job: &Job, head: u64, tail: u64) -> Result<Excerpt, ReadError> {
        match self.log(job)? {
            Some(mut log) => Ok(log.excerpt(head, tail)?),
            None => Ok(Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 }),
        }
    }
}
