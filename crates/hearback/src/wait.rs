//! Waiting for jobs, and what an owner who waited has seen.

use std::time::Duration;

use hearback_core::port::disk::Lock;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, ReceiptHow, Session};
use hearback_monitor::delivery;
use hearback_monitor::wait::{Until, WaitError};

use crate::{Hearback, Job};

/// Held by an owner who is about to see the end of a job. As long as it lives, hearback does not wake the owner for
/// that job.
#[derive(Debug)]
pub struct Reading {
    _lock: Lock,
}

impl Hearback {
    /// Sleeps until a job is over.
    ///
    /// # Errors
    ///
    /// When the job is gone, or cannot be watched from here.
    pub fn wait(&self, id: &JobId) -> Result<Job, WaitError> {
        let seen = hearback_monitor::wait::until_over(&self.ports, id)?;
        self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))
    }

    /// Sleeps until a job is over, but not longer than `within`; nothing when it still runs then.
    ///
    /// # Errors
    ///
    /// When the job is gone, or cannot be watched from here.
    pub fn wait_timeout(&self, id: &JobId, within: Duration) -> Result<Option<Job>, WaitError> {
        let mut ended = None;
        self.wait_for(std::slice::from_ref(id), Until::All, Some(within), |_, job| ended = Some(job));
        ended.transpose()
    }

    /// Waits for several jobs, but not longer than `within`, and calls `each` as they end. Tells whether the wait
    /// was over before its deadline.
    pub fn wait_for(
        &self,
        ids: &[JobId],
        until: Until,
        within: Option<Duration>,
        mut each: impl FnMut(&JobId, Result<Job, WaitError>),
    ) -> bool {
        self.waits.wait(&self.ports, ids, until, within, |id, answer| {
            each(id, answer.and_then(|seen| self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))));
        })
    }

    /// Says that a session is about to see the end of a job with its own eyes. Keep this until the end was shown and
    /// [`Hearback::consume`] was called: as long as it lives, nobody wakes the session for this job.
    pub fn reading(&self, id: &JobId) -> Option<Reading> {
        let lock = self.ports.share(id, JobLock::Reader).ok().flatten()?;
        Some(Reading { _lock: lock })
    }

    /// Notes that the owner of a job has seen its end. Does nothing for anybody else, and nothing for a job with an
    /// answer: whoever saw that one end has not read it. See [`Hearback::acknowledge`].
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn consume(&self, job: &Job, by: Option<&Session>) -> Result<(), StoreError> {
        if by.is_some() && job.view.session.as_ref() == by && job.view.state.is_over() && !job.is_asked() {
            delivery::close(&self.ports, &job.view.id, ReceiptHow::Read)?;
        }
        Ok(())
    }
}
