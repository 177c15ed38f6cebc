//! `hearback turn`

use hearback_core::Exit;

use crate::cli::args::TurnArgs;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::{Hearback, Wait};

/// The session is in a turn already.
const BUSY: u32 = 75;

pub(crate) fn run(hearback: &Hearback, args: &TurnArgs, output: &Output) -> Result<u32, CliError> {
    let session = match &args.session {
        Some(session) => Some(session.clone()),
        None => crate::current_session()?,
    };
    let session = session
        .ok_or_else(|| CliError::Usage("a turn belongs to a session: name it with --session".into()))?;
    let wait = if args.no_wait { Wait::Try } else { Wait::Block };
    let ran = hearback.in_turn(&session, wait, || {
        let variables = [("HEARBACK_SESSION".into(), session.as_str().into())];
        hearback_platform::Native::default().run_in_front(&args.argv, &variables)
    })?;
    match ran {
        None => {
            output.say("the session is in a turn");
            Ok(BUSY)
        }
        Some(Ok(Exit::Exited { code })) => Ok(code),
        Some(Ok(Exit::Signaled { signal, .. })) => Ok(128 + signal.unsigned_abs()),
        Some(Err(error)) => Err(CliError::Agent(error)),
    }
}
