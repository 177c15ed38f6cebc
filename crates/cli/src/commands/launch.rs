//! `hearback launch`

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use hearback::core::message::clean_line;
use hearback::core::{CommandLine, FollowUpState, JobId, Limits, Session};
use hearback::{FindError, Hearback, LaunchError, LaunchFailure, Launched, Reading, Request, RequestError};

use crate::args::{LaunchArgs, LaunchOptions};
use crate::error::CliError;
use crate::output::{Output, unless_closed};

pub(crate) fn run(hearback: &Hearback, args: LaunchArgs, output: &Output) -> Result<u32, CliError> {
    let (wait, quiet) = (args.wait, args.quiet);
    let request = request(args)?;
    let (launched, _reading) = start(hearback, &request, wait, quiet, output)?;
    let id = launched.id();
    if wait {
        if !output.is_json() {
            // Nobody listens any more, but the code still says how it went.
            unless_closed(output.line(id.as_str())).map_err(|error| error.about(id))?;
        }
        return super::wait::one(hearback, id, quiet, output);
    }
    tell(hearback, &launched, quiet, output)?;
    Ok(0)
}

/// Launches a job, for an owner who is going to wait for it or not.
pub(super) fn start(
    hearback: &Hearback,
    request: &Request,
    wait: bool,
    quiet: bool,
    output: &Output,
) -> Result<(Launched, Option<Reading>), CliError> {
    let launched = match wait {
        true => hearback.launch_to_wait(request),
        false => hearback.launch(request).map(|launched| (launched, None)),
    };
    let (launched, reading) = match launched {
        Ok(launched) => launched,
        // The job is recorded, so its id is worth having whatever became of it. That it cannot be printed must not
        // hide what became of it.
        Err(error) => {
            if let Some(id) = recorded(&error) {
                let _ = print_id(hearback, id, output);
            }
            return Err(error.into());
        }
    };
    if let Launched::Started { bound_to: Some(place), .. } = &launched
        && !quiet
    {
        tell_what_it_ends_with(place, output);
    }
    Ok((launched, reading))
}

/// Prints the id of a job that was launched, and to people what comes next.
pub(super) fn tell(
    hearback: &Hearback,
    launched: &Launched,
    quiet: bool,
    output: &Output,
) -> Result<(), CliError> {
    print_id(hearback, launched.id(), output).map_err(|error| error.about(launched.id()))?;
    if !quiet && output.is_guided() {
        tell_what_is_next(hearback, launched, output);
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

/// What to launch, with everything that was chosen about it.
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

/// Where the job runs. Whose own directory was removed can still name another.
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
            "`{}` names no variable: give NAME=VALUE or NAME",
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
    // Only looked at: a supervisor that has not answered yet must not be taken for one that never came.
    match hearback.look(id)? {
        Some(job) => output.document(&job.view),
        None => Err(FindError::NotFound(id.to_string()).into()),
    }
}

/// Says it when the job is not on its own, but part of something that others stop.
fn tell_what_it_ends_with(place: &str, output: &Output) {
    let text = format!("it was launched inside {place}, and ends when that is stopped");
    // Whatever a person starts is in the scope of a login or a window, which nobody stops by the way. A service is
    // restarted, and then it matters to programs as well.
    if place.ends_with(".scope") {
        output.hint(&clean_line(&text));
    } else {
        output.warn(&format!("{text}; `hearback doctor` tells how to launch it outside"));
    }
}

fn tell_what_is_next(hearback: &Hearback, launched: &Launched, output: &Output) {
    let id = launched.id();
    let short = id.short();
    match launched {
        Launched::Started { pid, .. } => output.hint(&format!("started in the background as process {pid}")),
        Launched::Known { .. } => output.hint("launched before, under the same key"),
    }
    let job = hearback.job(id).ok().flatten();
    if job.as_ref().is_some_and(|job| job.view.bound) {
        output.hint("it ends with the host, when a monitor restarts or stops");
    }
    match job {
        None => output.hint("it has already been forgotten"),
        Some(job) if job.view.follow_up.state == FollowUpState::NotWanted => {
            output.hint("nobody will be told when it ends: it has no session, or wants no notice");
        }
        Some(job) => {
            let sinks = job.seen.facts.spec.present().map(|spec| spec.sinks.join(", ")).unwrap_or_default();
            if job.is_asked() {
                output.hint("its answer is kept for its session: hearback results --wait 1h");
            } else if sinks.is_empty() {
                output.hint("its session is owed a follow-up when it ends: hearback followups next");
            }
            if !sinks.is_empty() {
                output.hint(&format!("when it ends, its session is told through {}", clean_line(&sinks)));
                if !hearback.is_monitored() {
                    output.hint(
                        "no monitor runs: if its supervisor is killed, the next hearback command tells; \
                         `hearback monitor install` has one that tells by itself",
                    );
                }
            }
        }
    }
    output.hint(&format!("next: hearback wait {short}, hearback logs {short}, hearback show {short}"));
}
