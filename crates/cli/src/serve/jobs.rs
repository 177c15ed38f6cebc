//! Requests about jobs and messages. Each is a call of the library.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum as _;
use hearback::core::port::sink::HOST_SINK;
use hearback::core::{DOCUMENT_FORMAT, JobId, Key, KilledBy, LogCap, Session};
use hearback::documents::serve::{
    KillParams, KilledDocument, LaunchParams, ListParams, OutputParams, SendParams, ShowParams, WaitParams,
    WaitedDocument,
};
use hearback::documents::{ListDocument, Problem, SentDocument, ShowDocument};
use hearback::{
    CancelWait, FindError, Hearback, Job, KillRequest, LogRange, OutgoingMessage, Request, Scope, Select,
    Until, WaitLimit,
};

use super::server::Answer;
use crate::args::OutcomeArg;
use crate::commands::{kill, launch};
use crate::error::CliError;

/// How many jobs of history are listed without `all`.
const NEWEST: usize = 20;
/// How much output is read by default, and at most: an answer is one line.
const OUTPUT_BYTES: usize = 64 * 1024;
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Whose jobs a request is about.
fn scope(session: Option<Session>) -> Result<Scope, CliError> {
    Ok(session.map_or_else(Scope::current, |session| Ok(session.into()))?)
}

fn usage(message: &str) -> CliError {
    CliError::Usage(message.to_owned())
}

pub(super) fn launch(hearback: &Hearback, params: LaunchParams) -> Result<Answer, CliError> {
    let request = request(params)?;
    let launched = hearback.launch(&request).map_err(|error| {
        let id = launch::recorded(&error).cloned();
        let error = CliError::from(error);
        match id {
            Some(id) => error.of(id),
            None => error,
        }
    })?;
    Ok(Answer::new(&launch::document(hearback, &launched)?))
}

fn request(params: LaunchParams) -> Result<Request, CliError> {
    let mut request = match (params.command, params.shell) {
        (Some(command), None) if command.first().is_none_or(String::is_empty) => {
            return Err(usage("`command` names no program"));
        }
        (Some(command), None) => hearback::argv(command)?,
        (None, Some(text)) if text.trim().is_empty() => return Err(CliError::NoShellText),
        (None, Some(text)) => hearback::shell(text)?,
        _ => return Err(usage("give either `command` or `shell`")),
    };
    if let Some(cwd) = params.cwd {
        if !Path::new(&cwd).is_absolute() {
            return Err(usage("`cwd` has to be absolute"));
        }
        request.cwd = hearback::from_os(cwd.as_ref());
    }
    for (name, value) in params.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(CliError::Usage(format!("`{name}` in `env` names no variable")));
        }
        request.env.push((name.into(), value.map(OsString::from)));
    }
    request.session = match params.session {
        Some(session) => Some(session),
        None => hearback::current_session()?,
    };
    request.label = params.label;
    request.key =
        params.key.map(Key::parse).transpose().map_err(|error| CliError::Usage(format!("`key`: {error}")))?;
    request.notify = params.notify.unwrap_or_default();
    request.sinks = match params.sinks {
        Some(sinks) => sinks,
        None if request.session.is_some() => vec![HOST_SINK.to_owned()],
        None => Vec::new(),
    };
    if let Some(limit) = params.timeout_ms {
        request = request.timeout(limit.map(Duration::from_millis));
    }
    request = request.idle_timeout(params.idle_timeout_ms.map(Duration::from_millis));
    if let Some(grace) = params.grace_ms {
        request = request.grace(Duration::from_millis(grace));
    }
    if let Some(cap) = params.log_cap_bytes {
        let checked =
            |bytes| LogCap::new(bytes).ok_or_else(|| usage("the smallest `log_cap_bytes` is 1048576"));
        request.limits.log_cap = cap.map(checked).transpose()?;
    }
    Ok(request)
}

pub(super) fn list(hearback: &Hearback, params: ListParams) -> Result<Answer, CliError> {
    let outcome = params.outcome.map(|text| {
        let arg = OutcomeArg::from_str(&text.replace('_', "-"), false);
        arg.map_err(|_| CliError::Usage(format!("there is no outcome `{text}`")))
    });
    let mut select = Select::default();
    select.scope = scope(params.session)?;
    select.states = params.state.into_iter().collect();
    select.outcomes = outcome.transpose()?.map(Into::into).into_iter().collect();
    select.label = params.label;
    select.history_max = (!params.all).then_some(params.limit.unwrap_or(NEWEST));
    select.most = params.limit;
    Ok(Answer::new(&ListDocument::new(hearback.jobs(&select)?)))
}

/// Finds a job, and brings it up to date.
fn find(hearback: &Hearback, name: &str, scope: &Scope) -> Result<Job, CliError> {
    let found = hearback.find(name, scope).map_err(CliError::from).and_then(|id| {
        let job = hearback.job(&id)?;
        job.ok_or_else(|| FindError::NotFound(name.to_owned()).into())
    });
    found.map_err(|error| error.of(name))
}

pub(super) fn show(hearback: &Hearback, params: ShowParams) -> Result<Answer, CliError> {
    let scope = scope(params.session)?;
    let job = match (&params.job, &params.key) {
        (Some(name), None) => find(hearback, name, &scope)?,
        (None, Some(key)) => {
            let key = Key::parse(key).map_err(|error| usage(&error.to_string()))?;
            let id = hearback.find_by_key(&key, &scope).map_err(CliError::from)?;
            find(hearback, id.as_str(), &scope)?
        }
        _ => return Err(usage("`show` takes either `job` or `key`")),
    };
    let most = u64::try_from(OUTPUT_BYTES_MAX).unwrap_or(u64::MAX);
    let range = params.output_bytes.map(|bytes| LogRange::last(bytes.min(most)));
    let log = range.map(|range| hearback.log_document(&job, &range)).transpose();
    let log = log.map_err(|source| CliError::Log { id: job.view.id.clone(), source })?;
    Ok(Answer::new(&ShowDocument { job: job.view, log }))
}

pub(super) fn output(hearback: &Arc<Hearback>, params: OutputParams) -> Result<Answer, CliError> {
    if [params.head, params.tail, params.offset].iter().flatten().count() > 1 {
        return Err(usage("`head`, `tail` and `offset` exclude each other"));
    }
    let reader = reader(params.session.clone())?;
    let job = find(hearback, &params.job, &scope(params.session)?)?;
    let mut range = LogRange::new(params.max_bytes.unwrap_or(OUTPUT_BYTES).min(OUTPUT_BYTES_MAX));
    range.head = params.head;
    range.tail = params.tail;
    range.offset = params.offset;
    let document = hearback.log_document(&job, &range);
    let document = document.map_err(|source| CliError::Log { id: job.view.id.clone(), source })?;
    let answer = Answer::new(&document);
    Ok(if document.outcome.is_some() { answer.read_by(hearback, reader, vec![job]) } else { answer })
}

/// The session that reads an answer, if it is known.
fn reader(session: Option<Session>) -> Result<Option<Session>, CliError> {
    Ok(match session {
        Some(session) => Some(session),
        None => hearback::current_session()?,
    })
}

/// Finds every job of a request, or none.
fn find_all(
    names: &[String],
    find: impl Fn(&str) -> Result<JobId, FindError>,
) -> Result<Vec<JobId>, CliError> {
    if names.is_empty() {
        return Err(usage("`jobs` is empty"));
    }
    let mut ids: Vec<JobId> = Vec::new();
    for name in names {
        let id = find(name).map_err(|error| CliError::from(error).of(name))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

pub(super) fn wait(
    hearback: &Arc<Hearback>,
    params: WaitParams,
    cancel: &CancelWait,
) -> Result<Answer, CliError> {
    let reader = if params.peek { None } else { reader(params.session.clone())? };
    let scope = scope(params.session)?;
    let ids = find_all(&params.jobs, |name| hearback.find(name, &scope))?;
    // An owner that waits must not be woken as well: nothing is delivered while these are held.
    let readings: Vec<_> =
        ids.iter().filter_map(|id| reader.as_ref().and_then(|_| hearback.reading(id))).collect();
    let until = if params.any { Until::Any } else { Until::All };
    let (mut ended, mut problems) = (Vec::new(), Vec::new());
    let limit = WaitLimit::from(params.timeout_ms.map(Duration::from_millis)).or_cancelled(cancel);
    let in_time = hearback.wait_for(&ids, until, limit, |id, result| match result {
        Ok(job) => ended.push(job),
        Err(error) => problems.push(Problem { id: id.clone(), error: error.to_string() }),
    });
    if !in_time && cancel.is_cancelled() {
        return Err(CliError::Cancelled);
    }
    let mut jobs = Vec::new();
    for id in &ids {
        if let Some(job) = ended.iter().find(|job| job.view.id == *id) {
            jobs.push(job.view.clone());
        } else if !problems.iter().any(|problem| problem.id == *id) {
            jobs.extend(hearback.look(id)?.map(|job| job.view));
        }
    }
    let document = WaitedDocument { format: DOCUMENT_FORMAT, jobs, timed_out: !in_time, problems };
    Ok(Answer::new(&document).read_by(hearback, reader, ended).holding(readings))
}

pub(super) fn kill(hearback: &Hearback, params: KillParams) -> Result<Answer, CliError> {
    let by = reader(params.session.clone())?.map_or(KilledBy::Person, KilledBy::Session);
    let scope = scope(params.session)?;
    let ids = find_all(&params.jobs, |name| hearback.find_to_kill(name, &scope))?;
    let mut request = KillRequest::new(by);
    request.reason = params.reason;
    request.grace = params.grace_ms.map(Duration::from_millis);
    request.force = params.force;
    let (mut jobs, mut errors) = (Vec::new(), Vec::new());
    hearback.kill_all(&ids, &request, |id, killed| match killed {
        Ok(killed) => jobs.push(kill::document(&killed, None, id.as_str())),
        Err(error) => errors.push(CliError::from(error).of(id).detail()),
    })?;
    Ok(Answer::new(&KilledDocument { format: DOCUMENT_FORMAT, jobs, errors }))
}

pub(super) fn send(hearback: &Hearback, params: SendParams) -> Result<Answer, CliError> {
    let SendParams { session, text, sink, destination } = params;
    let mut message = OutgoingMessage::new(session.clone(), text);
    message.sink = sink;
    message.destination = destination;
    let sent = match hearback.send(&message) {
        Err(hearback::SendError::NoRoute(_)) => {
            message.sink = Some(HOST_SINK.to_owned());
            hearback.send(&message)?
        }
        sent => sent?,
    };
    let (message, interrupted, in_turn) = (sent.n, sent.interrupted, sent.in_turn);
    Ok(Answer::new(&SentDocument { format: DOCUMENT_FORMAT, session, message, interrupted, in_turn }))
}
