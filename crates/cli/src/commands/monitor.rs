//! `hearback monitor`

use std::sync::Arc;
use std::time::Duration;

use hearback::core::message::clean_line;
use hearback::core::service::RESTART_EXIT_CODE;
use hearback::core::{DOCUMENT_FORMAT, LockState, StopKind, StopRequest};
use hearback::documents::{MonitorAskedDocument, MonitorDocument};
use hearback::session::current_turn;
use hearback::{Hearback, MonitorEnd, MonitorOptions, Predecessor, Scope, StopResponse};

use crate::args::{MonitorCommand, MonitorRunArgs, RestartArgs, StopArgs};
use crate::commands::sessions;
use crate::error::CliError;
use crate::output::Output;

/// How long a monitor may take to hear a request. It is at it at once; only a stopped process takes longer.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

/// How long a successor may take to begin after everything else.
const SUCCESSOR_WITHIN: Duration = Duration::from_secs(60);

pub(crate) fn run(hearback: Hearback, command: &MonitorCommand, output: &Output) -> Result<u32, CliError> {
    match command {
        MonitorCommand::Run(args) => look_after(hearback, args, output),
        MonitorCommand::Status => status(&hearback, output),
        MonitorCommand::Drain(args) => stop(&hearback, StopKind::Drain, args, output),
        MonitorCommand::Stop(args) => stop(&hearback, StopKind::Stop, args, output),
        MonitorCommand::Restart(args) => restart(&hearback, args, output),
        MonitorCommand::Install(args) => super::install::run(&hearback, args, output),
    }
}

fn look_after(hearback: Hearback, args: &MonitorRunArgs, output: &Output) -> Result<u32, CliError> {
    if !args.once {
        output.hint(&format!("looking after {}; end with Ctrl-C", hearback.home().display()));
    }
    let (once, service, after) = (args.once, args.service, args.after);
    let options = MonitorOptions { once, service, succeed: !service, after };
    match Arc::new(hearback).run_monitor(&options)? {
        MonitorEnd::Stopped(StopKind::Restart) if args.service => Ok(RESTART_EXIT_CODE),
        MonitorEnd::Done | MonitorEnd::Stopped(_) => Ok(0),
    }
}

fn stop(hearback: &Hearback, kind: StopKind, args: &StopArgs, output: &Output) -> Result<u32, CliError> {
    // Whoever asks from inside a turn that is waited for would wait for itself.
    let wait = !args.no_wait && current_turn().is_none();
    let host = hearback.monitor()?.facts.last_begin().map(|begin| Predecessor::from(&begin.process));
    let asked = ask(hearback, kind, args.timeout, None)?;
    if let (true, StopResponse::Taken { .. }, Some(host)) = (wait, &asked, host) {
        hearback.await_end_of(&host)?;
    }
    tell(kind, &asked, wait, output)
}

fn restart(hearback: &Hearback, args: &RestartArgs, output: &Output) -> Result<u32, CliError> {
    let before = hearback.monitor_number()?;
    let asked = ask(hearback, StopKind::Restart, args.timeout, args.sequence)?;
    let wait = args.wait && current_turn().is_none() && matches!(asked, StopResponse::Taken { .. });
    // As long as turns may take, and a successor to begin.
    let within = args.timeout.unwrap_or(hearback.settings().drain_timeout).saturating_add(SUCCESSOR_WITHIN);
    if wait && !hearback.await_monitor_after(before, within)? {
        return Err(CliError::MonitorSilent);
    }
    tell(StopKind::Restart, &asked, wait, output)
}

fn ask(
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
    Ok(hearback.ask_monitor(&request, HEARD_WITHIN)?)
}

fn tell(kind: StopKind, asked: &StopResponse, waited: bool, output: &Output) -> Result<u32, CliError> {
    let (awaited, ignored) = match asked {
        StopResponse::Taken { awaited } => (Some(*awaited), false),
        StopResponse::Redelivered => (None, true),
        // It ended before it heard this: to end was what was wanted.
        StopResponse::Gone if kind != StopKind::Restart => (Some(0), false),
        StopResponse::Gone | StopResponse::NoMonitor => return Err(CliError::NoMonitor),
        StopResponse::UnderWay(kind) => return Err(CliError::UnderWay(*kind)),
        StopResponse::Unanswered => return Err(CliError::MonitorSilent),
    };
    if output.is_json() {
        output.document(&MonitorAskedDocument { format: DOCUMENT_FORMAT, kind, awaited, ignored })?;
        return Ok(0);
    }
    output.line(&match (awaited, waited, kind) {
        (None, ..) => format!("ignored: this {kind} was asked for before, and has been done"),
        (Some(_), true, StopKind::Restart) => "restarted".to_owned(),
        (Some(_), true, _) => "ended".to_owned(),
        (Some(0), false, _) => format!("asked for a {kind}; no turn is waited for"),
        (Some(1), false, _) => format!("asked for a {kind}; one turn is waited for"),
        (Some(n), false, _) => format!("asked for a {kind}; {n} turns are waited for"),
    })?;
    Ok(0)
}

fn status(hearback: &Hearback, output: &Output) -> Result<u32, CliError> {
    let seen = hearback.monitor()?;
    let running = seen.lock == LockState::Held;
    let begin = seen.facts.last_begin().filter(|_| running);
    let stopping = seen.facts.stopping(seen.lock);
    let sessions: Vec<_> = hearback.sessions(&Scope::All)?.iter().map(sessions::document).collect();
    let document = MonitorDocument {
        format: DOCUMENT_FORMAT,
        running,
        pid: begin.map(|begin| begin.process.pid),
        since: begin.map(|begin| begin.at.wall_ms.to_string()),
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
            output.line("no monitor runs")?;
            output.hint(
                "`hearback monitor run` starts one in front, `hearback monitor install` one that comes back",
            );
        }
        (Some(pid), true) => output.line(&format!("runs as process {pid}"))?,
        (None, true) => output.line("runs")?,
    }
    if let Some(kind) = stopping {
        let busy = document.sessions.iter().filter(|session| session.in_turn.is_some()).count();
        output.line(&format!("about to {kind}; sessions in a turn: {busy}"))?;
    }
    let waiting: usize = document.sessions.iter().map(|session| session.waiting).sum();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (sessions, messages) = (count(document.sessions.len(), "session"), count(waiting, "message"));
    output.line(&format!("{sessions}, {messages} waiting"))?;
    for setting in
        document.settings.iter().filter(|setting| setting.source != hearback::SettingSource::Default)
    {
        let value = clean_line(setting.value.as_deref().unwrap_or("none"));
        output.line(&format!("{} = {value} ({})", setting.name, setting.origin()))?;
    }
    Ok(0)
}
