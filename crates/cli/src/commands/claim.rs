//! `hearback followups claim` and `release`: for callers that have no process to hold a lock.

use hearback::core::{ClaimToken, DOCUMENT_FORMAT, delivery_id};
use hearback::documents::{ClaimDocument, ClosedDocument};
use hearback::{ClaimedFollowUp, Hearback, Released, Scope};

use crate::args::{ClaimArgs, ReleaseArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::table;

pub(crate) fn claim(
    hearback: &Hearback,
    scope: &Scope,
    args: &ClaimArgs,
    output: &Output,
) -> Result<u32, CliError> {
    let job = args.next.job.as_ref().map(|name| super::find_one(hearback, name, scope)).transpose()?;
    let within = args.next.wait.unwrap_or_default();
    let claimed = hearback.claim_follow_up(scope, job.as_ref(), args.lasts, within)?;
    let ClaimedFollowUp { claim, problems } = claimed;
    let Some(claim) = claim else { return super::followups::none(problems, scope, output) };
    let _ = super::unread(&problems, output);
    if output.is_json() {
        output.document(&ClaimDocument::from(claim))?;
        return Ok(0);
    }
    output.text(&claim.delivery.text)?;
    // A caller that reads text needs the token as well.
    output.say(&format!("claimed until {}: {}", table::local_time(claim.until), claim.token));
    let token = claim.token.to_string();
    let owner = claim.delivery.job.session.as_ref();
    output.next(
        &["followups ack", "followups release"].map(|command| super::typed_with(command, &token, owner)),
    );
    Ok(0)
}

pub(crate) fn release(
    hearback: &Hearback,
    scope: &Scope,
    args: ReleaseArgs,
    output: &Output,
) -> Result<u32, CliError> {
    let token = ClaimToken::parse(&args.token)
        .ok_or_else(|| CliError::Usage(format!("`{}` is not the token of a claim", args.token)))?;
    super::find_one(hearback, token.job.as_str(), scope)?;
    let released = if args.failed { Released::Failed(args.reason) } else { Released::Busy(args.reason) };
    let changed =
        hearback.release_claim(&token, released).map_err(|error| CliError::from(error).of(&args.token))?;
    let delivery = delivery_id(&token.job);
    let over = "nothing to do: the claim is over";
    if output.is_json() {
        let reason = (!changed).then(|| over.to_owned());
        output.object(&ClosedDocument { format: DOCUMENT_FORMAT, delivery, changed, reason })?;
    } else {
        output.prose(&format!("{delivery} {}", if changed { "released" } else { over }))?;
    }
    Ok(0)
}
