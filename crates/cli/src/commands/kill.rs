//! `hearback kill`

use hearback::core::KilledBy;
use hearback::core::message::clean_line;
use hearback::documents::{ErrorKind, KillDocument, LogDocument, Reply};
use hearback::{Capability, Hearback, KillRequest, Killed, LogRange};

use crate::args::KillArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::status::{Show, Status};

/// A process survived, or a supervisor did not answer.
const NOT_ENDED: u32 = 1;

pub(crate) fn run(hearback: &Hearback, args: &KillArgs, output: &Output) -> Result<u32, CliError> {
    hearback.permissions().check(Capability::Kill)?;
    let scope = super::scope(&args.jobs.scope)?;
    let find = |text: &str| hearback.find_to_kill(text, &scope);
    let (found, mut failed) = super::selected(hearback, &args.jobs, &scope, output, find)?;
    if found.ids.is_empty() && failed.is_none() {
        return super::none_running(&args.jobs, &scope, output);
    }
    let by =
        hearback::current_session()?.or(scope.session().cloned()).map_or(KilledBy::Person, KilledBy::Session);
    let mut request = KillRequest::new(by);
    request.reason = args.reason.clone();
    request.grace = args.grace;
    request.force = args.force;
    let (mut code, mut unprinted) = (0, None);
    let status = Status::of(&found.ids, Show::Line, output);
    hearback.kill_all(&found.ids, &request, |id, killed| {
        status.hide();
        match killed {
            Ok(killed) => {
                // The others are killed even if this cannot be printed.
                let wanted = args.output.filter(|_| super::ONE_CALL);
                let log = wanted.map(|most| hearback.log_document(&killed.job, &LogRange::last(most)));
                // One that cannot be read is left out: what was asked for is done.
                let log = log.and_then(Result::ok);
                unprinted = tell(&killed, log, &found.subject(id), output).err().or(unprinted.take());
                if !killed.is_complete() {
                    code = NOT_ENDED;
                }
            }
            Err(error) => super::keep_error(&mut failed, CliError::from(error).of(found.subject(id)), output),
        }
    })?;
    drop(status);
    unprinted.or(failed).map_or(Ok(code), Err)
}

fn tell(killed: &Killed, log: Option<LogDocument>, subject: &str, output: &Output) -> Result<(), CliError> {
    let view = &killed.job.view;
    if output.is_json() {
        return output.object(&document(killed, log, subject));
    }
    output.prose(&format!("{} {}", view.id, ending(killed)))?;
    if let Some(place) = &killed.out_of_sight {
        let id = &view.id;
        output.warn(&clean_line(&format!(
            "processes of job `{id}` may still run in {place}, which cannot be seen from here; kill it from there"
        )));
    }
    for pid in killed.survivors.iter().map(|who| who.pid) {
        output.warn(&format!("process {pid} of job `{}` could not be killed", view.id));
    }
    Ok(())
}

/// The result of a kill for programs.
pub(crate) fn document(killed: &Killed, log: Option<LogDocument>, subject: &str) -> Reply<KillDocument> {
    let error = (!killed.is_complete()).then(|| {
        let why = match killed.out_of_sight {
            None => "processes of the job could not be killed",
            Some(_) => "processes of the job cannot be seen from here, and may still run",
        };
        CliError::no(ErrorKind::NotKilled, why).of(subject)
    });
    let document = KillDocument::new(killed, log);
    Reply { document, error: error.as_ref().map(CliError::detail) }
}

/// How a job ended that was to be killed.
pub(super) fn ending(killed: &Killed) -> String {
    let outcome = killed.job.view.outcome.as_ref();
    let ending = outcome.map_or_else(|| "running".to_owned(), ToString::to_string);
    let before = if killed.already_ended && killed.is_complete() { "had already ended: " } else { "" };
    let leftovers = match killed.leftovers_killed {
        0 => String::new(),
        1 => "; 1 process that had outlived it was killed".to_owned(),
        n => format!("; {n} processes that had outlived it were killed"),
    };
    format!("{before}{}{leftovers}", clean_line(&ending))
}
