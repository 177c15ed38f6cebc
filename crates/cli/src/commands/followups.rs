//! `hearback followups`

use hearback::core::port::record::StoreError;
use hearback::core::{DOCUMENT_FORMAT, FollowUpState, JobId, ReceiptHow, delivery_id, job_of_delivery};
use hearback::documents::{ClosedDocument, FollowUpsDocument};
use hearback::{Closed, FindError, Guarded, Hearback, Scope};

use crate::args::{DeliveriesArgs, FollowupsArgs, FollowupsCommand, NextArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::table;

/// Nothing is pending.
const NOTHING: u32 = 1;

pub(crate) fn run(hearback: &Hearback, args: FollowupsArgs, output: &Output) -> Result<u32, CliError> {
    match args.command {
        None => list(hearback, &super::scope(&args.scope)?, output),
        Some(FollowupsCommand::List(args)) => list(hearback, &super::scope(&args.scope)?, output),
        Some(FollowupsCommand::Next(args)) => next(hearback, &args, output),
        Some(FollowupsCommand::Ack(args)) => close(hearback, &args, output, "acknowledged", |id| {
            hearback.close_follow_up(id, ReceiptHow::Delivered)
        }),
        Some(FollowupsCommand::Discard(args)) => close(hearback, &args, output, "discarded", |id| {
            hearback.close_follow_up(id, ReceiptHow::Discarded)
        }),
        Some(FollowupsCommand::Retry(args)) => {
            close(hearback, &args, output, "will be retried", |id| hearback.retry_follow_up(id))
        }
    }
}

fn list(hearback: &Hearback, scope: &Scope, output: &Output) -> Result<u32, CliError> {
    let pending = hearback.follow_ups(scope)?;
    if output.is_json() {
        let jobs = pending.into_iter().map(|job| job.view).collect();
        output.document(&FollowUpsDocument { format: DOCUMENT_FORMAT, jobs })?;
        return Ok(0);
    }
    if pending.is_empty() {
        output.say("nothing is pending");
        return Ok(0);
    }
    output.text(&table::jobs(&pending, hearback.now(), output.width()))?;
    for job in &pending {
        if let Some(error) = &job.view.follow_up.error {
            output.say(&format!("{}: {}", job.view.id.short(), hearback::core::message::clean_line(error)));
        }
    }
    Ok(0)
}

fn next(hearback: &Hearback, args: &NextArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope)?;
    let next = hearback.next_follow_up(&scope, args.wait.unwrap_or_default())?;
    let Some(delivery) = next else {
        if !output.is_json() {
            output.say("nothing is pending");
        }
        return Ok(NOTHING);
    };
    if output.is_json() {
        output.document(&hearback::core::CloudEvent::from(delivery))?;
    } else {
        output.text(&delivery.text)?;
        output.hint(&format!("next: hearback followups ack {}", delivery.id));
    }
    Ok(0)
}

fn close(
    hearback: &Hearback,
    args: &DeliveriesArgs,
    output: &Output,
    done: &str,
    act: impl Fn(&JobId) -> Result<Closed, Guarded<StoreError>>,
) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope)?;
    let mut code = 0;
    let find = |text: &str| hearback.find(job_of_delivery(text), &scope);
    let (ids, mut failed) = super::find_each(&args.deliveries, output, find);
    for id in ids {
        let closed = match act(&id) {
            Ok(closed) => closed,
            // The others are handled even if one cannot be.
            Err(error) => {
                super::keep_error(&mut failed, error.into(), output);
                continue;
            }
        };
        let (changed, said) = match closed {
            Closed::Done => (true, done.to_owned()),
            // A repeat is harmless.
            Closed::Already(state) => (false, format!("nothing to do: {}", word(state))),
            Closed::NotEnded => (false, "the job has not ended".to_owned()),
            Closed::NoJob => {
                super::keep_error(&mut failed, FindError::NotFound(id.to_string()).into(), output);
                continue;
            }
        };
        if closed == Closed::NotEnded {
            code = NOTHING;
        }
        if output.is_json() {
            let (delivery, reason) = (delivery_id(&id), (!changed).then_some(said));
            output.object(&ClosedDocument { format: DOCUMENT_FORMAT, delivery, changed, reason })?;
        } else {
            output.line(&format!("{} {said}", delivery_id(&id)))?;
        }
    }
    failed.map_or(Ok(code), Err)
}

fn word(state: FollowUpState) -> String {
    let word = table::follow_up(state);
    if word == "-" { "no notification is wanted".into() } else { format!("it is {word}") }
}
