//! `hearback turn`

use std::ffi::OsString;

use hearback_core::session::TurnHow;
use hearback_core::{Exit, Outcome};

use crate::cli::args::TurnArgs;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::session::{NOTE_VARIABLE, TURN_VARIABLE, VARIABLE, current_turn};
use crate::{Hearback, TurnRequest, Wait};

/// The session is in a turn already.
const BUSY: u32 = 75;

pub(crate) fn run(hearback: &Hearback, args: &TurnArgs, output: &Output) -> Result<u32, CliError> {
    let session = super::session(args.session.as_ref(), "a turn")?;
    // It would wait for itself.
    if current_turn().is_some_and(|turn| turn.session == session) {
        return Err(CliError::InTurn(session));
    }
    let wait = if args.no_wait { Wait::Try } else { Wait::Block };
    let history = args.history.map(Into::into).unwrap_or_default();
    let request = TurnRequest { destination: args.destination.clone(), history };
    let ran = hearback.in_turn(&session, wait, request, |turn| {
        let set = |name: &str, value: String| (OsString::from(name), Some(OsString::from(value)));
        let variables = [
            set(VARIABLE, session.to_string()),
            set(TURN_VARIABLE, turn.number().to_string()),
            (NOTE_VARIABLE.into(), turn.note().map(|note| note.text.clone().into())),
        ];
        let ran = hearback_platform::Native::default().run_in_front(&args.argv, &variables, turn.mark());
        let how = match &ran {
            Ok(Exit::Exited { code: 0 }) => TurnHow::Done,
            Ok(exit) => TurnHow::Failed { error: exit.to_string() },
            Err(error) => TurnHow::Failed { error: error.to_string() },
        };
        (ran, how)
    })?;
    match ran {
        None => {
            output.say("the session is in a turn");
            Ok(BUSY)
        }
        Some(Ok(exit)) => Ok(Outcome::from(exit).exit_code()),
        Some(Err(error)) => Err(CliError::Agent(error)),
    }
}
