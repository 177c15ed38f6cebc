//! `hearback monitor`

use std::sync::Arc;

use hearback::core::service::RESTART_EXIT_CODE;
use hearback::core::{DOCUMENT_FORMAT, StopKind};
use hearback::documents::MonitorRunDocument;
use hearback::{Hearback, MonitorEnd, MonitorOptions};

use crate::args::{MonitorCommand, MonitorRunArgs};
#[cfg(feature = "control")]
use crate::commands::monitor_control as control;
use crate::error::CliError;
use crate::log::Log;
use crate::output::Output;

pub(crate) fn run(
    hearback: Hearback,
    command: &MonitorCommand,
    log: &Log<'_>,
    output: &Output,
) -> Result<u32, CliError> {
    match command {
        MonitorCommand::Run(args) => run_monitor(hearback, args, log, output),
        #[cfg(feature = "control")]
        MonitorCommand::Status => control::status(&hearback, output),
        #[cfg(feature = "control")]
        MonitorCommand::Drain(args) => control::stop(&hearback, StopKind::Drain, args, output),
        #[cfg(feature = "control")]
        MonitorCommand::Stop(args) => control::stop(&hearback, StopKind::Stop, args, output),
        #[cfg(feature = "control")]
        MonitorCommand::Restart(args) => control::restart(&hearback, args, output),
        #[cfg(feature = "setup")]
        MonitorCommand::Install(args) => super::install::run(&hearback, args, output),
    }
}

fn run_monitor(
    hearback: Hearback,
    args: &MonitorRunArgs,
    log: &Log<'_>,
    output: &Output,
) -> Result<u32, CliError> {
    log.log_monitor(&hearback, args);
    if !args.once {
        output.hint(&format!("monitoring {}; stop with Ctrl-C", hearback.home().display()));
    }
    let (once, service, after) = (args.once, args.service, args.after);
    let mut options = MonitorOptions::default();
    options.once = once;
    options.service = service;
    options.succeed = !service;
    options.after = after;
    hearback.raise_descriptor_limit();
    let end = Arc::new(hearback).run_monitor(&options)?;
    if output.is_json() {
        let stopped = if let MonitorEnd::Stopped(kind) = end { Some(kind) } else { None };
        output.document(&MonitorRunDocument { format: DOCUMENT_FORMAT, stopped })?;
    }
    match end {
        MonitorEnd::Stopped(StopKind::Restart) if args.service => Ok(RESTART_EXIT_CODE),
        _ => Ok(0),
    }
}
