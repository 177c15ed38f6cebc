//! `hearback monitor`

use std::sync::Arc;

use crate::Hearback;
use crate::cli::args::{MonitorCommand, MonitorRunArgs};
use crate::cli::error::CliError;
use crate::cli::output::Output;

pub(crate) fn run(hearback: Hearback, command: &MonitorCommand, output: &Output) -> Result<u32, CliError> {
    match command {
        MonitorCommand::Run(args) => look_after(hearback, args, output),
        MonitorCommand::Install(args) => super::install::run(&hearback, args, output),
    }
}

fn look_after(hearback: Hearback, args: &MonitorRunArgs, output: &Output) -> Result<u32, CliError> {
    if !args.once {
        output.hint(&format!("looking after {}; end with Ctrl-C", hearback.home().display()));
    }
    Arc::new(hearback).run_monitor(args.once)?;
    Ok(0)
}
