//! The marks by which hearback knows its own processes again.

use std::ffi::{OsStr, OsString};

use hearback_core::port::process::DetachedRequest;

/// Set in the environment of a target: every process of the job carries it, unless it clears its environment.
pub const JOB_MARK: &str = "HEARBACK_JOB";

/// Set in the environment of a program that is run to its end within a time: every process of it carries it, and no job
/// that it launches.
pub const BOUNDED_RUN_MARK: &str = "HEARBACK_BOUNDED_RUN";

/// Set in the environment of a supervisor, and not of its target: where a job's tree ends, however it grew. Another
/// detached program has one as well, with its command line in the place of a job.
pub const SUPERVISOR_MARK: &str = "HEARBACK_SUPERVISOR";

/// What [`SUPERVISOR_MARK`] holds in a detached program that supervises nothing: its command line, with a space
/// between the words. Whoever inherits the variable from it has another command line, and is not taken for it.
pub(crate) fn detached(request: &DetachedRequest) -> OsString {
    let words = request.args.iter().map(|argument| &**argument);
    std::iter::once(request.program.as_os_str()).chain(words).collect::<Vec<_>>().join(OsStr::new(" "))
}
