//! `hearback send`

use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::SentDocument;
use hearback::{Hearback, OutgoingMessage, Sent};

use crate::args::SendArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: SendArgs, output: &Output) -> Result<u32, CliError> {
    let session = super::session(args.session.as_ref(), "a message")?;
    let text = super::text_or_input(args.text)?;
    let (sink, destination) = (args.sink, args.destination);
    let mut message = OutgoingMessage::new(session.clone(), text);
    message.sink = sink;
    message.destination = destination;
    let sent = hearback.send(&message)?;
    if output.is_json() {
        let (message, interrupted, in_turn) = (sent.n, sent.interrupted, sent.in_turn);
        output.document(&SentDocument { format: DOCUMENT_FORMAT, session, message, interrupted, in_turn })?;
        return Ok(0);
    }
    output.line(&sent.n.to_string())?;
    output.hint(fate(&sent));
    Ok(0)
}

/// What happens to a message now.
pub(super) fn fate(sent: &Sent) -> &'static str {
    match (sent.interrupted, sent.in_turn) {
        (true, _) => "stored; the session's turn was interrupted for it",
        (false, true) => "stored; the session gets it after its current turn",
        (false, false) => "stored, and being delivered",
    }
}
