//! `hearback sink`

use hearback::core::message::clean_line;
use hearback::core::port::sink::SinkReply;
use hearback::core::{DOCUMENT_FORMAT, Session};
use hearback::documents::{ErrorKind, SinkDocument, SinkTestDocument, SinksDocument};
use hearback::{Capability, Guarded, Hearback, argv};

use crate::args::{SinkCommand, SinkTestArgs};
use crate::error::CliError;
use crate::output::{BAD, GOOD, Output};
use crate::table;

pub(crate) fn run(hearback: &Hearback, command: &SinkCommand, output: &Output) -> Result<u32, CliError> {
    match command {
        SinkCommand::List => list(hearback, output),
        SinkCommand::Test(args) => test(hearback, args, output),
    }
}

fn list(hearback: &Hearback, output: &Output) -> Result<u32, CliError> {
    if output.is_json() {
        let details = hearback.sinks().into_iter().map(SinkDocument::from).collect();
        let document = SinksDocument { format: DOCUMENT_FORMAT, sinks: hearback.sink_names(), details };
        return output.reply(document, None);
    }
    // A script reads the names alone.
    if !output.is_watched() {
        let names: String = hearback.sink_names().iter().map(|name| format!("{name}\n")).collect();
        output.text(&names)?;
        return Ok(0);
    }
    let rows = hearback.sinks().into_iter().map(|sink| {
        let here = match (&sink.problem, sink.needs_session) {
            (Some(problem), _) => format!("{BAD}no{BAD:#}: {}", clean_line(problem)),
            (None, true) => format!("{GOOD}yes{GOOD:#}, for a job with a session"),
            (None, false) => format!("{GOOD}yes{GOOD:#}"),
        };
        vec![clean_line(&sink.name), here]
    });
    let rows: Vec<_> = rows.collect();
    output.text(&table::grid(&["SINK", "CAN BE USED HERE"], &rows, 1, output.width()))?;
    output.hint("`hearback sink --help` shows how to define another");
    Ok(0)
}

/// Sends a sample, and prints the reply.
pub(super) fn test(hearback: &Hearback, args: &SinkTestArgs, output: &Output) -> Result<u32, CliError> {
    hearback.permissions().check(Capability::Sink)?;
    hearback.check_sink(&args.name)?;
    let session: Option<Session> = match &args.session {
        Some(session) => Some(session.clone()),
        None => hearback::current_session()?,
    };
    let sample = hearback.sample_delivery(&argv(["true"])?, session);
    let reply = hearback.try_sink(&args.name, &sample);
    let (delivered, text) = match &reply {
        Ok(SinkReply::Delivered) => (true, "delivered".to_owned()),
        Ok(SinkReply::Queued) => (true, "queued by the agent".to_owned()),
        Ok(SinkReply::Busy { reason, .. }) => {
            let why = if reason.is_empty() { "the session is in a turn" } else { reason };
            (false, format!("busy: {why}; hearback would retry, and this is not counted"))
        }
        Ok(SinkReply::Unreachable { reason, .. }) => {
            (false, format!("{reason}; hearback would tell the next sink of the chain, and retry"))
        }
        Ok(SinkReply::Gone { reason }) if reason.is_empty() => (false, "nobody is there".into()),
        Ok(SinkReply::Gone { reason }) => (false, format!("nobody can be told there: {reason}")),
        Ok(SinkReply::RetryAfter { millis }) => {
            (false, format!("not now: hearback would retry after {millis} ms"))
        }
        Ok(_) => (false, "an unknown reply".into()),
        Err(Guarded::Denied(denied)) => return Err((*denied).into()),
        Err(error) => (false, error.to_string()),
    };
    let failed = (!delivered).then(|| {
        CliError::no(
            ErrorKind::NotDelivered,
            format!("sink `{}` did not accept the sample: {text}", args.name),
        )
    });
    if output.is_json() {
        let (sink, reply) = (args.name.clone(), text);
        let document = SinkTestDocument { format: DOCUMENT_FORMAT, sink, delivered, reply };
        return output.reply(document, failed.as_ref());
    }
    output.prose(&format!("{}: {}", args.name, clean_line(&text)))?;
    failed.map_or(Ok(0), Err)
}
