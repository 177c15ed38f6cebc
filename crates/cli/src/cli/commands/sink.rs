//! `hearback sink`

use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{DOCUMENT_FORMAT, Session};

use crate::cli::args::{SinkCommand, SinkTestArgs};
use crate::cli::documents::SinkTestDocument;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::{Hearback, argv};

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
        None => crate::current_session()?,
    };
    let sample = hearback.sample_delivery(&argv(["true"])?, session);
    let answer = hearback.try_sink(&args.name, &sample);
    let (delivered, said) = match &answer {
        Ok(SinkReply::Delivered) => (true, "delivered".to_owned()),
        Ok(SinkReply::Busy) => {
            (false, "the session is busy: it would be tried again, and no attempt is spent".into())
        }
        Ok(SinkReply::Gone { reason }) => (false, format!("the session is gone: {reason}")),
        Ok(SinkReply::RetryAfter { millis }) => (false, format!("it would be tried again after {millis} ms")),
        Ok(_) => (false, "an answer that is not known".into()),
        Err(error) => (false, error.to_string()),
    };
    if output.is_json() {
        let (sink, answer) = (args.name.clone(), said);
        output.document(&SinkTestDocument { format: DOCUMENT_FORMAT, sink, delivered, answer })?;
    } else {
        output.line(&format!("{}: {}", args.name, hearback_core::message::clean_line(&said)))?;
    }
    Ok(u32::from(!delivered))
}
