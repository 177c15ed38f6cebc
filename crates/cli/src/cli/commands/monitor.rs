//! `hearback monitor`

use std::sync::Arc;

use crate::Hearback;
use crate::cli::args::MonitorCommand;
use crate::cli::error::CliError;
use crate::cli::output::Output;

pub(crate) fn run(hearback: Hearback, command: &MonitorCommand, output: &Output) -> Result<u32, CliError> {
    let MonitorCommand::Run(args) = command;
    if !args.once {
        output.hint(&format!("looking after {}; end with Ctrl-C", hearback.home().display()));
    }
    Arc::new(hearback).run_monitor(args.once)?;
    Ok(0)
}
