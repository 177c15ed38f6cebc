//! Doors that are a command of the agent.

use hearback_core::OsText;
use hearback_core::agents::{DoorCommand, Meaning};
use hearback_core::port::process::BoundedRunReport;
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{Exit, StartErrorKind};

use super::{Knock, Visit};
use crate::sinks::hand_over::{Opening, answer, complaint};
use crate::sinks::template::{ARGUMENT_BYTES, fill};

/// Resumes a closed session and runs one turn of it.
pub(super) fn resume(visit: &Visit<'_>, command: &DoorCommand) -> Result<Knock, SinkError> {
    // Another process of the agent would write to the same session, and the person there would see none of it. An
    // agent that refuses this by itself, and has another door, is asked.
    if !command.refuses_open_sessions()
        && let Some(process) = visit.open_in()
    {
        let (title, pid) = (visit.agent.title, process.pid);
        return Ok(Knock::Closed {
            reason: format!("the session is open in {title} (pid {pid}), which takes no messages there"),
        });
    }
    run(visit, command, SinkReply::Delivered)
}

/// Adds to the queue of a session. When it takes it from there is not known.
pub(super) fn queue(visit: &Visit<'_>, command: &DoorCommand) -> Result<Knock, SinkError> {
    run(visit, command, SinkReply::Queued)
}

fn run(visit: &Visit<'_>, command: &DoorCommand, success: SinkReply) -> Result<Knock, SinkError> {
    let as_argument = command.takes_text_as_argument();
    let text = text(visit, as_argument);
    let argv = arguments(visit, command, &text);
    let stdin = if as_argument { Vec::new() } else { text.into_bytes() };
    let run = visit.hand_over.run_in(visit.directory(), argv, stdin, Opening::Input);
    let report = match run {
        Ok(report) => report,
        Err(error) if error.kind == StartErrorKind::NotFound => {
            return Err(SinkError::Failed(format!("`{}` was not found on the PATH", visit.agent.program)));
        }
        Err(error) => return Err(visit.hand_over.not_started(error)),
    };
    if matches!(report.exit, Some(Exit::Exited { code: 0 })) {
        return Ok(Knock::Answered(success));
    }
    Ok(match command.meaning_of(&said(&report)) {
        Some(Meaning::Gone) => Knock::Answered(SinkReply::Gone { reason: complaint(&report) }),
        Some(Meaning::Open) => {
            Knock::Closed { reason: format!("the session is open in {}", visit.agent.title) }
        }
        _ => Knock::Answered(answer(&report)?),
    })
}

fn said(report: &BoundedRunReport) -> String {
    [&report.stderr, &report.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn arguments(visit: &Visit<'_>, command: &DoorCommand, text: &str) -> Vec<OsText> {
    let mut argv: Vec<_> = command
        .argv
        .iter()
        .map(|word| {
            let directory = visit.directory().unwrap_or_default();
            OsText::Text(fill(word, |name| match name {
                "session" => Some(visit.session.to_string()),
                "directory" => Some(directory.display().to_string()),
                // A text that begins with a hyphen would be taken for an option.
                "text" if text.starts_with('-') => Some(format!(" {text}")),
                "text" => Some(text.to_owned()),
                _ => None,
            }))
        })
        .collect();
    if let (Some(program), Some(first)) = (visit.program(), argv.first_mut()) {
        *first = hearback_platform::from_os(program.as_os_str());
    }
    argv
}

/// The text for the model. What a job wrote is data and mentions nothing. A message is the sender's own text and
/// stays as it is.
pub(super) fn text(visit: &Visit<'_>, as_argument: bool) -> String {
    let payload = visit.hand_over.payload;
    let text = if as_argument { payload.text_within(ARGUMENT_BYTES) } else { payload.text().to_owned() };
    let is_data = !payload.deliveries().is_empty();
    if is_data { visit.agent.without_mentions(&text) } else { text }
}
