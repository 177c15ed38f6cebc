//! Turns of a session: one at a time, each with a begin before its agent runs and an end after it.

use std::time::Duration;

use hearback_core::note::{self, HistoryEnd, Note, Silence};
use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionLock;
use hearback_core::session::{
    Interruption, MessageFact, MessageHow, SessionFacts, TurnBegin, TurnCause, TurnFact, TurnHow,
    fold_session,
};
use hearback_core::{Durability, Extra, FORMAT, JobId, LockState, OsText, Session};

use super::active_turns::{ActiveTurn, ActiveTurns};
use tracing::debug;

use crate::Ports;

/// So many turns are remembered: more than it takes to see that a session is interrupted again and again.
const TURNS_KEPT: usize = 8;
/// How long what is left of a turn may take to die.
const FORCE_WITHIN: Duration = Duration::from_secs(2);
/// Between asking an agent to end and forcing it.
const GRACE: Duration = Duration::from_secs(2);

/// Begins turns. Whoever does so holds the session's lock.
#[derive(Debug, Clone, Copy)]
pub struct Turns<'a> {
    /// The world.
    pub ports: &'a Ports,
    /// The turns of this process.
    pub active_turns: &'a ActiveTurns,
    /// How old an interruption may be for a turn to go on from it; zero means however old.
    pub window: Duration,
    /// What has to survive a power cut.
    pub durability: Durability,
}

/// What a turn is to be.
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
    /// What the host says the conversation ends with.
    pub history: HistoryEnd,
}

impl Beginning {
    /// A turn of which nothing is known but what it is for.
    pub fn new(cause: TurnCause) -> Self {
        Self { cause, sink: None, destination: None, cwd: None, history: HistoryEnd::Unknown }
    }
}

impl<'a> Turns<'a> {
    /// Begins a turn; nothing when this process takes no further one. The caller holds the session's lock.
    ///
    /// A turn before it that has no end was cut short by a death: what is left of it is ended first, so that two turns
    /// never overlap.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written, or what is left of the turn before would not end.
    pub fn begin(&self, session: &Session, what: Beginning) -> Result<Option<OpenTurn<'a>>, StoreError> {
        let sessions = &self.ports.sessions;
        let mut facts = sessions.session(session)?;
        if self.close_forsaken(session, &facts)? {
            facts = sessions.session(session)?;
        }
        let now = self.ports.clock.stamp();
        let state = fold_session(&facts, LockState::Free);
        let note = note::decide(&state, what.history, Silence::default(), &now, self.window);
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
            // Noted before it is recorded: whoever stops this process marks every turn that it knows of.
            if !self.active_turns.begin(active) {
                return Ok(None);
            }
            let open = OpenTurn {
                turns: *self,
                session: session.clone(),
                turn,
                mark: mark.clone(),
                note: note.clone(),
            };
            match sessions.publish_turn(session, turn, &begin, self.durability)? {
                Publish::New => return Ok(Some(open)),
                // What is left of one that was being forgotten.
                Publish::Exists => turn += 1,
            }
        }
    }

    /// Ends what a turn without an end left behind, and records what became of it; tells whether there was one. The
    /// caller holds the session's lock.
    ///
    /// # Errors
    ///
    /// When the records cannot be written, or what is left would not end.
    pub fn close_forsaken(&self, session: &Session, facts: &SessionFacts) -> Result<bool, StoreError> {
        let Some((turn, forsaken)) = facts.turns.last().filter(|(_, turn)| turn.end.is_absent()) else {
            return Ok(false);
        };
        let begin = forsaken.begin.present();
        if let Some(begin) = begin {
            let report = self.ports.processes.sweep_marked(&begin.mark, Duration::ZERO, FORCE_WITHIN)?;
            if !report.survivors.is_empty() {
                let pids: Vec<_> = report.survivors.iter().map(|who| who.pid.to_string()).collect();
                let why = format!("the turn before would not end: process {}", pids.join(", "));
                return Err(std::io::Error::other(why).into());
            }
        }
        let how = match begin.map(|begin| &begin.cause) {
            // Its agent had taken the message: only the last word is missing.
            Some(TurnCause::Message { n, .. }) if is_delivered(facts, *n) => TurnHow::Done,
            _ => TurnHow::Interrupted { reason: forsaken.reason() },
        };
        self.conclude(session, *turn, begin.map(|begin| &begin.cause), &how)?;
        Ok(true)
    }

    fn conclude(
        &self,
        session: &Session,
        turn: u32,
        cause: Option<&TurnCause>,
        how: &TurnHow,
    ) -> Result<(), StoreError> {
        let now = || self.ports.clock.stamp();
        // A message whose turn was cut short comes again, at once and for nothing; unless another was to be first.
        if let (Some(TurnCause::Message { n, attempt }), TurnHow::Interrupted { reason }) = (cause, how) {
            let fact = match reason {
                Interruption::Message => MessageFact::receipt(now(), MessageHow::Overtaken),
                _ => MessageFact::result(*attempt, now(), format!("interrupted: {reason}"), false, Some(0)),
            };
            let _ = self.ports.sessions.publish_message(session, *n, &fact, self.durability)?;
        }
        let end = TurnFact::end(now(), how.clone());
        let _ = self.ports.sessions.publish_turn(session, turn, &end, self.durability)?;
        Ok(())
    }

    /// Cuts the turn short that a session is in, whoever runs it, for the message of this number; tells whether there
    /// was one. The turn of that message itself is left alone, and so is that of a later one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written, or the processes cannot be seen.
    pub fn interrupt_for(&self, session: &Session, message: u32) -> Result<bool, StoreError> {
        let facts = self.ports.sessions.session(session)?;
        let state = fold_session(&facts, self.is_in_turn(session)?);
        let begin = facts.turns.last().and_then(|(_, turn)| turn.begin.present());
        let (Some(turn), Some(begin)) = (state.in_turn, begin) else { return Ok(false) };
        if matches!(begin.cause, TurnCause::Message { n, .. } if n >= message) {
            return Ok(false);
        }
        interrupt(self.ports, session, turn, &begin.mark, Interruption::Message, self.durability)?;
        Ok(true)
    }

    /// Whether somebody is in a turn of a session.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn is_in_turn(&self, session: &Session) -> Result<LockState, StoreError> {
        let lock =
            self.ports.sessions.lock_session(session, SessionLock::Turn, LockMode::Shared, Wait::Try)?;
        Ok(if lock.is_some() { LockState::Free } else { LockState::Held })
    }
}

fn is_delivered(facts: &SessionFacts, n: u32) -> bool {
    let message = facts.messages.iter().find(|(number, _)| *number == n);
    let receipt = message.and_then(|(_, message)| message.receipt.present());
    receipt.is_some_and(|receipt| receipt.how == MessageHow::Delivered)
}

/// A turn that is under way.
#[derive(Debug)]
pub struct OpenTurn<'a> {
    turns: Turns<'a>,
    session: Session,
    turn: u32,
    mark: JobId,
    note: Option<Note>,
}

impl OpenTurn<'_> {
    /// Its number.
    pub fn number(&self) -> u32 {
        self.turn
    }

    /// By which every process of its agent is to be known.
    pub fn mark(&self) -> &JobId {
        &self.mark
    }

    /// What its agent is to be told first.
    pub fn note(&self) -> Option<&Note> {
        self.note.as_ref()
    }

    /// Ends it, and tells how: a turn that was being cut short and did not end well was cut short.
    ///
    /// # Errors
    ///
    /// When that cannot be recorded.
    pub fn end(self, how: TurnHow) -> Result<TurnHow, StoreError> {
        let facts = self.turns.ports.sessions.session(&self.session)?;
        let ours = facts.turns.iter().find(|(n, _)| *n == self.turn).map(|(_, turn)| turn);
        let interrupt = ours.and_then(|turn| turn.interrupt.present());
        let how = match (how, interrupt) {
            (TurnHow::Failed { .. }, Some(interrupt)) => TurnHow::Interrupted { reason: interrupt.reason },
            (how, _) => how,
        };
        let cause = ours.and_then(|turn| turn.begin.present()).map(|begin| &begin.cause);
        self.turns.conclude(&self.session, self.turn, cause, &how)?;
        // Best effort: the next turn does it as well.
        if let Err(error) = self.turns.ports.sessions.forget(&self.session, TURNS_KEPT) {
            debug!(session = %self.session, %error, "old turns not forgotten");
        }
        debug!(session = %self.session, turn = self.turn, ?how, "turn ended");
        Ok(how)
    }
}

impl Drop for OpenTurn<'_> {
    fn drop(&mut self) {
        self.turns.active_turns.end(&self.session, self.turn);
    }
}

/// Cuts a turn short: says so, then asks its agent to end, and forces it if it does not.
///
/// Whoever runs the turn records its end. Nobody else is signalled than who carries the mark of that turn.
///
/// # Errors
///
/// When it cannot be recorded, or the processes cannot be seen.
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
    ports.processes.sweep_marked(mark, GRACE, FORCE_WITHIN)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore};

    struct World {
        processes: FakeProcesses,
        ports: Ports,
        active_turns: ActiveTurns,
        session: Session,
    }

    impl World {
        fn new() -> Self {
            let processes = FakeProcesses::default();
            let ports = Ports::new(
                FakeStore::default(),
                processes.clone(),
                FakeClock::default(),
                FakeExecutor::default(),
            );
            Self {
                processes,
                ports,
                active_turns: ActiveTurns::default(),
                session: Session::parse("s").unwrap(),
            }
        }

        fn turns(&self) -> Turns<'_> {
            let durability = Durability::default();
            Turns {
                ports: &self.ports,
                active_turns: &self.active_turns,
                window: Duration::from_secs(60),
                durability,
            }
        }

        fn begin(&self) -> Option<OpenTurn<'_>> {
            self.turns().begin(&self.session, Beginning::new(TurnCause::Command)).unwrap()
        }

        fn facts(&self) -> SessionFacts {
            self.ports.sessions.session(&self.session).unwrap()
        }
    }

    #[test]
    fn a_turn_has_a_begin_before_and_an_end_after() {
        let world = World::new();
        let turn = world.begin().unwrap();
        assert_eq!((turn.number(), turn.note()), (1, None));
        assert!(world.facts().turns[0].1.end.is_absent());
        assert_eq!(turn.end(TurnHow::Done).unwrap(), TurnHow::Done);
        assert!(world.facts().turns[0].1.end.present().is_some());
        assert!(world.processes.sweeps().is_empty());
    }

    #[test]
    fn what_a_dead_holder_left_is_swept_before_the_next_turn_begins_with_a_note() {
        let world = World::new();
        let dead = world.begin().unwrap();
        let mark = dead.mark().clone();
        drop(dead);
        let next = world.begin().unwrap();
        assert_eq!(world.processes.sweeps(), [mark]);
        assert_eq!(next.number(), 2);
        let note = next.note().unwrap();
        assert_eq!((note.turn, note.reason), (Some(1), Some(Interruption::Crash)));
        assert_eq!(next.end(TurnHow::Done).unwrap(), TurnHow::Done);
        let third = world.begin().unwrap();
        assert_eq!(third.note(), None, "a good turn clears it");
        drop(third.end(TurnHow::Done));
    }

    #[test]
    fn only_what_did_not_end_well_was_cut_short() {
        let world = World::new();
        for (how, expected) in [
            (TurnHow::Done, TurnHow::Done),
            (TurnHow::Failed { error: "x".into() }, TurnHow::Interrupted { reason: Interruption::Restart }),
        ] {
            let turn = world.begin().unwrap();
            let reason = Interruption::Restart;
            interrupt(&world.ports, &world.session, turn.number(), turn.mark(), reason, Durability::Process)
                .unwrap();
            assert_eq!(turn.end(how).unwrap(), expected);
        }
    }

    #[test]
    fn a_message_interrupts_no_turn_of_its_own_nor_of_a_later_one() {
        let world = World::new();
        let _lock = world.ports.lock_turn(&world.session, Wait::Try).unwrap().unwrap();
        let cause = TurnCause::Message { n: 4, attempt: 1 };
        let turn = world.turns().begin(&world.session, Beginning::new(cause)).unwrap().unwrap();
        for message in [3, 4] {
            assert!(!world.turns().interrupt_for(&world.session, message).unwrap(), "{message}");
        }
        assert!(world.turns().interrupt_for(&world.session, 5).unwrap());
        let how = turn.end(TurnHow::Failed { error: "cut".into() }).unwrap();
        assert_eq!(how, TurnHow::Interrupted { reason: Interruption::Message });
    }

    #[test]
    fn whoever_is_stopping_begins_nothing_and_knows_what_it_runs() {
        let world = World::new();
        let turn = world.begin().unwrap();
        let active = world.active_turns.stop();
        assert_eq!((active.len(), active[0].turn, active[0].destination.as_str()), (1, 1, "s"));
        drop(turn.end(TurnHow::Done));
        assert!(world.begin().is_none());
        assert_eq!(world.facts().last_turn(), 1, "and records nothing of it");
        assert_eq!(world.active_turns.wait(Some(Duration::ZERO), |_| true), []);
    }

    #[test]
    fn the_newest_turns_are_kept() {
        let world = World::new();
        for _ in 0..20 {
            drop(world.begin().unwrap().end(TurnHow::Done));
        }
        let numbers: Vec<_> = world.facts().turns.iter().map(|(n, _)| *n).collect();
        assert_eq!(numbers, (13..=20).collect::<Vec<_>>());
    }
}
