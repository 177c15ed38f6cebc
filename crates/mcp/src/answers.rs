//! The answers of the tools that are no documents of the library. They are a contract, like those.

use hearback::core::{CloudEvent, JobId, JobView};
use hearback::documents::{ClosedDocument, Problem};
use schemars::JsonSchema;
use serde::Serialize;

/// What `launch` answers, at once or as the result of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LaunchAnswer {
    /// The version of this document.
    pub(crate) format: u32,
    /// What happens next, and what to do about it.
    pub(crate) next: String,
    /// Whether you are woken in this session when the job ends.
    pub(crate) wakes_you: bool,
    /// The job.
    pub(crate) job: JobView,
}

/// What `wait` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WaitAnswer {
    /// The version of this document.
    pub(crate) format: u32,
    /// Whether the wait was complete before its time was over.
    pub(crate) complete: bool,
    /// The jobs that have ended.
    pub(crate) ended: Vec<JobView>,
    /// The jobs that continue.
    pub(crate) running: Vec<JobId>,
    /// Jobs whose end cannot be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<Problem>,
}

/// What `follow_ups` answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct FollowUpsAnswer {
    /// The version of this document.
    pub(crate) format: u32,
    /// For `list`: the jobs whose follow-up is pending, leased or a dead letter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pending: Vec<JobView>,
    /// For `next`: the oldest pending follow-up; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Box<CloudEvent>>,
    /// Jobs that could not be read. Their follow-ups may be pending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<Problem>,
    /// For `ack`: what became of each delivery.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) closed: Vec<ClosedDocument>,
}
