//! `hearback turn`

use hearback::core::{DOCUMENT_FORMAT, Outcome};
use hearback::documents::{ErrorKind, TurnDocument};
use hearback::session::current_turn;
use hearback::{Hearback, TurnRequest, Wait};

use crate::args::TurnArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: &TurnArgs, output: &Output) -> Result<u32, CliError> {
    let session = super::session(args.session.as_ref(), "a turn")?;
    // The command would wait for itself.
    if current_turn().is_some_and(|turn| turn.session == session) {
        return Err(CliError::InTurn(session));
    }
    let wait = if args.no_wait { Wait::Try } else { Wait::Block };
    let history = args.history.map(Into::into).unwrap_or_default();
    let mut request = TurnRequest::default();
    request.destination = args.destination.clone();
    request.history = history;
    match hearback.run_agent(&session, wait, request, &args.argv)? {
        None => {
            if !output.is_json() {
                output.say("the session is already in a turn");
            }
            Err(CliError::no(ErrorKind::Busy, format!("session `{session}` is already in a turn")))
        }
        Some(Ok(exit)) => {
            let outcome = Outcome::from(exit);
            let code = outcome.exit_code();
            if output.is_json() {
                // The output of the agent may not end with a line break, and this has to be a line of its own.
                output.bytes(b"\n")?;
                output.object(&TurnDocument { format: DOCUMENT_FORMAT, session, outcome })?;
            }
            Ok(code)
        }
        Some(Err(error)) => Err(CliError::Agent(error)),
    }
}
