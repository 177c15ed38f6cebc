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
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod sink;
pub(crate) mod turn;
pub(crate) mod wait;

use hearback::core::{JobId, Session};
use hearback::documents::Problem;
use hearback::{FindError, Scope, SessionError};

use crate::args::ScopeArgs;
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
