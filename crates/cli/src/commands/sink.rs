//! `hearback sink`

use hearback::core::port::sink::{SinkError, SinkReply};
use hearback::core::{DOCUMENT_FORMAT, Session};
use hearback::documents::SinkTestDocument;
use hearback::{Guarded, Hearback, argv};

use crate::args::{SinkCommand, SinkTestArgs};
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, command: &SinkCommand, output: &Output) -> Result<u32, CliError> {
    match command {
        SinkCommand::List => {
            for name in hearback.sink_names() {
                output.line(&name)?;
            }
            Ok(0)
        }
        SinkCommand::Test(args) => test(hearback, args, output),
    }
}

fn test(hearback: &Hearback, args: &SinkTestArgs, output: &Output) -> Result<u32, CliError> {
    if !hearback.has_sink(&args.name) {
        return Err(CliError::Sink(SinkError::Missing(args.name.clone())));
    }
    let session: Option<Session> = match &args.session {
        Some(session) => Some(session.clone()),
        None => hearback::current_session()?,
    };
    let sample = hearback.sample_delivery(&argv(["true"])?, session);
    let reply = hearback.try_sink(&args.name, &sample);
    let (delivered, text) = match &reply {
        Ok(SinkReply::Delivered) => (true, "delivered".to_owned()),
        Ok(SinkReply::Busy) => {
            (false, "busy: the session is in a turn; hearback would retry, and this is not counted".into())
        }
        Ok(SinkReply::Gone { reason }) => (false, format!("gone: {reason}")),
        Ok(SinkReply::RetryAfter { millis }) => {
            (false, format!("not now: hearback would retry after {millis} ms"))
        }
        Ok(_) => (false, "an unknown reply".into()),
        Err(Guarded::Denied(denied)) => return Err((*denied).into()),
        Err(error) => (false, error.to_string()),
    };
    if output.is_json() {
        let (sink, reply) = (args.name.clone(), text);
        output.document(&SinkTestDocument { format: DOCUMENT_FORMAT, sink, delivered, reply })?;
    } else {
        output.line(&format!("{}: {}", args.name, hearback::core::message::clean_line(&text)))?;
    }
    Ok(u32::from(!delivered))
}
