//! Turns of a session: one at a time, each with a begin before its agent runs and an end after it.

use std::time::Duration;

use hearback_core::note::{self, HistoryEnd, Note, Silence};
use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::session::{
    Interruption, MessageFact, MessageFacts, MessageHow, SessionFacts, TurnBegin, TurnCause, TurnFact,
    TurnHow, fold_session,
};
use hearback_core::{Durability, Extra, FORMAT, JobId, LockState, OsText, Session};

use super::active_turns::{ActiveTurn, ActiveTurns};
use tracing::debug;

use crate::Ports;

/// How many turns are kept: enough to see that a session is interrupted again and again.
const TURNS_KEPT: usize = 8;
/// How long the processes of a turn may take to die after a kill.
const KILL_WITHIN: Duration = Duration::from_secs(2);
/// The time between terminating an agent and killing it.
const GRACE: Duration = Duration::from_secs(2);

/// Begins turns. The process that begins one holds the session's turn lock.
#[derive(Debug, Clone, Copy)]
pub struct Turns<'a> {
    /// The ports.
    pub ports: &'a Ports,
    /// The turns of this process.
    pub active_turns: &'a ActiveTurns,
    /// How old an interruption may be for a turn to continue from it; zero means any age.
    pub window: Duration,
    /// What has to survive a power cut.
    pub durability: Durability,
}

/// What is known about a turn before it begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// What it is for.
    pub cause: TurnCause,
    /// The sink that runs the agent.
    pub sink: Option<String>,
    /// Where the host shows what the agent says.
    pub destination: Option<String>,
    /// Where the agent runs.
    pub cwd: Option<OsText>,
    /// How the conversation ends, according to the host.
    pub history: HistoryEnd,
    /// Why an earlier turn for the same message or follow-up was cut short, if one was.
    pub repeats: Option<Interruption>,
}

impl Beginning {
    /// A turn of which only the cause is known.
    pub fn new(cause: TurnCause) -> Self {
        Self { cause, sink: None, destination: None, cwd: None, history: HistoryEnd::Unknown, repeats: None }
    }
}

impl<'a> Turns<'a> {
    /// Begins a turn; none if this process takes no further turn. The caller holds the session's turn lock.
    ///
    /// If the turn before it has no end, it was cut short by a death. What is left of it is killed first, so that two
    /// turns never overlap.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written, or processes of the turn before survive.
    pub fn begin(&self, session: &Session, what: Beginning) -> Result<Option<OpenTurn<'a>>, StoreError> {
        let sessions = &self.ports.sessions;
        let mut facts = sessions.session(session)?;
        if self.close_cut_short(session, &facts)? {
            facts = sessions.session(session)?;
        }
        let now = self.ports.clock.stamp();
        let state = fold_session(&facts, LockState::Free);
        let note = note::decide(&state, what.history, Silence::default(), &now, self.window)
            .or_else(|| what.repeats.map(Note::repeat));
        let last = facts.last_begin();
        let destination = what.destination.or_else(|| last.and_then(|last| last.destination.clone()));
        let (mut turn, mark) = (facts.last_turn() + 1, sessions.mint(self.ports.clock.wall()));
        let begin = TurnBegin {
            format: FORMAT,
            session: session.clone(),
            at: now,
            by: self.ports.processes.me()?,
            mark: mark.clone(),
            cause: what.cause,
            sink: what.sink,
            destination: destination.clone(),
            cwd: what.cwd,
            extra: Extra::new(),
        };
        let begin = TurnFact::Begin(Box::new(begin));
        loop {
            let destination = destination.clone().unwrap_or_else(|| session.to_string());
            let active = ActiveTurn { session: session.clone(), turn, mark: mark.clone(), destination };
            // Before it is recorded: a drain of this process marks every turn in this list.
            if !self.active_turns.begin(active) {
                return Ok(None);
            }
            let held =
                HeldTurn { session: session.clone(), number: turn, mark: mark.clone(), note: note.clone() };
            let open = OpenTurn { turns: *self, turn: Some(held) };
            match sessions.publish_turn(session, turn, &begin, self.durability)? {
                Publish::New => return Ok(Some(open)),
                // A leftover of a turn whose records were being removed.
                Publish::Exists => turn += 1,
            }
        }
    }

    /// Closes a turn that was cut short by a death: kills its processes, and records its end. Returns whether there was
    /// one. The caller holds the session's turn lock.
    ///
    /// # Errors
    ///
    /// When the records cannot be written, or processes of the turn survive.
    pub fn close_cut_short(&self, session: &Session, facts: &SessionFacts) -> Result<bool, StoreError> {
        let Some((turn, cut_short)) = facts.turns.last().filter(|(_, turn)| turn.end.is_absent()) else {
            return Ok(false);
        };
        let begin = cut_short.begin.present();
        if let Some(begin) = begin {
            let report = self.ports.processes.sweep_marked(&begin.mark, Duration::ZERO, KILL_WITHIN)?;
            if !report.survivors.is_empty() {
                let pids: Vec<_> = report.survivors.iter().map(|who| who.pid.to_string()).collect();
                let why = format!("the turn before has processes that survived: {}", pids.join(", "));
                return Err(std::io::Error::other(why).into());
            }
        }
        let how = match begin.map(|begin| &begin.cause) {
            // Its agent had taken the message: only the end of the turn is missing.
            Some(TurnCause::Message { n, .. }) if is_delivered(facts, *n) => TurnHow::Done,
            _ => TurnHow::Interrupted { reason: cut_short.reason() },
        };
        self.conclude(session, *turn, facts, begin.map(|begin| &begin.cause), &how)?;
        Ok(true)
    }

    fn conclude(
        &self,
        session: &Session,
        turn: u32,
        facts: &SessionFacts,
        cause: Option<&TurnCause>,
        how: &TurnHow,
    ) -> Result<(), StoreError> {
        let now = || self.ports.clock.stamp();
        // A message whose turn was cut short is delivered again at once, and no attempt is spent, unless that happens
        // again and again. If the turn was cut short for another message, that one overtakes it.
        if let (Some(TurnCause::Message { n, attempt }), TurnHow::Interrupted { reason }) = (cause, how) {
            let fact = match reason {
                Interruption::Message => MessageFact::receipt(now(), MessageHow::Overtaken),
                _ => {
                    let message = facts.message(*n);
                    let before = message.map_or(0, MessageFacts::cut_short_in_a_row);
                    MessageFact::interrupted(*attempt, now(), *reason, before)
                }
            };
            let _ = self.ports.sessions.publish_message(session, *n, &fact, self.durability)?;
        }
        let end = TurnFact::end(now(), how.clone());
        let _ = self.ports.sessions.publish_turn(session, turn, &end, self.durability)?;
        Ok(())
    }

    /// Interrupts the turn of a session for the message of this number, whichever process runs it. Returns whether
    /// there was one. A turn of that message itself, or of a later one, is left alone.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written, or the processes cannot be seen.
    pub fn interrupt_for(&self, session: &Session, message: u32) -> Result<bool, StoreError> {
        let facts = self.ports.sessions.session(session)?;
        let state = fold_session(&facts, self.ports.turn_lock(session)?);
        let begin = facts.turns.last().and_then(|(_, turn)| turn.begin.present());
        let (Some(turn), Some(begin)) = (state.in_turn, begin) else { return Ok(false) };
        if matches!(begin.cause, TurnCause::Message { n, .. } if n >= message) {
            return Ok(false);
        }
        interrupt(self.ports, session, turn, &begin.mark, Interruption::Message, self.durability)?;
        Ok(true)
    }
}

fn is_delivered(facts: &SessionFacts, n: u32) -> bool {
    let receipt = facts.message(n).and_then(|message| message.receipt.present());
    receipt.is_some_and(|receipt| receipt.how == MessageHow::Delivered)
}

/// A turn that is in progress. It is no longer counted among those of this process when this is dropped.
#[derive(Debug)]
pub struct OpenTurn<'a> {
    turns: Turns<'a>,
    /// There until it is held by itself.
    turn: Option<HeldTurn>,
}

/// A turn that is in progress, by itself: for a process that has others to do meanwhile. It has to be ended with
/// [`Turns::end_held`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTurn {
    /// Its session.
    pub session: Session,
    /// Its number.
    pub number: u32,
    /// The mark that every process of its agent carries.
    pub mark: JobId,
    /// What its agent hears first, if the turn before was cut short.
    pub note: Option<Note>,
}

impl OpenTurn<'_> {
    fn held(&self) -> &HeldTurn {
        self.turn.as_ref().expect("only `hold` takes it, and this with it")
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.held().number
    }

    /// Its session.
    pub fn session(&self) -> &Session {
        &self.held().session
    }

    /// The mark that every process of its agent carries.
    pub fn mark(&self) -> &JobId {
        &self.held().mark
    }

    /// What its agent hears first, if the turn before was cut short.
    pub fn note(&self) -> Option<&Note> {
        self.held().note.as_ref()
    }

    /// Ends the turn, and returns how. A turn that failed after a request to interrupt it was interrupted.
    ///
    /// # Errors
    ///
    /// When the end cannot be recorded.
    pub fn end(self, how: TurnHow) -> Result<TurnHow, StoreError> {
        self.turns.record_end(self.held(), how)
    }

    /// The turn by itself.
    pub fn hold(mut self) -> HeldTurn {
        self.turn.take().expect("only `hold` takes it, and this with it")
    }
}

impl Drop for OpenTurn<'_> {
    fn drop(&mut self) {
        if let Some(turn) = &self.turn {
            self.turns.active_turns.end(&turn.session, turn.number);
        }
    }
}

impl Turns<'_> {
    /// Ends a turn that is held by itself, and returns how; see [`OpenTurn::end`].
    ///
    /// # Errors
    ///
    /// When the end cannot be recorded. The turn is over all the same.
    pub fn end_held(&self, turn: &HeldTurn, how: TurnHow) -> Result<TurnHow, StoreError> {
        let ended = self.record_end(turn, how);
        self.active_turns.end(&turn.session, turn.number);
        ended
    }

    fn record_end(&self, turn: &HeldTurn, how: TurnHow) -> Result<TurnHow, StoreError> {
        let HeldTurn { session, number, .. } = turn;
        let facts = self.ports.sessions.session(session)?;
        let ours = facts.turns.iter().find(|(n, _)| n == number).map(|(_, turn)| turn);
        let interrupt = ours.and_then(|turn| turn.interrupt.present());
        let how = match (how, interrupt) {
            (TurnHow::Failed { .. }, Some(interrupt)) => TurnHow::Interrupted { reason: interrupt.reason },
            (how, _) => how,
        };
        let cause = ours.and_then(|turn| turn.begin.present()).map(|begin| &begin.cause);
        self.conclude(session, *number, &facts, cause, &how)?;
        // Best effort: the next turn tries again.
        if let Err(error) = self.ports.sessions.forget(session, TURNS_KEPT) {
            debug!(%session, %error, "old turns not forgotten");
        }
        debug!(%session, turn = number, ?how, "turn ended");
        Ok(how)
    }
}

/// Interrupts a turn: records the interruption, terminates the agent, and kills it after the grace.
///
/// The process that runs the turn records its end. Only processes that carry the mark of the turn are signalled.
///
/// # Errors
///
/// When the interruption cannot be recorded, or the processes cannot be seen.
pub fn interrupt(
    ports: &Ports,
    session: &Session,
    turn: u32,
    mark: &JobId,
    reason: Interruption,
    durability: Durability,
) -> Result<(), StoreError> {
    let fact = TurnFact::interrupt(ports.clock.stamp(), reason);
    let _ = ports.sessions.publish_turn(session, turn, &fact, durability)?;
    ports.processes.sweep_marked(mark, GRACE, KILL_WITHIN)?;
    Ok(())
}

#[cfg(test)]
mod tests;
