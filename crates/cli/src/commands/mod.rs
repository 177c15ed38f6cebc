//! One file for each command. Each returns the exit code.

pub(crate) mod agent;
pub(crate) mod ask;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod followups;
pub(crate) mod inbox;
pub(crate) mod install;
pub(crate) mod kill;
pub(crate) mod launch;
pub(crate) mod list;
pub(crate) mod logs;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod monitor;
pub(crate) mod plugin;
pub(crate) mod prune;
pub(crate) mod reconcile;
pub(crate) mod results;
#[cfg(feature = "schema")]
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod sink;
pub(crate) mod timeline;
pub(crate) mod turn;
pub(crate) mod wait;

use hearback::core::message::clean_line;
use hearback::core::{JobId, Session};
use hearback::documents::Problem;
use hearback::{FindError, Hearback, Scope, SessionError};

use crate::args::{JobsArgs, ScopeArgs};
use crate::error::CliError;
use crate::output::Output;

/// The sessions whose jobs a command reads.
fn scope(args: &ScopeArgs) -> Result<Scope, SessionError> {
    match &args.session {
        _ if args.all_sessions => Ok(Scope::All),
        Some(session) => Ok(session.clone().into()),
        None => Scope::current(),
    }
}

/// The session of a command: the one in its arguments, else the one of the environment.
fn session(named: Option<&Session>, what: &str) -> Result<Session, CliError> {
    let session = match named {
        Some(session) => Some(session.clone()),
        None => hearback::current_session()?,
    };
    session.ok_or_else(|| {
        CliError::Usage(format!("{what} needs a session: pass --session, or set HEARBACK_SESSION"))
    })
}

/// The session that asks or has asked, which gets the answer.
fn parent(named: Option<&Session>) -> Result<Session, CliError> {
    match named {
        Some(session) => Ok(session.clone()),
        None => hearback::current_session()?.ok_or(CliError::NoParent),
    }
}

/// Finds each job that was named. A job that is not found keeps no other from being handled: its error is printed, and
/// the last of these errors is returned, for the command to end with.
fn find_each(
    names: &[String],
    output: &Output,
    find: impl Fn(&str) -> Result<JobId, FindError>,
) -> (Vec<JobId>, Option<CliError>) {
    let (mut ids, mut failed) = (Vec::new(), None);
    for name in names {
        match find(name) {
            Ok(id) => ids.push(id),
            Err(error) => keep_error(&mut failed, CliError::from(error).of(name), output),
        }
    }
    (ids, failed)
}

/// The jobs that a command is about: those that were named, or those that run, or the only one that can be meant.
fn selected(
    hearback: &Hearback,
    args: &JobsArgs,
    scope: &Scope,
    output: &Output,
    find: impl Fn(&str) -> Result<JobId, FindError>,
) -> Result<(Vec<JobId>, Option<CliError>), CliError> {
    if args.all || args.label.is_some() {
        let listing = hearback.running(scope, args.label.as_deref())?;
        let failed = unread(&listing.problems, output);
        return Ok((listing.jobs.into_iter().map(|job| job.view.id).collect(), failed));
    }
    if args.jobs.is_empty() {
        return Ok((vec![hearback.find_only(scope)?], None));
    }
    Ok(find_each(&args.jobs, output, find))
}

/// Says that no job runs that could have been meant, which is not an error: there is nothing left to do.
fn none_running(args: &JobsArgs, scope: &Scope, output: &Output) {
    if !output.is_json() {
        let what = match args.label {
            Some(_) => "no job with this label is running",
            None => "no job is running",
        };
        output.say(&within(what, scope));
    }
}

/// That there is none of something, and where it was looked for, if that is not everywhere.
fn within(what: &str, scope: &Scope) -> String {
    match scope.session() {
        Some(session) => {
            let session = clean_line(session.as_str());
            format!("{what} in session `{session}`; --all-sessions includes the others")
        }
        None => what.to_owned(),
    }
}

/// Keeps the newest error, for the command to end with, and prints the one before it.
fn keep_error(kept: &mut Option<CliError>, error: CliError, output: &Output) {
    if let Some(before) = kept.replace(error) {
        output.error(&before);
    }
}

/// Names the jobs that could not be read, for people, and returns the error that a command ends with which lists jobs:
/// what it lists is not complete.
fn unread<E: std::fmt::Display>(problems: &[(JobId, E)], output: &Output) -> Option<CliError> {
    if !output.is_json() {
        for (id, error) in problems {
            output.warn(&format!("job `{id}` cannot be read: {error}"));
        }
    }
    (!problems.is_empty()).then_some(CliError::Partly)
}

fn problems<E: std::fmt::Display>(failed: Vec<(JobId, E)>) -> Vec<Problem> {
    failed.into_iter().map(|(id, error)| Problem { id, error: error.to_string() }).collect()
}
