//! `hearback wait`

use std::collections::BTreeMap;
use std::time::Duration;

use hearback::core::message::{clean_line, limit_text};
use hearback::core::{JobId, Outcome};
use hearback::documents::{ErrorKind, Reply};
use hearback::{Hearback, Job, Scope, Until};

use super::Found;
use crate::args::WaitArgs;
use crate::error::CliError;
use crate::output::{Output, unless_closed};
use crate::status::{Show, Status};
use crate::table;

pub(crate) fn run(hearback: &Hearback, args: &WaitArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.jobs.scope)?;
    let find = |text: &str| hearback.find(text, &scope);
    let (found, unknown) = super::selected(hearback, &args.jobs, &scope, output, find)?;
    if found.ids.is_empty() && unknown.is_none() {
        return super::none_running(&args.jobs, &scope, output);
    }
    if let Some(error) = unknown {
        if found.ids.is_empty() {
            return Err(error);
        }
        // Said before the wait, which may be long; the exit code says it again.
        output.error(&error);
        let waited = wait_for(hearback, &found, args, scope, output)?;
        return Ok(if waited == 0 { error.exit_code() } else { waited });
    }
    wait_for(hearback, &found, args, scope, output)
}

fn wait_for(
    hearback: &Hearback,
    found: &Found,
    args: &WaitArgs,
    scope: Scope,
    output: &Output,
) -> Result<u32, CliError> {
    let ids = &found.ids[..];
    let reader = if args.peek { None } else { scope.session().cloned().or(hearback::current_session()?) };
    // An owner that waits must not be woken as well: nothing is delivered while these are held.
    let _reading: Vec<_> = match &reader {
        Some(_) => ids.iter().map(|id| hearback.reading(id)).collect(),
        None => Vec::new(),
    };
    let until = if args.any { Until::Any } else { Until::All };
    let mut codes = BTreeMap::new();
    let mut failure = None;
    let is_one_of_several = ids.len().max(args.jobs.jobs.len()) > 1;
    let status = Status::of(ids, Show::Line, output);
    let in_time = hearback.wait_for(ids, until, args.timeout, |id, ended| {
        status.hide();
        let printed = ended.map_err(CliError::from).and_then(|job| {
            codes.insert(id.clone(), code(&job));
            tell(&job, is_one_of_several, output)?;
            // Only what was written counts as read.
            Ok(hearback.mark_read(&job, reader.as_ref())?)
        });
        if let Err(error) = printed {
            super::keep_error(&mut failure, error.of(found.subject(id)), output);
        }
    });
    drop(status);
    // The reader is gone, but the exit code still says how the jobs ended.
    unless_closed(failure.map_or(Ok(()), Err))?;
    if !in_time {
        let left: Vec<_> = ids.iter().filter(|id| !codes.contains_key(*id)).cloned().collect();
        return give_up(hearback, &left, args.timeout, |id| found.subject(id), output);
    }
    Ok(ids.iter().filter_map(|id| codes.get(id)).copied().find(|code| *code != 0).unwrap_or(0))
}

/// The deadline has passed. A program gets each remaining job as it is.
fn give_up(
    hearback: &Hearback,
    left: &[JobId],
    within: Option<Duration>,
    subject: impl Fn(&JobId) -> String,
    output: &Output,
) -> Result<u32, CliError> {
    if !output.is_json() {
        let within = within.map_or_else(String::new, |within| format!(" after {}", limit_text(within)));
        let running = match left {
            [id] => format!("job {} is still running", id.short()),
            _ => format!("{} jobs are still running", left.len()),
        };
        output.say(&format!("stopped waiting{within}; {running}"));
        let jobs: Vec<_> = left.iter().filter_map(|id| hearback.look(id).ok().flatten()).collect();
        output.next(&super::to_come_back(&jobs));
        return Ok(ErrorKind::Deadline.exit_code());
    }
    for id in left {
        let late = CliError::Deadline(id.clone()).of(subject(id));
        match hearback.look(id)? {
            Some(Job { view: document, .. }) => {
                output.object(&Reply { document, error: Some(late.detail()) })?;
            }
            None => output.error(&late),
        }
    }
    Ok(ErrorKind::Deadline.exit_code())
}

/// Waits for a job that was just launched, and shows how it ended.
pub(crate) fn one(
    hearback: &Hearback,
    id: &JobId,
    within: Option<Duration>,
    quiet: bool,
    output: &Output,
) -> Result<u32, CliError> {
    let ids = std::slice::from_ref(id);
    let status = (!quiet).then(|| Status::of(ids, Show::Line, output));
    let ended = match within {
        Some(within) => hearback.wait_timeout(id, within)?,
        None => Some(hearback.wait(id)?),
    };
    drop(status);
    let Some(job) = ended else { return give_up(hearback, ids, within, ToString::to_string, output) };
    let is_read = if output.is_json() {
        let printed = output.document(&job.view);
        let is_read = printed.is_ok();
        unless_closed(printed).map_err(|error| error.about(id))?;
        is_read
    } else if quiet {
        // The exit code is all that is said. Its reader holds the other end of standard output, or is gone.
        hearback::stdout_is_connected() == Some(true)
    } else {
        let is_read = output.report(&summary(&job));
        if job.view.output.bytes > 0 {
            output.next(&[super::typed("logs", &job.view)]);
        }
        is_read
    };
    // The caller launched the job and waited for it, so the caller is its owner. It has read only what it was given.
    if is_read {
        hearback.mark_read(&job, job.view.session.as_ref())?;
    }
    Ok(code(&job))
}

fn tell(job: &Job, several: bool, output: &Output) -> Result<(), CliError> {
    if output.is_json() {
        return output.object(&job.view);
    }
    let summary = summary(job);
    output.prose(&if several { format!("{} {summary}", job.view.id) } else { summary })
}

/// How a job ended, in one line.
pub(super) fn summary(job: &Job) -> String {
    let ending = job.view.outcome.as_ref().map_or_else(|| "running".to_owned(), ToString::to_string);
    let ran = job
        .view
        .ran_ms
        .map_or_else(String::new, |ran| format!(" after {}", table::duration(Duration::from_millis(ran))));
    format!("{}{ran}, {}", clean_line(&ending), table::output(&job.view.output, " of output"))
}

/// The exit code that says how a job ended.
pub(super) fn code(job: &Job) -> u32 {
    job.view.outcome.as_ref().map_or(125, Outcome::exit_code)
}
