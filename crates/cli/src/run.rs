//! The command line: parse, do, print, exit.

use std::process::ExitCode;

use clap::Parser;
use hearback::{Hearback, Options};

use crate::args::{Arguments, Command, MonitorCommand};
use crate::commands;
use crate::error::CliError;
use crate::log::Log;
use crate::output::Output;

/// Parses the command line, runs the command, and returns the exit code.
pub(crate) fn run() -> ExitCode {
    hearback::survive_size_limits();
    let arguments = Arguments::parse();
    let output = Output::new(arguments.color, arguments.json);
    let log = Log::new(arguments.verbose, &output);
    match dispatch(arguments.command, &log, &output) {
        Ok(code) => exit_with(code),
        Err(error) => {
            output.error(&error);
            exit_with(error.exit_code())
        }
    }
}

fn dispatch(command: Command, log: &Log<'_>, output: &Output) -> Result<u32, CliError> {
    // A monitor has a log besides, which is in the store.
    if !matches!(command, Command::Monitor(MonitorCommand::Run(_))) {
        log.show();
    }
    match command {
        Command::Completions(args) => return commands::completions::run(&args, output),
        Command::Schema => return commands::schema::run(output),
        // `doctor` must work when no store can be opened.
        Command::Doctor => return commands::doctor::run(output),
        _ => {}
    }
    let hearback = Hearback::open(Options::default())?;
    for warning in &hearback.settings().warnings {
        output.warn(warning);
    }
    match command {
        Command::Launch(args) => commands::launch::run(&hearback, *args, output),
        Command::Ask(args) => commands::ask::run(&hearback, *args, output),
        Command::Results(args) => commands::results::run(&hearback, &args, output),
        Command::List(args) => commands::list::run(&hearback, &args, output),
        Command::Show(args) => commands::show::run(&hearback, &args, output),
        Command::Logs(args) => commands::logs::run(&hearback, &args, output),
        Command::Wait(args) => commands::wait::run(&hearback, &args, output),
        Command::Kill(args) => commands::kill::run(&hearback, &args, output),
        Command::Followups(args) => commands::followups::run(&hearback, args, output),
        Command::Turn(args) => commands::turn::run(&hearback, &args, output),
        Command::Send(args) => commands::send::run(&hearback, args, output),
        Command::Sessions(args) => commands::sessions::run(&hearback, &args, output),
        Command::Inbox(args) => commands::inbox::run(&hearback, args, output),
        Command::Monitor(command) => commands::monitor::run(hearback, &command, log, output),
        Command::Sink(command) => commands::sink::run(&hearback, &command, output),
        Command::Plugin(command) => commands::plugin::run(&hearback, &command, output),
        Command::Settings => commands::settings::run(&hearback, output),
        Command::Reconcile(args) => commands::reconcile::run(&hearback, &args, output),
        Command::Prune(args) => commands::prune::run(&hearback, &args, output),
        Command::Completions(_) | Command::Doctor | Command::Schema => {
            unreachable!("handled before a store was opened")
        }
    }
}

fn exit_with(code: u32) -> ExitCode {
    match u8::try_from(code) {
        Ok(small) => ExitCode::from(small),
        Err(_) => std::process::exit(hearback::exit_code(code)),
    }
}
