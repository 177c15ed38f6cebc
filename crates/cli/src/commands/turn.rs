//! `hearback turn`

use hearback::core::Outcome;
use hearback::session::current_turn;
use hearback::{Hearback, TurnRequest, Wait};

use crate::args::TurnArgs;
use crate::error::CliError;
use crate::output::Output;

/// The session is already in a turn.
const BUSY: u32 = 75;

pub(crate) fn run(hearback: &Hearback, args: &TurnArgs, output: &Output) -> Result<u32, CliError> {
    let session = super::session(args.session.as_ref(), "a turn")?;
    // The command would wait for itself.
    if current_turn().is_some_and(|turn| turn.session == session) {
        return Err(CliError::InTurn(session));
    }
    let wait = if args.no_wait { Wait::Try } else { Wait::Block };
    let history = args.history.map(Into::into).unwrap_or_default();
    let request = TurnRequest { destination: args.destination.clone(), history };
    match hearback.run_agent(&session, wait, request, &args.argv)? {
        None => {
            output.say("the session is already in a turn");
            Ok(BUSY)
        }
        Some(Ok(exit)) => Ok(Outcome::from(exit).exit_code()),
        Some(Err(error)) => Err(CliError::Agent(error)),
    }
}
