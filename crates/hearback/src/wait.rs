//! Waiting for jobs, and marking an end as read.

use std::time::Duration;

use hearback_core::port::disk::Lock;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::{JobId, ReceiptHow, Session};
use hearback_monitor::delivery;
use hearback_monitor::wait::{CancelHook, Until, WaitError, WaitLimit};

use tracing::debug;

use crate::permissions::Capability;
use crate::{Hearback, Job};

/// Held by an owner that is about to read the end of a job. While it is held, hearback does not notify the owner of
/// that job.
#[derive(Debug)]
pub struct Reading {
    _lock: Lock,
}

impl Hearback {
    /// Sleeps until a job has ended.
    ///
    /// # Errors
    ///
    /// When the job is gone, or its end cannot be seen from here.
    pub fn wait(&self, id: &JobId) -> Result<Job, WaitError> {
        let seen = hearback_monitor::wait::until_ended(&self.ports, id)?;
        self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))
    }

    /// Sleeps until a job has ended, but not longer than `within`; none if it still runs then.
    ///
    /// # Errors
    ///
    /// When the job is gone, or its end cannot be seen from here.
    pub fn wait_timeout(&self, id: &JobId, within: Duration) -> Result<Option<Job>, WaitError> {
        self.wait_until(id, within)
    }

    /// Sleeps until a job has ended, but not longer than `limit` says: a time, a token that another thread cancels, or
    /// both. None if the job still runs then; nothing happens to it.
    ///
    /// ```no_run
    /// use hearback::{CancelWait, Hearback, Options, argv};
    ///
    /// # hearback::supervise_if_asked();
    /// let hearback = Hearback::open(Options::default())?;
    /// let launched = hearback.launch(&argv(["make", "all"])?)?;
    /// let cancel = CancelWait::new();
    /// let ended = std::thread::scope(|scope| {
    ///     let wait = scope.spawn(|| hearback.wait_until(launched.id(), &cancel));
    ///     // Another thread ends the wait, for example when the user closes the window.
    ///     cancel.cancel();
    ///     wait.join().expect("a wait does not panic")
    /// })?;
    /// # let _: Option<hearback::Job> = ended;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the job is gone, or its end cannot be seen from here.
    pub fn wait_until(&self, id: &JobId, limit: impl Into<WaitLimit>) -> Result<Option<Job>, WaitError> {
        let mut ended = None;
        self.wait_for(std::slice::from_ref(id), Until::All, limit, |_, job| ended = Some(job));
        ended.transpose()
    }

    /// Waits for several jobs, but not longer than `limit` says, and calls `each` as they end. Returns whether the wait
    /// was complete before that.
    pub fn wait_for(
        &self,
        ids: &[JobId],
        until: Until,
        limit: impl Into<WaitLimit>,
        mut each: impl FnMut(&JobId, Result<Job, WaitError>),
    ) -> bool {
        self.waits.wait(&self.ports, ids, until, &limit.into(), |id, result| {
            each(id, result.and_then(|seen| self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))));
        })
    }

    /// Wakes the watches of this store when a wait is cancelled, for as long as the result is kept.
    pub(crate) fn wake_on_cancel(&self, limit: &WaitLimit) -> Option<CancelHook> {
        let store = self.store.clone();
        limit.cancel().map(|cancel| {
            cancel.on_cancel(move || {
                if let Err(error) = store.wake_host() {
                    debug!(%error, "the cancelled wait was not woken");
                }
            })
        })
    }

    /// Declares that a session is about to read the end of a job. Keep the result until the end was shown and
    /// [`Hearback::mark_read`] was called: while it is held, hearback does not notify the session of this job.
    pub fn reading(&self, id: &JobId) -> Option<Reading> {
        let lock = self.ports.share(id, JobLock::Reader).ok().flatten()?;
        Some(Reading { _lock: lock })
    }

    /// Records that the owner of a job has read its end, so that no follow-up is pending. Does nothing if `by` is not
    /// the owner, or the caller may not `ack`, and nothing for a prompt job: to see its end is not to read its answer.
    /// See [`Hearback::acknowledge`].
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn mark_read(&self, job: &Job, by: Option<&Session>) -> Result<(), StoreError> {
        if job.is_unread_by(by) && self.permissions().check(Capability::Ack).is_ok() {
            delivery::close(&self.ports, &job.view.id, ReceiptHow::Read)?;
        }
        Ok(())
    }
}
