//! `hearback sessions`

use std::collections::BTreeMap;

use hearback::core::message::clean_line;
use hearback::core::port::record::StoreError;
use hearback::core::{DOCUMENT_FORMAT, Session};
use hearback::documents::{InterruptedDocument, SessionDocument, SessionProblem, SessionsDocument};
use hearback::{Hearback, SeenSession};

use crate::args::SessionsArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::table;

pub(crate) fn run(hearback: &Hearback, args: &SessionsArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope)?;
    let listing = hearback.sessions(&scope)?;
    let failed = unread(&listing.problems, output);
    let sessions: Vec<_> = listing.sessions.iter().map(|seen| document(seen, &listing.owners)).collect();
    if output.is_json() {
        let problems = listing
            .problems
            .into_iter()
            .map(|(session, error)| SessionProblem { session, error: error.to_string() })
            .collect();
        let document = SessionsDocument { format: DOCUMENT_FORMAT, sessions, problems };
        return output.reply(document, failed.as_ref());
    }
    if sessions.is_empty() && failed.is_none() {
        output.say(&match scope.session() {
            Some(_) => super::within("no job, turn or message", &scope),
            None => "no session has a job, a turn or a message".to_owned(),
        });
        return Ok(0);
    }
    let row = |session: &SessionDocument| {
        vec![word(session).to_owned(), clean_line(session.session.as_str()), details(session)]
    };
    let rows: Vec<_> = sessions.iter().map(row).collect();
    output.text(&table::grid(&["STATE", "SESSION", "HAS"], &rows, 2, output.width()))?;
    failed.map_or(Ok(0), Err)
}

/// Names the sessions that could not be read, for people, and returns the error that a command ends with which lists
/// sessions: what it lists is not complete.
pub(super) fn unread(problems: &[(String, StoreError)], output: &Output) -> Option<CliError> {
    if !output.is_json() {
        for (session, error) in problems {
            output.warn(&format!("session `{}` cannot be read: {error}", clean_line(session)));
        }
    }
    (!problems.is_empty()).then_some(CliError::Partly)
}

/// A session for programs.
pub(crate) fn document(seen: &SeenSession, owners: &BTreeMap<Session, usize>) -> SessionDocument {
    let state = seen.state();
    let last = seen.facts.last_begin();
    let dead_letters = || seen.open_messages().filter(|(_, message)| message.is_dead_letter());
    SessionDocument {
        session: seen.session.clone(),
        turn: state.in_turn,
        interrupted: state.interrupted.map(|turn| InterruptedDocument {
            turn: turn.turn,
            reason: turn.reason,
            at: turn.at.map(|at| at.wall_ms.to_string()),
        }),
        suspended: state.suspended(),
        jobs: owners.get(&seen.session).copied().unwrap_or(0),
        waiting: seen.facts.waiting().count(),
        waits_for_host: seen.waits_for_host(),
        dead_letters: dead_letters().count(),
        dead_letter_error: dead_letters()
            .find_map(|(_, message)| message.last_result().map(|result| result.error.clone())),
        sink: last.and_then(|last| last.sink.clone()),
        destination: last.and_then(|last| last.destination.clone()),
        last_turn_at: last.map(|last| last.at.wall_ms.to_string()),
    }
}

fn word(session: &SessionDocument) -> &'static str {
    match session {
        SessionDocument { turn: Some(_), .. } => "in a turn",
        SessionDocument { suspended: Some(_), .. } => "suspended",
        SessionDocument { interrupted: Some(_), .. } => "interrupted",
        _ => "idle",
    }
}

fn details(session: &SessionDocument) -> String {
    let mut details = Vec::new();
    match (&session.suspended, &session.interrupted) {
        (Some(reason), _) => details.push(reason.clone()),
        (None, Some(turn)) => details.push(format!("turn {}: {}", turn.turn, turn.reason)),
        (None, None) => {}
    }
    let mut count = |n: usize, what: &str| details.extend((n > 0).then(|| format!("{n} {what}")));
    count(session.jobs, if session.jobs == 1 { "job" } else { "jobs" });
    match session.waits_for_host {
        true => count(session.waiting, "waiting for a host (hearback serve)"),
        false => count(session.waiting, "waiting"),
    }
    count(session.dead_letters, if session.dead_letters == 1 { "dead letter" } else { "dead letters" });
    details.extend(session.dead_letter_error.as_deref().map(clean_line));
    if details.is_empty() { "-".to_owned() } else { details.join("; ") }
}
