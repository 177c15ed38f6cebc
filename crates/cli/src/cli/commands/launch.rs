//! `hearback launch`

use std::ffi::OsString;
use std::io::Read;

use hearback_core::{FollowUpState, JobId};

use crate::cli::args::LaunchArgs;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::{Hearback, Launch, LaunchError, Request};

pub(crate) fn run(hearback: &Hearback, args: LaunchArgs, output: &Output) -> Result<u32, CliError> {
    let (wait, quiet) = (args.wait, args.quiet);
    let request = request(args)?;
    let launched = match hearback.launch(&request) {
        Ok(launched) => launched,
        // The job is recorded, so its id is worth having whatever became of it.
        Err(error) => {
            if let Some(id) = recorded(&error) {
                print_id(hearback, id, output)?;
            }
            return Err(error.into());
        }
    };
    let id = launched.id();
    if wait {
        if !output.is_json() {
            output.line(id.as_str())?;
        }
        return super::wait::one(hearback, id, quiet, output);
    }
    print_id(hearback, id, output)?;
    if !quiet {
        tell_what_is_next(hearback, &launched, output);
    }
    Ok(0)
}

fn request(args: LaunchArgs) -> Result<Request, CliError> {
    let mut request = match args.shell.as_deref() {
        None => Request::argv(args.argv)?,
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(CliError::Stdin)?;
            Request::shell(text)?
        }
        Some(text) => Request::shell(text)?,
    };
    if let Some(directory) = &args.cwd {
        request = request.in_directory(directory);
    }
    for setting in args.env {
        request.env.push(variable(&setting)?);
    }
    request.session = args.session.or_else(crate::current_session);
    request.label = args.label;
    request.key = args.key;
    request.notify = args.notify.into();
    request.sinks = args.sinks;
    Ok(request)
}

fn variable(setting: &OsString) -> Result<(OsString, Option<OsString>), CliError> {
    let (name, value) = hearback_platform::split_variable(setting);
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
        LaunchError::FailedToStart { id, .. }
        | LaunchError::Unconfirmed { id }
        | LaunchError::SupervisorDied { id } => Some(id),
        _ => None,
    }
}

fn print_id(hearback: &Hearback, id: &JobId, output: &Output) -> Result<(), CliError> {
    if !output.is_json() {
        return output.line(id.as_str());
    }
    match hearback.job(id)? {
        Some(job) => output.document(&job.view),
        None => Ok(()),
    }
}

fn tell_what_is_next(hearback: &Hearback, launched: &Launch, output: &Output) {
    let id = launched.id();
    let short = id.short();
    match launched {
        Launch::Started { pid, .. } => output.hint(&format!("started in the background as process {pid}")),
        Launch::Known { .. } => output.hint("launched before, under the same key"),
    }
    let state = hearback.job(id).ok().flatten().map(|job| job.view.follow_up.state);
    output.hint(match state {
        Some(FollowUpState::NotWanted) => {
            "nobody will be told when it ends: it has no session, or wants no notice"
        }
        Some(_) => {
            "its session is owed a follow-up when it ends; until it is delivered, `hearback list` shows it"
        }
        None => "it has already been forgotten",
    });
    output.hint(&format!("next: hearback wait {short}, hearback logs {short}, hearback show {short}"));
}
