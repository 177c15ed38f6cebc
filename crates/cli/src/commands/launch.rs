//! `hearback launch`

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use hearback::core::message::{clean_line, limits_text, quoted};
use hearback::core::{CommandLine, JobId, Session};
use hearback::documents::{ExpectationDocument, LaunchDocument};
use hearback::{
    Expectation, FindError, Hearback, Job, LaunchError, LaunchFailure, Launched, Reading, Request,
    RequestError,
};

use crate::args::{LaunchArgs, LaunchOptions};
use crate::error::CliError;
use crate::output::{Output, unless_closed};
use crate::table;

pub(crate) fn run(hearback: &Hearback, args: LaunchArgs, output: &Output) -> Result<u32, CliError> {
    let (wait, follow, quiet) = (args.wait, args.follow, args.quiet);
    // The time of `--wait` has to follow an equals sign, because a program may follow a space.
    if let (Some(None), [time, rest @ ..]) = (wait, &args.argv[..])
        && let Some(time) = time.to_str().filter(|time| humantime::parse_duration(time).is_ok())
    {
        let rest: Vec<_> = rest.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        return Err(CliError::WaitTime { time: time.to_owned(), rest: rest.join(" ") });
    }
    let request = request(args)?;
    let is_awaited = wait.is_some() || follow;
    let (launched, _reading) = match start(hearback, &request, is_awaited, quiet, output) {
        Ok(launched) => launched,
        Err(error) => return not_launched(hearback, error, output),
    };
    let id = launched.id();
    if follow {
        return follow_launched(hearback, id, output);
    }
    if let Some(within) = wait {
        if !output.is_json() {
            // The reader is gone, but the exit code still says how the job ended.
            unless_closed(output.line(id.as_str())).map_err(|error| error.about(id))?;
        }
        return super::wait::one(hearback, id, within, quiet, output);
    }
    report(hearback, &launched, request.session.as_ref(), quiet, output)?;
    Ok(0)
}

/// Shows the output as it comes. Standard output is the job's, so the id goes to standard error.
fn follow_launched(hearback: &Hearback, id: &JobId, output: &Output) -> Result<u32, CliError> {
    let job = hearback.look(id)?.ok_or_else(|| FindError::NotFound(id.to_string()))?;
    if !output.is_json() {
        output.say(&format!("{id}: {}", limits_text(&job.view)));
    }
    super::logs::follow_all(hearback, &job, output)
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
    owner: Option<&Session>,
    quiet: bool,
    output: &Output,
) -> Result<(), CliError> {
    let id = launched.id();
    print_id(hearback, launched, output).map_err(|error| error.about(id))?;
    if quiet {
        return Ok(());
    }
    // An agent reads this as well: it decides whether to end its turn, and is told even without a terminal.
    if (output.is_guided() || (owner.is_some() && !output.is_json()))
        && let Some(job) = hearback.look(id).ok().flatten()
    {
        let was_launched_before = matches!(launched, Launched::Known { .. });
        if !(was_launched_before && job.view.state.has_ended()) {
            let expected = in_words(&hearback.expectation(&job), &job);
            output.tell(&format!("{expected}; {}", limits_text(&job.view)));
        }
    }
    if output.is_guided() {
        show_hints(hearback, launched, owner, output);
    }
    Ok(())
}

fn request(args: LaunchArgs) -> Result<Request, CliError> {
    let command = match args.shell {
        None => CommandLine::Argv(args.argv.iter().map(|word| hearback::from_os(word)).collect()),
        Some(text) => {
            let shell = super::text_or_input(text)?;
            if shell.trim().is_empty() {
                return Err(CliError::NoShellText);
            }
            CommandLine::Shell { shell, program: args.shell_program }
        }
    };
    let session = match args.session {
        Some(session) => Some(session),
        None => hearback::current_session()?,
    };
    let request = with_options(command, session, args.options)?;
    #[cfg(feature = "input")]
    let request = if args.stdin { request.takes_input() } else { request };
    Ok(request)
}

/// Builds the request from the command and the options.
pub(super) fn with_options(
    command: CommandLine,
    session: Option<Session>,
    options: LaunchOptions,
) -> Result<Request, CliError> {
    let is_named = options.cwd.is_some();
    let directory = directory(options.cwd)?;
    // Under a key, the job may have been launched before, and its directory may be gone since.
    if is_named && options.key.is_none() && !could_be_directory(&directory) {
        return Err(CliError::NoSuchDirectory(directory));
    }
    let mut request = Request::new(command, hearback::from_os(directory.as_os_str()));
    for setting in options.env {
        request.env.extend(variable(&setting)?);
    }
    request.env.extend(options.unset.into_iter().map(|name| (name, None)));
    request.session = session;
    request.label = options.label;
    request.key = options.key;
    request.notify = options.notify.into();
    request.sinks = options.sinks;
    request.bound = options.bound;
    request.limits.leftovers = options.leftovers.into();
    request.limits.log_cap = options.log_cap.0;
    request.limits.over_cap = options.over_cap.into();
    request = request.idle_timeout(options.idle_timeout.0).grace(options.grace);
    Ok(match options.timeout {
        Some(limit) => request.timeout(limit.0),
        None => request,
    })
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

/// Whether a job could have this working directory, as far as this process may look.
fn could_be_directory(path: &Path) -> bool {
    match fs_err::metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// A variable that is set for the job. Without a value it is that of this process, and none if it is not set here.
fn variable(setting: &OsString) -> Result<Option<(OsString, Option<OsString>)>, CliError> {
    let (name, value) = hearback::split_variable(setting);
    if name.is_empty() {
        return Err(CliError::Usage(format!(
            "`{}` names no variable: use NAME=VALUE or NAME",
            setting.display()
        )));
    }
    let value = value.or_else(|| std::env::var_os(&name));
    Ok(value.map(|value| (name, Some(value))))
}

/// The job of a launch that failed, if it is recorded.
pub(crate) fn recorded(error: &LaunchError) -> Option<&JobId> {
    match error {
        LaunchError::Failed(
            LaunchFailure::FailedToStart { id, .. }
            | LaunchFailure::Unconfirmed { id }
            | LaunchFailure::SupervisorDied { id },
        ) => Some(id),
        _ => None,
    }
}

fn print_id(hearback: &Hearback, launched: &Launched, output: &Output) -> Result<(), CliError> {
    let id = launched.id();
    if !output.is_json() {
        return output.line(id.as_str());
    }
    output.document(&document(hearback, launched)?)
}

/// A job that was launched, for programs.
pub(crate) fn document(hearback: &Hearback, launched: &Launched) -> Result<LaunchDocument, CliError> {
    let id = launched.id();
    // A read without reconciling: a supervisor that has not answered yet must not be recorded as lost.
    let job = hearback.look(id)?.ok_or_else(|| FindError::NotFound(id.to_string()))?;
    let expected = hearback.expectation(&job);
    let text = in_words(&expected, &job);
    let expect = ExpectationDocument::new(expected, text);
    let created = !matches!(launched, Launched::Known { .. });
    Ok(LaunchDocument { job: job.view, created, expect })
}

/// What to expect when the job ends, as its launcher reads it.
fn in_words(expected: &Expectation, job: &Job) -> String {
    let caller = hearback::current_session().ok().flatten();
    expected.text(job.view.session.as_ref(), caller.as_ref())
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

fn show_hints(hearback: &Hearback, launched: &Launched, owner: Option<&Session>, output: &Output) {
    let id = launched.id();
    match launched {
        Launched::Started { pid: Some(pid), .. } => {
            output.hint(&format!("started in the background (pid {pid})"))
        }
        Launched::Started { pid: None, .. } => output.hint("started in the background"),
        Launched::Killed { .. } => output.hint("killed before it was started"),
        _ => {}
    }
    let job = hearback.job(id).ok().flatten();
    if let (Launched::Known { .. }, Some(job)) = (launched, &job) {
        let state = job.view.outcome.as_ref().map_or_else(
            || "it is running".to_owned(),
            |outcome| format!("it has ended ({})", clean_line(&outcome.to_string())),
        );
        let since =
            job.launched_at().map_or_else(String::new, |at| format!(" {}", table::ago(at, hearback.now())));
        output.hint(&format!("nothing was launched: this key names a job that was launched{since}; {state}"));
    }
    if job.as_ref().is_some_and(|job| job.view.bound) {
        output.hint("a monitor that restarts or stops kills it first (--bound)");
    }
    if job.as_ref().is_some_and(|job| job.view.takes_input && !job.view.state.has_ended()) {
        let id = launched.id();
        output.hint(&format!("its input is open: hearback write {id} TEXT --newline; --eof ends it"));
    }
    match job {
        None => output.hint("it has already been pruned"),
        Some(job) => {
            if job.is_asked() {
                let session = job.view.session.as_ref().map_or("", Session::as_str);
                let session = quoted(session);
                output.hint(&format!(
                    "hearback keeps the answer for its session: hearback results --session {session} --wait 1h"
                ));
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
    output.next(&["wait", "logs", "show"].map(|command| super::typed_with(command, id.short(), owner)));
}
