//! `hearback launch`

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use hearback::core::message::clean_line;
use hearback::core::{CommandLine, JobId, Limits, Session};
use hearback::documents::LaunchDocument;
use hearback::{
    Expectation, FindError, Hearback, LaunchError, LaunchFailure, Launched, Reading, Request, RequestError,
};

use crate::args::{LaunchArgs, LaunchOptions};
use crate::error::CliError;
use crate::output::{Output, unless_closed};

pub(crate) fn run(hearback: &Hearback, args: LaunchArgs, output: &Output) -> Result<u32, CliError> {
    let (wait, quiet) = (args.wait, args.quiet);
    let request = request(args)?;
    let (launched, _reading) = match start(hearback, &request, wait, quiet, output) {
        Ok(launched) => launched,
        Err(error) => return not_launched(hearback, error, output),
    };
    let id = launched.id();
    if wait {
        if !output.is_json() {
            // The reader is gone, but the exit code still says how the job ended.
            unless_closed(output.line(id.as_str())).map_err(|error| error.about(id))?;
        }
        return super::wait::one(hearback, id, quiet, output);
    }
    report(hearback, &launched, request.session.is_some(), quiet, output)?;
    Ok(0)
}

/// Launches a job; with `wait`, nothing is delivered while the caller waits for it.
pub(super) fn start(
    hearback: &Hearback,
    request: &Request,
    wait: bool,
    quiet: bool,
    output: &Output,
) -> Result<(Launched, Option<Reading>), LaunchError> {
    let (launched, reading) = match wait {
        true => hearback.launch_to_wait(request)?,
        false => (hearback.launch(request)?, None),
    };
    if let Launched::Started { bound_to: Some(place), .. } = &launched
        && !quiet
    {
        warn_about_place(place, output);
    }
    Ok((launched, reading))
}

/// Ends a launch that failed. If the job is recorded, the caller needs its id.
pub(super) fn not_launched(
    hearback: &Hearback,
    error: LaunchError,
    output: &Output,
) -> Result<u32, CliError> {
    let Some(id) = recorded(&error).cloned() else { return Err(error.into()) };
    let error = CliError::from(error);
    // An error while printing it must not hide the first error.
    if output.is_json() {
        // A read without reconciling: a supervisor that has not answered yet must not be recorded as lost.
        let Some(job) = hearback.look(&id).ok().flatten() else { return Err(error.of(id)) };
        return output.reply(job.view, Some(&error)).or(Err(error));
    }
    let _ = output.line(id.as_str());
    Err(error)
}

/// Prints the id of a launched job, and hints for people.
pub(super) fn report(
    hearback: &Hearback,
    launched: &Launched,
    has_session: bool,
    quiet: bool,
    output: &Output,
) -> Result<(), CliError> {
    let id = launched.id();
    print_id(hearback, id, output).map_err(|error| error.about(id))?;
    if quiet {
        return Ok(());
    }
    // An agent reads this as well: it decides whether to end its turn, and is told even without a terminal.
    if (output.is_guided() || (has_session && !output.is_json()))
        && let Some(job) = hearback.look(id).ok().flatten()
    {
        output.tell(&hearback.expectation(&job).to_string());
    }
    if output.is_guided() {
        show_hints(hearback, launched, output);
    }
    Ok(())
}

fn request(args: LaunchArgs) -> Result<Request, CliError> {
    let command = match args.shell {
        None => CommandLine::Argv(args.argv.iter().map(|word| hearback::from_os(word)).collect()),
        Some(dash) if dash == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(CliError::Stdin)?;
            CommandLine::Shell { shell: text, program: args.shell_program }
        }
        Some(text) => CommandLine::Shell { shell: text, program: args.shell_program },
    };
    let session = match args.session {
        Some(session) => Some(session),
        None => hearback::current_session()?,
    };
    with_options(command, session, args.options)
}

/// Builds the request from the command and the options.
pub(super) fn with_options(
    command: CommandLine,
    session: Option<Session>,
    options: LaunchOptions,
) -> Result<Request, CliError> {
    let directory = directory(options.cwd)?;
    let mut request = Request::new(command, hearback::from_os(directory.as_os_str()));
    for setting in options.env {
        request.env.push(variable(&setting)?);
    }
    request.session = session;
    request.label = options.label;
    request.key = options.key;
    request.notify = options.notify.into();
    request.sinks = options.sinks;
    request.bound = options.bound;
    request.limits = Limits {
        timeout_ms: options.timeout.millis(),
        idle_timeout_ms: options.idle_timeout.millis(),
        grace_ms: u64::try_from(options.grace.as_millis()).unwrap_or(u64::MAX),
        leftovers: options.leftovers.into(),
        log_cap: options.log_cap.0,
        over_cap: options.over_cap.into(),
    };
    Ok(request)
}

/// The working directory of the job. An absolute one works even if the current directory was removed.
fn directory(wanted: Option<PathBuf>) -> Result<PathBuf, RequestError> {
    let here = || std::env::current_dir().map_err(RequestError::NoDirectory);
    match wanted {
        Some(wanted) if wanted.is_absolute() => Ok(wanted),
        Some(wanted) => Ok(here()?.join(wanted)),
        None => here(),
    }
}

fn variable(setting: &OsString) -> Result<(OsString, Option<OsString>), CliError> {
    let (name, value) = hearback::split_variable(setting);
    if name.is_empty() {
        return Err(CliError::Usage(format!(
            "`{}` names no variable: use NAME=VALUE or NAME",
            setting.display()
        )));
    }
    Ok((name, value))
}

fn recorded(error: &LaunchError) -> Option<&JobId> {
    match error {
        LaunchError::Failed(
            LaunchFailure::FailedToStart { id, .. }
            | LaunchFailure::Unconfirmed { id }
            | LaunchFailure::SupervisorDied { id },
        ) => Some(id),
        _ => None,
    }
}

fn print_id(hearback: &Hearback, id: &JobId, output: &Output) -> Result<(), CliError> {
    if !output.is_json() {
        return output.line(id.as_str());
    }
    // A read without reconciling: a supervisor that has not answered yet must not be recorded as lost.
    match hearback.look(id)? {
        Some(job) => {
            let expect = hearback.expectation(&job).into();
            output.document(&LaunchDocument { job: job.view, expect })
        }
        None => Err(FindError::NotFound(id.to_string()).into()),
    }
}

/// Warns that the job is part of a unit or Job Object, and ends with it.
fn warn_about_place(place: &str, output: &Output) {
    let text = format!("the job runs inside {place}, and ends when that stops");
    // What a person starts is in the scope of a login or a window, which lasts. A service is restarted, which also
    // matters to programs.
    if place.ends_with(".scope") {
        output.hint(&clean_line(&text));
    } else {
        output.warn(&format!("{text}; `hearback doctor` shows how to launch outside"));
    }
}

fn show_hints(hearback: &Hearback, launched: &Launched, output: &Output) {
    let id = launched.id();
    let short = id.short();
    match launched {
        Launched::Started { pid: Some(pid), .. } => {
            output.hint(&format!("started in the background (pid {pid})"))
        }
        Launched::Started { pid: None, .. } => output.hint("started in the background"),
        Launched::Killed { .. } => output.hint("killed before it was started"),
        Launched::Known { .. } => output.hint("already launched with this key"),
    }
    let job = hearback.job(id).ok().flatten();
    if job.as_ref().is_some_and(|job| job.view.bound) {
        output.hint("a monitor that restarts or stops kills it first (--bound)");
    }
    match job {
        None => output.hint("it has already been pruned"),
        Some(job) => {
            if job.is_asked() {
                output.hint("hearback keeps the answer for its session: hearback results --wait 1h");
            }
            let expected = hearback.expectation(&job);
            let is_sent = matches!(
                expected,
                Expectation::Woken { .. } | Expectation::WokenWhenClosed { .. } | Expectation::Sent { .. }
            );
            if is_sent && !hearback.is_monitored() {
                output.hint(
                    "no monitor is running: if its supervisor is killed, the follow-up waits for the next hearback \
                     command (`hearback monitor install` installs a monitor)",
                );
            }
        }
    }
    output.hint(&format!("next: hearback wait {short}, hearback logs {short}, hearback show {short}"));
}
