//! `hearback followups`

use hearback::core::message::clean_line;
use hearback::core::port::record::StoreError;
use hearback::core::{
    ClaimToken, DOCUMENT_FORMAT, FollowUpState, JobId, ReceiptHow, delivery_id, job_of_delivery,
};
use hearback::documents::{ClosedDocument, ErrorKind, FollowUpsDocument, Reply};
use hearback::{Capability, Closed, FindError, Hearback, Listing, NextFollowUp, Scope};

use crate::args::{DeliveriesArgs, FollowupsArgs, FollowupsCommand, NextArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::table;

pub(crate) fn run(hearback: &Hearback, args: FollowupsArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope.into())?;
    match args.command {
        None | Some(FollowupsCommand::List) => list(hearback, &scope, output),
        Some(FollowupsCommand::Next(args)) => next(hearback, &scope, &args, output),
        #[cfg(feature = "claims")]
        Some(FollowupsCommand::Claim(args)) => super::claim::claim(hearback, &scope, &args, output),
        #[cfg(feature = "claims")]
        Some(FollowupsCommand::Release(args)) => super::claim::release(hearback, &scope, args, output),
        Some(FollowupsCommand::Ack(args)) => {
            close(hearback, &scope, &args, output, "acknowledged", |id, typed| match token(typed) {
                Some(token) => Ok(hearback.acknowledge_claim(&token)?),
                None => Ok(hearback.close_follow_up(id, ReceiptHow::Delivered)?),
            })
        }
        Some(FollowupsCommand::Discard(args)) => {
            close(hearback, &scope, &args, output, "discarded", |id, _| {
                Ok(hearback.close_follow_up(id, ReceiptHow::Discarded)?)
            })
        }
        Some(FollowupsCommand::Retry(args)) => {
            hearback.permissions().check(Capability::Notify)?;
            close(hearback, &scope, &args, output, "will be retried", |id, _| {
                Ok(hearback.retry_follow_up(id)?)
            })
        }
    }
}

fn list(hearback: &Hearback, scope: &Scope, output: &Output) -> Result<u32, CliError> {
    let Listing { jobs: pending, problems, .. } = hearback.follow_ups(scope)?;
    let failed = super::unread(&problems, output);
    if output.is_json() {
        let jobs = pending.into_iter().map(|job| job.view).collect();
        let document =
            FollowUpsDocument { format: DOCUMENT_FORMAT, jobs, problems: super::problems(problems) };
        return output.reply(document, failed.as_ref());
    }
    if pending.is_empty() {
        if failed.is_none() {
            output.say(&super::within("nothing is pending", scope));
        }
        return failed.map_or(Ok(0), Err);
    }
    output.text(&table::jobs(&pending, hearback.now(), output.width()))?;
    for job in &pending {
        let view = &job.view;
        let short = view.id.short();
        if let Some(error) = &view.follow_up.error {
            output.say(&format!("{short} {}: {}", table::delivery(view), clean_line(error)));
        }
        if let Some(note) = view.notes.iter().find(|note| note.contains("waits for a host")) {
            output.say(&format!("{short}: {note}"));
        }
        if view.follow_up.state == FollowUpState::DeadLetter {
            output.next(&[super::typed("followups retry", view)]);
        }
    }
    failed.map_or(Ok(0), Err)
}

fn next(hearback: &Hearback, scope: &Scope, args: &NextArgs, output: &Output) -> Result<u32, CliError> {
    let job = args.job.as_ref().map(|name| super::find_one(hearback, name, scope)).transpose()?;
    let NextFollowUp { delivery, problems, .. } =
        hearback.next_follow_up(scope, job.as_ref(), args.wait.unwrap_or_default())?;
    let Some(delivery) = delivery else { return none(problems, scope, output) };
    let _ = super::unread(&problems, output);
    if output.is_json() {
        output.document(&hearback::core::CloudEvent::from(delivery))?;
    } else {
        output.text(&delivery.text)?;
        output.next(&[super::typed_with("followups ack", &delivery.id, delivery.job.session.as_ref())]);
    }
    Ok(0)
}

/// Says that nothing is pending; a job that cannot be read may have something.
pub(super) fn none(
    problems: Vec<(JobId, StoreError)>,
    scope: &Scope,
    output: &Output,
) -> Result<u32, CliError> {
    let unread = super::unread(&problems, output);
    if output.is_json() && unread.is_some() {
        let problems = super::problems(problems);
        let document = FollowUpsDocument { format: DOCUMENT_FORMAT, jobs: Vec::new(), problems };
        return output.reply(document, unread.as_ref());
    }
    if unread.is_none() && !output.is_json() {
        output.say(&super::within("nothing is pending", scope));
    }
    Err(unread.unwrap_or_else(|| CliError::no(ErrorKind::Nothing, "nothing is pending")))
}

fn close(
    hearback: &Hearback,
    scope: &Scope,
    args: &DeliveriesArgs,
    output: &Output,
    done: &str,
    act: impl Fn(&JobId, &str) -> Result<Closed, CliError>,
) -> Result<u32, CliError> {
    hearback.permissions().check(Capability::Ack)?;
    let mut code = 0;
    let find = |text: &str| match token(text) {
        Some(token) => hearback.find(token.job.as_str(), scope),
        None => hearback.find(job_of_delivery(text), scope),
    };
    let (found, mut failed) = super::find_each(&args.deliveries, output, find);
    for id in &found.ids {
        let closed = match act(id, &found.subject(id)) {
            Ok(closed) => closed,
            // The others are handled even if one cannot be.
            Err(error) => {
                super::keep_error(&mut failed, error.of(found.subject(id)), output);
                continue;
            }
        };
        let (changed, said) = match closed {
            Closed::Done => (true, done.to_owned()),
            // A repeat is harmless.
            Closed::Already(state) => (false, format!("nothing to do: {}", word(state))),
            Closed::NotEnded => (false, "the job has not ended".to_owned()),
            Closed::NoJob => {
                let error = CliError::from(FindError::NotFound(id.to_string())).of(found.subject(id));
                super::keep_error(&mut failed, error, output);
                continue;
            }
        };
        let unfit = (closed == Closed::NotEnded)
            .then(|| CliError::no(ErrorKind::NotEnded, "the job has not ended").of(found.subject(id)));
        code = unfit.as_ref().map_or(code, CliError::exit_code);
        if output.is_json() {
            let (delivery, reason) = (delivery_id(id), (!changed).then_some(said));
            let document = ClosedDocument { format: DOCUMENT_FORMAT, delivery, changed, reason };
            output.object(&Reply { document, error: unfit.as_ref().map(CliError::detail) })?;
        } else {
            output.prose(&format!("{} {said}", delivery_id(id)))?;
        }
    }
    failed.map_or(Ok(code), Err)
}

/// The token of a claim, if this is one.
#[cfg(feature = "claims")]
fn token(text: &str) -> Option<ClaimToken> {
    ClaimToken::parse(text)
}

/// A build without claims knows no token.
#[cfg(not(feature = "claims"))]
fn token(_: &str) -> Option<ClaimToken> {
    None
}

pub(super) fn word(state: FollowUpState) -> String {
    let word = table::follow_up(state);
    if word == "-" { "no notification is wanted".into() } else { format!("it is {word}") }
}
