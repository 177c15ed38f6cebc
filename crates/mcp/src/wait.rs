//! Waiting for jobs within one request: bounded, and ended by the cancellation of the request.

use std::collections::BTreeMap;
use std::time::Duration;

use hearback::core::JobId;
use hearback::{CancelWait, Hearback, Job, Until, WaitError, WaitLimit};

/// Jobs that have ended, and those whose end cannot be seen.
pub(crate) type Ended = BTreeMap<JobId, Result<Job, WaitError>>;

/// Waits for jobs; returns what has ended, and whether the wait was complete.
pub(crate) fn wait(
    hearback: &Hearback,
    ids: &[JobId],
    until: Until,
    within: Duration,
    cancel: &CancelWait,
) -> (Ended, bool) {
    let mut ended = Ended::new();
    let limit = WaitLimit::from(within).or_cancelled(cancel);
    let complete = hearback.wait_for(ids, until, limit, |id, result| {
        ended.insert(id.clone(), result);
    });
    (ended, complete)
}
