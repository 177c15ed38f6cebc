//! `hearback inbox`

use hearback::core::message::{clean_line, quoted};
use hearback::core::{DOCUMENT_FORMAT, Read, Session};
use hearback::documents::{ChangedMessageDocument, ErrorKind, InboxDocument, MessageDocument};
use hearback::{Hearback, Scope};

use crate::args::{InboxArgs, InboxCommand, ScopeArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::table;

pub(crate) fn run(hearback: &Hearback, args: InboxArgs, output: &Output) -> Result<u32, CliError> {
    let scope = ScopeArgs::from(args.scope);
    match args.command {
        None | Some(InboxCommand::List) => list(hearback, &super::scope(&scope)?, output),
        Some(InboxCommand::Retry(args)) => {
            let session = super::session(scope.session.as_ref(), "a message")?;
            let changed = hearback.retry_message(&session, args.n)?;
            report(session, args.n, changed, ["will be retried", "no such dead letter"], output)
        }
        Some(InboxCommand::Discard(args)) => {
            let session = super::session(scope.session.as_ref(), "a message")?;
            let changed = hearback.discard_message(&session, args.n)?;
            report(session, args.n, changed, ["discarded", "no such message"], output)
        }
    }
}

fn list(hearback: &Hearback, scope: &Scope, output: &Output) -> Result<u32, CliError> {
    let listing = hearback.sessions(scope)?;
    let failed = super::sessions::unread(&listing.problems, output);
    let mut messages = Vec::new();
    for seen in &listing.sessions {
        for (n, message) in seen.open_messages() {
            let (text, sent_at, problem) = match &message.message {
                Read::Present(message) => {
                    (Some(message.text.clone()), Some(message.at.wall_ms.to_string()), None)
                }
                Read::Newer(_) => (None, None, Some("a newer hearback wrote this message".to_owned())),
                Read::Unreadable(why) => (None, None, Some(format!("the message cannot be read: {why}"))),
                Read::Absent => continue,
            };
            messages.push(MessageDocument {
                session: seen.session.clone(),
                message: n,
                text: text.map(|text| hearback.secrets().masked(&text)),
                sent_at,
                attempts: message.attempts(),
                dead_letter: message.is_dead_letter(),
                error: problem.or_else(|| message.last_result().map(|result| result.error.clone())),
            });
        }
    }
    if output.is_json() {
        return output.reply(InboxDocument { format: DOCUMENT_FORMAT, messages }, failed.as_ref());
    }
    if messages.is_empty() && failed.is_none() {
        output.say("no messages");
        return Ok(0);
    }
    let row = |message: &MessageDocument| {
        let first = message.text.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        let state = if message.dead_letter { "dead letter" } else { "waiting" };
        let error =
            message.error.as_ref().map(|error| format!(" ({})", clean_line(error))).unwrap_or_default();
        let session = clean_line(message.session.as_str());
        vec![state.to_owned(), session, message.message.to_string(), format!("{}{error}", clean_line(first))]
    };
    let rows: Vec<_> = messages.iter().map(row).collect();
    output.text(&table::grid(&["STATE", "SESSION", "N", "MESSAGE"], &rows, 3, output.width()))?;
    let caller = hearback::current_session()?;
    for message in messages.iter().filter(|message| message.dead_letter) {
        let session = match caller.as_ref() == Some(&message.session) {
            true => String::new(),
            false => format!(" -s {}", quoted(&clean_line(message.session.as_str()))),
        };
        let commands = ["retry", "discard"];
        output
            .next(&commands.map(|command| format!("hearback inbox {command} {}{session}", message.message)));
    }
    failed.map_or(Ok(0), Err)
}

/// Says whether a message was changed.
fn report(
    session: Session,
    message: u32,
    changed: bool,
    [done, otherwise]: [&str; 2],
    output: &Output,
) -> Result<u32, CliError> {
    let failed = (!changed).then(|| CliError::no(ErrorKind::Nothing, otherwise));
    if output.is_json() {
        let document = ChangedMessageDocument { format: DOCUMENT_FORMAT, session, message, changed };
        return output.reply(document, failed.as_ref());
    }
    output.say(if changed { done } else { otherwise });
    failed.map_or(Ok(0), Err)
}
