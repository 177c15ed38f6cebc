//! One file for each command. Each returns the exit code.

#[cfg(feature = "setup")]
pub(crate) mod agent;
#[cfg(feature = "agents")]
pub(crate) mod ask;
#[cfg(feature = "claims")]
pub(crate) mod claim;
#[cfg(feature = "completions")]
pub(crate) mod completions;
#[cfg(feature = "doctor")]
pub(crate) mod doctor;
#[cfg(feature = "events")]
pub(crate) mod events;
pub(crate) mod exit_codes;
pub(crate) mod followups;
#[cfg(feature = "agents")]
pub(crate) mod inbox;
#[cfg(feature = "setup")]
pub(crate) mod install;
pub(crate) mod kill;
pub(crate) mod launch;
pub(crate) mod list;
pub(crate) mod logs;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod monitor;
#[cfg(feature = "control")]
pub(crate) mod monitor_control;
#[cfg(feature = "plugin-check")]
pub(crate) mod plugin;
#[cfg(feature = "upkeep")]
pub(crate) mod prune;
#[cfg(feature = "upkeep")]
pub(crate) mod reconcile;
#[cfg(feature = "agents")]
pub(crate) mod results;
#[cfg(feature = "schema")]
pub(crate) mod schema;
#[cfg(feature = "agents")]
pub(crate) mod send;
#[cfg(feature = "control")]
pub(crate) mod sessions;
#[cfg(feature = "setup")]
pub(crate) mod settings;
pub(crate) mod show;
#[cfg(feature = "setup")]
pub(crate) mod sink;
#[cfg(feature = "timeline")]
pub(crate) mod timeline;
#[cfg(feature = "top")]
pub(crate) mod top;
#[cfg(feature = "agents")]
pub(crate) mod turn;
pub(crate) mod wait;
#[cfg(feature = "input")]
pub(crate) mod write;

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use hearback::core::message::clean_line;
use hearback::core::{JobId, JobView, Key, Session};
use hearback::documents::{ListDocument, Problem};
use hearback::{FindError, Hearback, Job, Listing, Scope, SessionError};

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

/// A command about a job, as it has to be typed here.
pub(crate) fn typed(command: &str, job: &JobView) -> String {
    typed_with(command, job.id.short(), job.session.as_ref())
}

/// The same for what has a name of its own, such as a delivery; `owner` is the session of its job.
pub(crate) fn typed_with(command: &str, name: &str, owner: Option<&Session>) -> String {
    format!("hearback {command} {name}{}", to_reach([owner]))
}

/// What a command needs so that it finds jobs of these owners: a caller in a session finds its own jobs alone.
///
/// Never `--session`, which would make the caller the owner who has read what it prints.
pub(crate) fn to_reach<'a>(owners: impl IntoIterator<Item = Option<&'a Session>>) -> &'static str {
    let Ok(scope) = Scope::current() else { return "" };
    if owners.into_iter().all(|owner| scope.sees(owner)) { "" } else { " --all-sessions" }
}

/// How to come back to jobs that run on.
pub(crate) fn to_come_back(running: &[Job]) -> Vec<String> {
    match running {
        [] => Vec::new(),
        [job] => ["logs -f", "wait", "kill"].map(|command| typed(command, &job.view)).into(),
        jobs => {
            let them = to_reach(jobs.iter().map(|job| job.view.session.as_ref()));
            ["list", "wait --all"].map(|command| format!("hearback {command}{them}")).into()
        }
    }
}

/// A command about a job whose owner is not known here.
pub(crate) fn typed_for_any(command: &str, id: &JobId) -> String {
    // Whatever the owner is, no session is the caller's that has none.
    format!("hearback {command} {id}{}", to_reach([None]))
}

/// The session of a command: the one in its arguments, else the one of the environment.
#[cfg(feature = "agents")]
fn session(named: Option<&Session>, what: &str) -> Result<Session, CliError> {
    let session = match named {
        Some(session) => Some(session.clone()),
        None => hearback::current_session()?,
    };
    session.ok_or_else(|| {
        CliError::Usage(format!("{what} needs a session: pass --session, or set HEARBACK_SESSION"))
    })
}

/// The most that is read from standard input. What is read becomes part of a record, which has to stay readable.
const INPUT_MAX: usize = 1024 * 1024;

/// The text of an argument, or of standard input if that is `-`.
fn text_or_input(argument: String) -> Result<String, CliError> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut bytes = Vec::new();
    // One byte more, which tells that there is too much.
    let most = u64::try_from(INPUT_MAX).unwrap_or(u64::MAX).saturating_add(1);
    std::io::stdin().take(most).read_to_end(&mut bytes).map_err(CliError::Stdin)?;
    if bytes.len() > INPUT_MAX {
        return Err(CliError::InputTooLong);
    }
    String::from_utf8(bytes).map_err(|_| {
        CliError::Stdin(io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
    })
}

/// The session that asks or has asked, which gets the answer.
#[cfg(feature = "agents")]
fn parent(named: Option<&Session>) -> Result<Session, CliError> {
    match named {
        Some(session) => Ok(session.clone()),
        None => hearback::current_session()?.ok_or(CliError::NoParent),
    }
}

/// The jobs that a command is about.
#[derive(Default)]
struct Found {
    ids: Vec<JobId>,
    /// What the caller typed for each, if it named them.
    typed: BTreeMap<JobId, String>,
}

impl Found {
    /// How an error names a job: as the caller did.
    fn subject(&self, id: &JobId) -> String {
        self.typed.get(id).cloned().unwrap_or_else(|| id.to_string())
    }
}

/// Whether this build has `--key`, `--output` and `--preview`. Where it does not, the compiler leaves out what they do.
const ONE_CALL: bool = cfg!(feature = "one-call");

/// The job that a key names.
fn keyed(hearback: &Hearback, key: &Key, scope: &Scope) -> Result<Found, CliError> {
    let id = hearback.find_by_key(key, scope).map_err(|error| CliError::from(error).of(key.as_str()))?;
    let typed = BTreeMap::from([(id.clone(), key.to_string())]);
    Ok(Found { ids: vec![id], typed })
}

/// The jobs that were named, the one that a key names, or the only one that can be meant.
fn named(
    hearback: &Hearback,
    jobs: &[String],
    key: Option<&Key>,
    scope: &Scope,
    output: &Output,
) -> Result<(Found, Option<CliError>), CliError> {
    match (jobs, key.filter(|_| ONE_CALL)) {
        (_, Some(key)) => Ok((keyed(hearback, key, scope)?, None)),
        ([], None) => Ok((Found { ids: vec![hearback.find_only(scope)?], ..Found::default() }, None)),
        (jobs, None) => Ok(find_each(jobs, output, |text| hearback.find(text, scope))),
    }
}

/// Finds the one job that was named.
fn find_one(hearback: &Hearback, name: &str, scope: &Scope) -> Result<JobId, CliError> {
    hearback.find(name, scope).map_err(|error| CliError::from(error).of(name))
}

/// Finds each job that was named. A job that is not found keeps no other from being handled: its error is printed, and
/// the last of these errors is returned, for the command to end with.
fn find_each(
    names: &[String],
    output: &Output,
    find: impl Fn(&str) -> Result<JobId, FindError>,
) -> (Found, Option<CliError>) {
    let (mut found, mut failed) = (Found::default(), None);
    for name in names {
        match find(name) {
            Ok(id) => {
                found.typed.insert(id.clone(), name.clone());
                found.ids.push(id);
            }
            Err(error) => keep_error(&mut failed, CliError::from(error).of(name), output),
        }
    }
    (found, failed)
}

/// The jobs that a command is about: those that were named, or those that run, or the only one that can be meant.
fn selected(
    hearback: &Hearback,
    args: &JobsArgs,
    scope: &Scope,
    output: &Output,
    find: impl Fn(&str) -> Result<JobId, FindError>,
) -> Result<(Found, Option<CliError>), CliError> {
    if args.all || args.label.is_some() {
        let listing = hearback.running(scope, args.label.as_deref())?;
        let failed = unread(&listing.problems, output);
        let ids = listing.jobs.into_iter().map(|job| job.view.id).collect();
        return Ok((Found { ids, ..Found::default() }, failed));
    }
    if let Some(key) = args.key.as_ref().filter(|_| ONE_CALL) {
        return Ok((keyed(hearback, key, scope)?, None));
    }
    if args.jobs.is_empty() {
        let ids = vec![hearback.find_only(scope)?];
        return Ok((Found { ids, ..Found::default() }, None));
    }
    Ok(find_each(&args.jobs, output, find))
}

/// Says that no job runs that could have been meant, which is not an error: there is nothing left to do.
fn none_running(args: &JobsArgs, scope: &Scope, output: &Output) -> Result<u32, CliError> {
    if output.is_json() {
        let none = ListDocument::new(Listing::default());
        return output.reply(none, None);
    }
    let what = match args.label {
        Some(_) => "no job with this label is running",
        None => "no job is running",
    };
    output.say(&within(what, scope));
    Ok(0)
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
