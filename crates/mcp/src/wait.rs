//! Waiting for jobs within one request: bounded, and ended by the cancellation of the request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearback::core::JobId;
use hearback::{Hearback, Job, Until, WaitError};

/// How soon a wait notices that its request was cancelled.
const NOTICE_WITHIN: Duration = Duration::from_secs(1);

/// Tells a call that its request was cancelled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Jobs that have ended, and those whose end cannot be seen.
pub(crate) type Ended = BTreeMap<JobId, Result<Job, WaitError>>;

/// Waits for jobs; returns what has ended, and whether the wait was complete.
pub(crate) fn wait(
    hearback: &Hearback,
    ids: &[JobId],
    until: Until,
    within: Duration,
    cancelled: &Cancelled,
) -> (Ended, bool) {
    let mut ended = Ended::new();
    let mut left = within;
    loop {
        let slice = left.min(NOTICE_WITHIN);
        let complete = hearback.wait_for(ids, until, Some(slice), |id, result| {
            ended.insert(id.clone(), result);
        });
        left -= slice;
        if complete || left.is_zero() || cancelled.is_cancelled() {
            return (ended, complete);
        }
    }
}
