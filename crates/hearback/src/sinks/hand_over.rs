//! Running a program for one hand-over: its environment, its deadline, and the meaning of its exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::message::clean_line;
use hearback_core::port::process::{BoundedRun, BoundedRunReport, ProcessControl};
use hearback_core::port::sink::{DeliveryContext, SinkError, SinkReply};
use hearback_core::{Exit, OsText, SinkPayload, StartError};
use hearback_platform::Native;

use super::builtin::SINK_COMMAND;
use crate::session;

/// How much of the output of a sink is kept.
pub(super) const OUTPUT_MAX: usize = 64 * 1024;
/// The session is in a turn. From sysexits: a temporary failure.
pub(super) const BUSY: u32 = 75;
/// The session is gone. From sysexits: a service is unavailable.
pub(super) const GONE: u32 = 69;

/// One payload on its way to a sink.
#[derive(Debug)]
pub(crate) struct HandOver<'a> {
    pub(super) native: Native,
    /// The program that becomes a built-in sink; by default this one.
    pub(super) program: Option<&'a Path>,
    /// What is handed over, without secrets.
    pub(super) payload: &'a SinkPayload,
    pub(super) context: &'a DeliveryContext,
    /// How long the sink may take.
    pub(super) timeout: Duration,
}

/// Whether hearback or the program speaks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The program may read its input at any time.
    Input,
    /// The program gets its input after its first line of output.
    Greeting,
}

impl HandOver<'_> {
    /// Runs a program to its end, or to its deadline.
    pub(super) fn run(
        &self,
        argv: Vec<OsText>,
        stdin: Vec<u8>,
        opening: Opening,
    ) -> Result<BoundedRunReport, StartError> {
        let cwd = self.payload.cwd().map(|cwd| PathBuf::from(hearback_platform::to_os(cwd)));
        self.run_in(cwd.filter(|cwd| cwd.is_dir()), argv, stdin, opening)
    }

    /// The same in another directory.
    pub(super) fn run_in(
        &self,
        cwd: Option<PathBuf>,
        argv: Vec<OsText>,
        stdin: Vec<u8>,
        opening: Opening,
    ) -> Result<BoundedRunReport, StartError> {
        self.native.run_bounded(&BoundedRun {
            argv,
            cwd,
            env: self.environment(),
            stdin,
            speaks_first: opening == Opening::Greeting,
            within: self.timeout,
            output_max: OUTPUT_MAX,
            mark: self.context.mark.clone(),
            unless: self.context.receipts.clone(),
        })
    }

    /// Runs hearback itself as the built-in sink of this name, which reads the event.
    pub(super) fn run_built_in(&self, kind: &str, words: Vec<OsText>) -> Result<BoundedRunReport, SinkError> {
        let program = crate::supervisor::program(self.program);
        let program = program.map_err(|error| SinkError::Failed(error.to_string()))?;
        let mut argv = vec![
            hearback_platform::from_os(program.as_os_str()),
            OsText::Text(SINK_COMMAND.to_owned()),
            OsText::Text(kind.to_owned()),
        ];
        argv.extend(words);
        let event = line(&self.payload.event())?;
        self.run(argv, event, Opening::Input).map_err(|error| self.not_started(error))
    }

    /// Why a program that was not started gave no answer: it failed to start, or it is not wanted any more.
    pub(super) fn not_started(&self, error: StartError) -> SinkError {
        match self.context.receipts.iter().any(|receipt| receipt.symlink_metadata().is_ok()) {
            true => SinkError::Closed,
            false => SinkError::Failed(error.message),
        }
    }

    fn environment(&self) -> Vec<(OsString, Option<OsString>)> {
        let payload = self.payload;
        let text = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value)));
        let ids: Vec<_> = payload.deliveries().iter().map(|delivery| delivery.id.as_str()).collect();
        let deliveries = (!ids.is_empty()).then(|| OsString::from(ids.join(" ")));
        let mut env = vec![
            text("HEARBACK_DELIVERY", payload.id()),
            (OsString::from("HEARBACK_DELIVERIES"), deliveries),
            text("HEARBACK_ATTEMPT", &payload.attempt().to_string()),
            text(session::DEPTH_VARIABLE, &payload.depth().to_string()),
        ];
        // An agent launches jobs for the session that it runs in, whichever process delivered the payload.
        let others = session::variables_of_others(payload.session());
        env.extend(others.map(|name| (OsString::from(name), None)));
        env.extend(payload.session().map(|session| text(session::VARIABLE, session.as_str())));
        let turn = self.context.turn.map(|turn| OsString::from(turn.to_string()));
        env.push((session::TURN_VARIABLE.into(), turn));
        // The note in the environment of this process is for another agent.
        env.push((session::NOTE_VARIABLE.into(), None));
        env
    }
}

/// One line of JSON.
pub(super) fn line(value: &impl serde::Serialize) -> Result<Vec<u8>, SinkError> {
    let mut line = serde_json::to_vec(value).map_err(|error| SinkError::Failed(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// The reply that the exit code of a program means.
pub(super) fn answer(report: &BoundedRunReport) -> Result<SinkReply, SinkError> {
    match report.exit {
        None => Err(timed_out(report)),
        Some(Exit::Exited { code: 0 }) => Ok(SinkReply::Delivered),
        // It ran to its end, and this process ignores how its children end. Sent again, it would be told twice.
        Some(Exit::Unknown) => Ok(SinkReply::Delivered),
        Some(Exit::Exited { code: BUSY }) => {
            Ok(SinkReply::Busy { reason: complaint(report), process: None, retry_after_ms: None })
        }
        Some(Exit::Exited { code: GONE }) => Ok(SinkReply::Gone { reason: complaint(report) }),
        Some(exit) => {
            let complaint = complaint(report);
            let colon = if complaint.is_empty() { "" } else { ": " };
            Err(SinkError::Failed(format!("{exit}{colon}{complaint}")))
        }
    }
}

/// Its time ran out. Names its processes that could not be killed.
pub(super) fn timed_out(report: &BoundedRunReport) -> SinkError {
    SinkError::TimedOut { survivors: report.survivors.iter().map(|who| who.pid).collect() }
}

/// The last line that a sink wrote to its standard error.
pub(super) fn complaint(report: &BoundedRunReport) -> String {
    let said = String::from_utf8_lossy(&report.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    clean_line(last.trim())
}
