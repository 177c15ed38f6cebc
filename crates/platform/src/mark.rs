//! The marks by which hearback knows its own processes again.

/// Set in the environment of a target: every process of the job carries it, unless it clears its environment.
pub const JOB_MARK: &str = "HEARBACK_JOB";

/// Set in the environment of a program that is sent out on an errand: every process of it carries it, and no job
/// that it launches.
pub const ERRAND_MARK: &str = "HEARBACK_ERRAND";

/// Set in the environment of a supervisor, and not of its target: where a job's tree ends, however it grew.
pub const SUPERVISOR_MARK: &str = "HEARBACK_SUPERVISOR";
