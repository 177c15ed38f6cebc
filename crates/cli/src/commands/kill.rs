//! `hearback kill`

use hearback::core::message::clean_line;
use hearback::core::{DOCUMENT_FORMAT, KilledBy};
use hearback::documents::{ErrorKind, KillDocument, Reply};
use hearback::{Capability, Hearback, KillRequest, Killed};

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
    let request = KillRequest { by, reason: args.reason.clone(), grace: args.grace, force: args.force };
    let (mut code, mut unprinted) = (0, None);
    let status = Status::of(&found.ids, Show::Line, output);
    hearback.kill_all(&found.ids, &request, |id, killed| {
        status.hide();
        match killed {
            Ok(killed) => {
                // The others are killed even if this cannot be printed.
                unprinted = tell(&killed, &found.subject(id), output).err().or(unprinted.take());
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

fn tell(killed: &Killed, subject: &str, output: &Output) -> Result<(), CliError> {
    let view = &killed.job.view;
    let survivors: Vec<u32> = killed.survivors.iter().map(|who| who.pid).collect();
    if output.is_json() {
        let error = (!killed.is_complete()).then(|| {
            let why = match killed.out_of_sight {
                None => "processes of the job could not be killed",
                Some(_) => "processes of the job cannot be seen from here, and may still run",
            };
            CliError::no(ErrorKind::NotKilled, why).of(subject)
        });
        let document = KillDocument {
            format: DOCUMENT_FORMAT,
            id: view.id.clone(),
            already_ended: killed.already_ended,
            outcome: view.outcome.clone(),
            leftovers_killed: killed.leftovers_killed,
            survivors,
            out_of_sight: killed.out_of_sight.clone(),
        };
        return output.object(&Reply { document, error: error.as_ref().map(CliError::detail) });
    }
    output.prose(&format!("{} {}", view.id, ending(killed)))?;
    if let Some(place) = &killed.out_of_sight {
        let id = &view.id;
        output.warn(&clean_line(&format!(
            "processes of job `{id}` may still run in {place}, which cannot be seen from here; kill it from there"
        )));
    }
    for pid in survivors {
        output.warn(&format!("process {pid} of job `{}` could not be killed", view.id));
    }
    Ok(())
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
