//! The command line: parse, do, print, exit.

use std::process::ExitCode;

use clap::error::ErrorKind as ClapError;
use clap::{CommandFactory, FromArgMatches};
use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::VersionDocument;
use hearback::{Hearback, Options};

use crate::args::{Arguments, Color, Command, MonitorCommand};
use crate::commands;
use crate::error::CliError;
use crate::help;
use crate::log::Log;
use crate::output::{Output, say_usage};

/// Parses the command line, runs the command, and returns the exit code.
pub(crate) fn run() -> ExitCode {
    hearback::survive_size_limits();
    hearback::hear_of_children();
    let parsed = help::command().try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return not_parsed(help::with_better_tip(error)),
    };
    let is_json = arguments.json && !arguments.command.speaks_protocol();
    let output = Output::new(arguments.color, is_json);
    let log = Log::new(arguments.verbose, &output);
    match dispatch(arguments.command, &log, &output) {
        Ok(code) => exit_with(code),
        Err(error) => {
            output.error(&error);
            exit_with(error.exit_code())
        }
    }
}

/// Prints what is wrong with the arguments, or help, which is for people with `--json` as well.
fn not_parsed(error: clap::Error) -> ExitCode {
    if error.kind() == ClapError::DisplayVersion && wants_json() {
        let version =
            VersionDocument { format: DOCUMENT_FORMAT, version: env!("CARGO_PKG_VERSION").to_owned() };
        return exit_with(
            Output::new(Color::Never, true).reply(version, None).unwrap_or_else(|error| error.exit_code()),
        );
    }
    let asked_for = matches!(error.kind(), ClapError::DisplayHelp | ClapError::DisplayVersion);
    if !asked_for && !wants_json() && error.kind() != ClapError::DisplayHelpOnMissingArgumentOrSubcommand {
        say_usage(&error);
        return exit_with(2);
    }
    if asked_for || !wants_json() {
        error.exit();
    }
    let error = CliError::Arguments(Box::new(error));
    Output::new(Color::Never, true).error(&error);
    exit_with(error.exit_code())
}

/// Whether the arguments, with which something is wrong, contain `--json`. Values of options and the program of a job
/// with its arguments are not options of hearback.
fn wants_json() -> bool {
    let mut root = Arguments::command();
    root.build();
    let mut command = &root;
    let mut words = std::env::args_os().skip(1).peekable();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        let next_is_option = words.peek().is_some_and(|next| next.to_string_lossy().starts_with('-'));
        let takes_next = |is_meant: &dyn Fn(&clap::Arg) -> bool| {
            command.get_arguments().filter(|arg| is_meant(arg) && arg.get_action().takes_values()).any(
                // Without this setting, the parser does not take an option for a value.
                |arg| !next_is_option || arg.is_allow_hyphen_values_set(),
            )
        };
        match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some("json"), _) => return true,
            (Some(""), _) => return false,
            (Some(name), _) if takes_next(&|arg| arg.get_long() == Some(name)) => drop(words.next()),
            (None, Some(names)) if names.ends_with(|c| takes_next(&|arg| arg.get_short() == Some(c))) => {
                drop(words.next());
            }
            (None, None | Some("")) => match command.find_subcommand(word) {
                Some(inner) => command = inner,
                None if command.get_positionals().any(|arg| arg.is_trailing_var_arg_set()) => return false,
                None => {}
            },
            _ => {}
        }
    }
    false
}

fn dispatch(command: Command, log: &Log<'_>, output: &Output) -> Result<u32, CliError> {
    // A monitor has a log besides, which is in the store.
    if !matches!(command, Command::Monitor(MonitorCommand::Run(_))) {
        log.show();
    }
    match command {
        #[cfg(feature = "completions")]
        Command::Completions(args) => return commands::completions::run(&args, output),
        #[cfg(feature = "schema")]
        Command::Schema => return commands::schema::run(output),
        #[cfg(feature = "man")]
        Command::Man { folder } => return crate::man::write(&folder),
        Command::ExitCodes => return commands::exit_codes::run(output),
        // `doctor` must work when no store can be opened.
        #[cfg(feature = "doctor")]
        Command::Doctor => return commands::doctor::run(output),
        _ => {}
    }
    let options = Options::default();
    let hearback = Hearback::open(if command.needs_no_store() { options.to_read() } else { options })?;
    for warning in &hearback.settings().warnings {
        output.warn(warning);
    }
    match command {
        Command::Launch(args) => commands::launch::run(&hearback, *args, output),
        #[cfg(feature = "agents")]
        Command::Ask(args) => commands::ask::run(&hearback, *args, output),
        #[cfg(feature = "agents")]
        Command::Results(args) => commands::results::run(&hearback, &args, output),
        Command::List(args) => commands::list::run(&hearback, &args, output),
        #[cfg(feature = "top")]
        Command::Top(args) => commands::top::run(hearback, &args, output),
        #[cfg(feature = "timeline")]
        Command::Timeline(args) => commands::timeline::run(&hearback, &args, output),
        #[cfg(feature = "events")]
        Command::Events(args) => commands::events::run(&hearback, &args, output),
        Command::Show(args) => commands::show::run(&hearback, &args, output),
        Command::Logs(args) => commands::logs::run(&hearback, &args, output),
        Command::Wait(args) => commands::wait::run(&hearback, &args, output),
        #[cfg(feature = "input")]
        Command::Write(args) => commands::write::run(&hearback, args, output),
        Command::Kill(args) => commands::kill::run(&hearback, &args, output),
        Command::Followups(args) => commands::followups::run(&hearback, args, output),
        #[cfg(feature = "agents")]
        Command::Turn(args) => commands::turn::run(&hearback, &args, output),
        #[cfg(feature = "agents")]
        Command::Send(args) => commands::send::run(&hearback, args, output),
        #[cfg(feature = "control")]
        Command::Sessions(args) => commands::sessions::run(&hearback, &args, output),
        #[cfg(feature = "agents")]
        Command::Inbox(args) => commands::inbox::run(&hearback, args, output),
        Command::Monitor(command) => commands::monitor::run(hearback, &command, log, output),
        #[cfg(feature = "setup")]
        Command::Agent(command) => commands::agent::run(&hearback, &command, output),
        #[cfg(feature = "setup")]
        Command::Sink(command) => commands::sink::run(&hearback, &command, output),
        #[cfg(feature = "plugin-check")]
        Command::Plugin(command) => commands::plugin::run(&hearback, &command, output),
        #[cfg(feature = "setup")]
        Command::Settings => commands::settings::run(&hearback, output),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::run(hearback, args),
        #[cfg(feature = "serve")]
        Command::Serve => crate::serve::run(hearback),
        #[cfg(feature = "upkeep")]
        Command::Reconcile(args) => commands::reconcile::run(&hearback, &args, output),
        #[cfg(feature = "upkeep")]
        Command::Prune(args) => commands::prune::run(&hearback, &args, output),
        #[cfg(feature = "man")]
        Command::Man { .. } => unreachable!("handled before a store was opened"),
        #[cfg(feature = "completions")]
        Command::Completions(_) => unreachable!("handled before a store was opened"),
        #[cfg(feature = "doctor")]
        Command::Doctor => unreachable!("handled before a store was opened"),
        Command::ExitCodes => unreachable!("handled before a store was opened"),
        #[cfg(feature = "schema")]
        Command::Schema => unreachable!("handled before a store was opened"),
    }
}

fn exit_with(code: u32) -> ExitCode {
    match u8::try_from(code) {
        Ok(small) => ExitCode::from(small),
        Err(_) => std::process::exit(hearback::exit_code(code)),
    }
}
