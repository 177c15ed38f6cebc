//! `hearback monitor status`, `restart`, `stop` and `drain`

use std::time::Duration;

use hearback::core::message::clean_line;
use hearback::core::{DOCUMENT_FORMAT, LockState, StopKind, StopRequest};
use hearback::documents::{MonitorDocument, MonitorRequestDocument};
use hearback::session::current_turn;
use hearback::{Hearback, HostState, Predecessor, Scope, StopResponse};

use crate::args::{RestartArgs, StopArgs};
use crate::commands::sessions;
use crate::error::CliError;
use crate::output::Output;

/// How long a monitor may take to accept a request. It does so at once, unless its process is paused.
const ACCEPT_WITHIN: Duration = Duration::from_secs(10);

/// How long the new monitor may take to start after the old one has exited.
const SUCCESSOR_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn stop(
    hearback: &Hearback,
    kind: StopKind,
    args: &StopArgs,
    output: &Output,
) -> Result<u32, CliError> {
    // A caller inside a turn must not wait: the monitor waits for that turn.
    let wait = !args.no_wait && current_turn().is_none();
    let host = hearback.monitor()?.facts.last_begin().map(|begin| Predecessor::from(&begin.process));
    let response = request(hearback, kind, args.timeout, None)?;
    if let (true, StopResponse::Taken { .. }, Some(host)) = (wait, &response, host) {
        hearback.await_end_of(&host)?;
    }
    report(kind, &response, wait, output)
}

pub(crate) fn restart(hearback: &Hearback, args: &RestartArgs, output: &Output) -> Result<u32, CliError> {
    let before = hearback.monitor_number()?;
    let response = request(hearback, StopKind::Restart, args.timeout, args.sequence)?;
    let wait = args.wait && current_turn().is_none() && matches!(response, StopResponse::Taken { .. });
    // The time of the turns, and the time of the new monitor to start.
    let within = args.timeout.unwrap_or(hearback.settings().drain_timeout).saturating_add(SUCCESSOR_WITHIN);
    if wait && !hearback.await_monitor_after(before, within)? {
        return Err(CliError::MonitorSilent);
    }
    report(StopKind::Restart, &response, wait, output)
}

fn request(
    hearback: &Hearback,
    kind: StopKind,
    timeout: Option<Duration>,
    sequence: Option<u64>,
) -> Result<StopResponse, CliError> {
    let request = StopRequest {
        sequence,
        by: current_turn(),
        within_ms: timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        ..hearback.stop_request(kind)
    };
    Ok(hearback.request_stop(&request, ACCEPT_WITHIN)?)
}

fn report(kind: StopKind, response: &StopResponse, waited: bool, output: &Output) -> Result<u32, CliError> {
    let (awaited_turns, ignored) = match response {
        StopResponse::Taken { awaited } => (Some(*awaited), false),
        StopResponse::Redelivered => (None, true),
        // The monitor exited before it read the request, and an exit is what the caller wants.
        StopResponse::Gone if kind != StopKind::Restart => (Some(0), false),
        StopResponse::Gone | StopResponse::NoMonitor => return Err(CliError::NoMonitor),
        StopResponse::UnderWay(kind) => return Err(CliError::UnderWay(*kind)),
        StopResponse::Unanswered => return Err(CliError::MonitorSilent),
    };
    if output.is_json() {
        output.document(&MonitorRequestDocument { format: DOCUMENT_FORMAT, kind, awaited_turns, ignored })?;
        return Ok(0);
    }
    output.prose(&match (awaited_turns, waited, kind) {
        (None, ..) => format!("ignored: this {kind} was already requested and done"),
        (Some(_), true, StopKind::Restart) => "restarted".to_owned(),
        (Some(_), true, _) => "stopped".to_owned(),
        (Some(0), false, _) => format!("requested a {kind}; the monitor waits for no turn"),
        (Some(1), false, _) => format!("requested a {kind}; the monitor waits for 1 turn"),
        (Some(n), false, _) => format!("requested a {kind}; the monitor waits for {n} turns"),
    })?;
    Ok(0)
}

pub(crate) fn status(hearback: &Hearback, output: &Output) -> Result<u32, CliError> {
    let (seen, state) = (hearback.monitor()?, hearback.monitor_state()?);
    let running = seen.lock == LockState::Held;
    let begin = seen.facts.last_begin().filter(|_| running);
    let stopping = seen.facts.stopping(seen.lock);
    let listing = hearback.sessions(&Scope::All)?;
    let sessions: Vec<_> =
        listing.sessions.iter().map(|seen| sessions::document(seen, &listing.owners)).collect();
    let document = MonitorDocument {
        format: DOCUMENT_FORMAT,
        running,
        answers: state == HostState::Answers,
        pid: begin.map(|begin| begin.process.pid),
        started_at: begin.map(|begin| begin.at.wall_ms.to_string()),
        version: begin.map(|begin| begin.version.clone()),
        service: begin.is_some_and(|begin| begin.service),
        stopping,
        sessions,
        settings: hearback.settings().effective(),
    };
    if output.is_json() {
        output.document(&document)?;
        return Ok(0);
    }
    match (&document.pid, running) {
        (_, false) => {
            output.prose("no monitor is running")?;
            output.hint(
                "`hearback monitor run` starts one in the foreground, `hearback monitor install` one at every login",
            );
        }
        (Some(pid), true) => output.prose(&format!("a monitor is running (pid {pid})"))?,
        (None, true) => output.prose("a monitor is running")?,
    }
    match state {
        HostState::Stopped { .. } => {
            output.prose("it is paused and does not answer; other processes deliver meanwhile")?;
        }
        HostState::Silent => output.prose(
            "it does not answer: a message has been due for long; other processes deliver meanwhile",
        )?,
        HostState::Absent | HostState::Answers => {}
    }
    if let Some(kind) = stopping {
        let busy = document.sessions.iter().filter(|session| session.turn.is_some()).count();
        output.prose(&format!("about to {kind}; sessions in a turn: {busy}"))?;
    }
    let waiting: usize = document.sessions.iter().map(|session| session.waiting).sum();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (sessions, messages) = (count(document.sessions.len(), "session"), count(waiting, "message"));
    output.prose(&format!("{sessions}, {messages} waiting"))?;
    for setting in
        document.settings.iter().filter(|setting| setting.source != hearback::SettingSource::Default)
    {
        let value = clean_line(setting.value.as_deref().unwrap_or("none"));
        output.prose(&format!("{} = {value} ({})", setting.name, setting.origin()))?;
    }
    Ok(0)
}
