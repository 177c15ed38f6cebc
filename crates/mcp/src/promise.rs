//! The one line with which a launch says what happens next. It is true: it follows from the route that the library
//! fixed, and from what the client can do.

use hearback::core::JobView;
use hearback::core::message::clean_line;
use hearback::{Expectation, Hearback, Job};

/// What a launch may promise.
#[derive(Debug)]
pub(crate) struct Promise {
    /// Whether the session is woken.
    pub(crate) wakes_you: bool,
    /// The line.
    pub(crate) next: String,
}

const WOKEN: &str = "You will be woken in this session when it ends: end your turn, do not poll.";

impl Promise {
    /// For a client that follows the job as a task: it hears of the end by itself.
    pub(crate) fn of_task() -> Self {
        Self { wakes_you: true, next: WOKEN.to_owned() }
    }

    /// For every other client.
    pub(crate) fn of(hearback: &Hearback, job: &Job) -> Self {
        if job.view.state.has_ended() {
            return Self { wakes_you: false, next: ended(&job.view) };
        }
        let (wakes_you, next) = match hearback.expectation(job) {
            Expectation::Woken { .. } => (true, WOKEN.to_owned()),
            Expectation::WokenWhenClosed { agent, .. } => (
                false,
                format!(
                    "This session is woken only once it is closed, because {agent} takes no messages while it is open: \
                     to hear of it before that, call `wait`."
                ),
            ),
            Expectation::Sent { sink } => (
                false,
                format!(
                    "No process will wake you; when it ends, hearback notifies {}. To hear of it here, call `wait`.",
                    clean_line(&sink)
                ),
            ),
            Expectation::Fetch => (
                false,
                "No process will wake you: call `wait`. If you do not, the notification is kept for `follow_ups`."
                    .to_owned(),
            ),
            Expectation::Unreachable { reason, .. } | Expectation::Nothing { reason } => {
                let reason = clean_line(&reason);
                (false, format!("No process will wake you ({reason}): call `wait` to hear how it ends."))
            }
            _ => (false, "No process will wake you: call `wait` to hear how it ends.".to_owned()),
        };
        Self { wakes_you, next }
    }
}

/// How a job ended, in one line.
pub(crate) fn ended(view: &JobView) -> String {
    let outcome = view.outcome.as_ref().map_or_else(|| "running".to_owned(), ToString::to_string);
    let ran = view.ran_ms.map_or_else(String::new, |ms| format!(" after {:.1} s", ms as f64 / 1000.0));
    let label = view.label.as_ref().map_or_else(String::new, |label| format!(" ({})", clean_line(label)));
    format!(
        "Job {}{label} has ended: {}{ran}, {} bytes of output.",
        view.id,
        clean_line(&outcome),
        view.output.bytes
    )
}
