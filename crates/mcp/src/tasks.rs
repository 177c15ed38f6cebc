//! Tasks, served from the store: the id of a task is the id of its job, so any server process can answer for it, also
//! one that was started after the launch.

use hearback::core::{JobView, Outcome};
use hearback::{Hearback, Job, KillRequest};
use rmcp::model::{CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskPayload, TaskStatus};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::failure::Failure;
use crate::promise::{self, Promise};
use crate::tools;

/// How often a client should ask. It is well below the time that a deliverer gives an owner to read an end.
const POLL_INTERVAL_MS: u64 = 1000;
/// Why a job was killed whose task was cancelled. By this its task is known as cancelled.
const CANCELLED: &str = "its MCP task was cancelled";

/// The answer to a launch that is followed as a task.
pub(crate) fn created(job: &Job) -> CreateTaskResult {
    CreateTaskResult::new(base(&job.view, TaskStatus::Working).with_status_message(Promise::of_task().next))
}

/// A task as it is now.
pub(crate) fn current(hearback: &Hearback, job: &Job) -> GetTaskResult {
    let view = &job.view;
    let payload = match &view.outcome {
        None => TaskPayload::Working,
        Some(Outcome::Killed { reason: Some(reason), .. }) if reason == CANCELLED => TaskPayload::Cancelled,
        Some(_) => {
            // The same text that a sink would get.
            let text = hearback.delivery(job).text;
            let promise = Promise::of(hearback, job);
            let result = json!(tools::result(text, &tools::launch_answer(job, promise)));
            TaskPayload::Completed {
                result: if let Value::Object(result) = result { result } else { Default::default() },
            }
        }
    };
    let message = match view.state.has_ended() {
        true => promise::ended(view),
        false => format!("Job {} is {}.", view.id, view.state.as_str()),
    };
    let task = base(view, payload.status()).with_status_message(message);
    GetTaskResult::new(DetailedTask::new(task, payload))
}

fn base(view: &JobView, status: TaskStatus) -> Task {
    let created = view.launched_at.clone().unwrap_or_default();
    let updated =
        view.ended_at.clone().or_else(|| view.started_at.clone()).unwrap_or_else(|| created.clone());
    // Without a time to live: the store keeps a job until it is pruned, which is long after its end.
    Task::new(view.id.as_str(), status, created, updated).with_poll_interval_ms(POLL_INTERVAL_MS)
}

/// Ends the job of a task.
pub(crate) fn cancel(hearback: &Hearback, caller: &Caller, job: &Job) -> Result<(), Failure> {
    let mut request = KillRequest::new(caller.killer());
    request.reason = Some(CANCELLED.to_owned());
    hearback.kill(&job.view.id, &request)?;
    Ok(())
}
