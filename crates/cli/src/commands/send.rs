//! `hearback send`

use std::io::Read as _;

use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::SentDocument;
use hearback::{Hearback, MAX_MESSAGE_BYTES, OutgoingMessage};

use crate::args::SendArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: SendArgs, output: &Output) -> Result<u32, CliError> {
    let session = super::session(args.session.as_ref(), "a message")?;
    let text = match args.text.as_str() {
        "-" => {
            let mut text = String::new();
            // One byte more than is allowed, so that the library sees that the text is too long.
            let most = u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
            std::io::stdin().take(most).read_to_string(&mut text).map_err(CliError::Stdin)?;
            text
        }
        _ => args.text,
    };
    let (sink, destination) = (args.sink, args.destination);
    let sent = hearback.send(&OutgoingMessage { session: session.clone(), text, sink, destination })?;
    if output.is_json() {
        let (message, interrupted, in_turn) = (sent.n, sent.interrupted, sent.in_turn);
        output.document(&SentDocument { format: DOCUMENT_FORMAT, session, message, interrupted, in_turn })?;
        return Ok(0);
    }
    output.line(&sent.n.to_string())?;
    output.hint(match (sent.interrupted, sent.in_turn) {
        (true, _) => "stored; the session's turn was interrupted for it",
        (false, true) => "stored; the session gets it after its current turn",
        (false, false) => "stored, and being delivered",
    });
    Ok(0)
}
