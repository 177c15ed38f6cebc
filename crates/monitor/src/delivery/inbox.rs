//! Delivering the messages of a session: in order, one turn each, with retries and dead letters.

use hearback_core::port::record::StoreError;
use hearback_core::port::sink::{SinkReply, Sinks};
use hearback_core::session::{MessageHow, SessionFacts, TurnCause, TurnHow, fold_session};
use hearback_core::{LockState, MessagePayload, Session};
use tracing::{info, warn};

use super::claim::FirstMessage;
use super::due::{Due, Retry, message_due, next_message};
use super::hand_over::{Attempts, Route};
use super::interpret::Response;
use super::record;
use crate::session::{Beginning, Turns};

/// Hands messages over.
pub struct Inbox<'a> {
    /// Where turns begin.
    pub turns: Turns<'a>,
    /// Where messages go.
    pub sinks: &'a dyn Sinks,
    /// How often and for how long.
    pub retry: Retry,
}

impl Inbox<'_> {
    /// Hands over everything that is due, in order, and returns what is next: [`Due::Now`] if this process takes no
    /// further turn. The caller holds the session's turn lock.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn hand_over(&self, session: &Session) -> Result<Due, StoreError> {
        let ports = self.turns.ports;
        loop {
            let facts = ports.sessions.session(session)?;
            // An attempt whose process died has its number; the next one takes another.
            if self.turns.close_cut_short(session, &facts)? {
                continue;
            }
            let next = self.next(&facts);
            let (n, claim) = match next {
                None => return Ok(Due::Never),
                Some((n, Due::Now(claim))) => (n, claim),
                Some((n, Due::Expired)) => {
                    record::close_message(&self.turns, session, n, MessageHow::Expired)?;
                    warn!(%session, message_number = n, "message expired");
                    continue;
                }
                Some((_, other)) => return Ok(other),
            };
            let found = facts.message(n).and_then(|first| Some((first, first.message.present()?)));
            let Some((facts, message)) = found else { return Ok(Due::Never) };
            let item = FirstMessage { inbox: self, session, n, facts, message, claim };
            let route = Route { name: &message.sink, sink: self.sinks.find(&message.sink) };
            if self.attempts().make(&[&item], &route, None)?.iter().all(Option::is_none) {
                return Ok(Due::Now(claim));
            }
        }
    }

    /// What is to be done about the messages of a session.
    pub fn due(&self, facts: &SessionFacts) -> Due {
        self.next(facts).map_or(Due::Never, |(_, due)| due)
    }

    /// The number of the next message, and what is to be done about it. One whose sink another process has is left to
    /// it, and so are those behind it.
    fn next(&self, facts: &SessionFacts) -> Option<(u32, Due)> {
        let (n, due) = next_message(facts, &self.turns.ports.clock.stamp(), &self.retry)?;
        let message = facts.message(n).and_then(|message| message.message.present());
        let is_left = message.is_some_and(|message| self.sinks.is_elsewhere(&message.sink));
        Some((n, if is_left && due != Due::Expired { Due::Never } else { due }))
    }

    fn attempts(&self) -> Attempts<'_> {
        Attempts { turns: self.turns, retry: self.retry }
    }

    /// Continues a session whose last turn was interrupted, unless that is no longer wanted; returns whether it did. A
    /// turn for a follow-up or a message is not continued: these are delivered again anyway. The caller holds the
    /// session's turn lock.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn resume(&self, session: &Session, default_sink: Option<&str>) -> Result<bool, StoreError> {
        let ports = self.turns.ports;
        let facts = ports.sessions.session(session)?;
        if self.turns.close_cut_short(session, &facts)? {
            return self.resume(session, default_sink);
        }
        let state = fold_session(&facts, LockState::Free);
        let Some(interrupted) = state.interrupted else { return Ok(false) };
        let comes_again =
            |cause: &TurnCause| matches!(cause, TurnCause::FollowUp { .. } | TurnCause::Message { .. });
        let begin = interrupted.begin;
        let next = message_due(&facts, &ports.clock.stamp(), &self.retry);
        if begin.is_some_and(|begin| comes_again(&begin.cause)) || next != Due::Never {
            return Ok(false);
        }
        let name = begin.and_then(|begin| begin.sink.as_deref()).or(default_sink);
        let Some((name, sink)) = name.and_then(|name| Some((name, self.sinks.find(name).ok()?))) else {
            return Ok(false);
        };
        if !sink.starts_turn() {
            return Ok(false);
        }
        let beginning = Beginning {
            sink: Some(name.to_owned()),
            cwd: begin.and_then(|begin| begin.cwd.clone()),
            ..Beginning::new(TurnCause::Resume { turn: interrupted.turn })
        };
        // The function that decides about the note decides this, too: what is too old, or suspended, is left alone.
        let is_wanted = {
            let (now, unknown) = (ports.clock.stamp(), hearback_core::note::Silence::default());
            hearback_core::note::decide(&state, beginning.history, unknown, &now, self.turns.window).is_some()
        };
        if !is_wanted {
            return Ok(false);
        }
        info!(%session, turn = interrupted.turn, sink = name, "continuing session");
        let cwd = beginning.cwd.clone();
        let Some(turn) = self.turns.begin(session, beginning)? else { return Ok(false) };
        let Some(note) = turn.note().cloned() else {
            turn.end(TurnHow::Failed { error: "there was nothing to continue".into() })?;
            return Ok(false);
        };
        let payload = MessagePayload { cwd, ..MessagePayload::resume(session, interrupted.turn, note) };
        let how = match self.attempts().send(&*sink, &payload.into(), Some(&turn), Vec::new()) {
            Response::Replied(SinkReply::Delivered | SinkReply::Queued) => TurnHow::Done,
            Response::Failed(error) => TurnHow::Failed { error },
            _ => TurnHow::Failed { error: "the agent did not take it".into() },
        };
        turn.end(how)?;
        Ok(true)
    }
}

impl std::fmt::Debug for Inbox<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("retry", &self.retry).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use hearback_core::port::sink::{DeliveryContext, FollowUpSink, SinkError};
    use hearback_core::session::{Interruption, Message};
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeSink, FakeStore, sample};
    use hearback_core::{Durability, Session, SinkPayload};

    use crate::Ports;
    use crate::session::ActiveTurns;
    use crate::testing::Events;

    struct World {
        clock: FakeClock,
        ports: Ports,
        active_turns: ActiveTurns,
        session: Session,
    }

    impl World {
        fn new(messages: &[&str]) -> Self {
            let clock = FakeClock::default();
            let ports = Ports::new(
                FakeStore::default(),
                FakeProcesses::default(),
                clock.clone(),
                FakeExecutor::default(),
            );
            for text in messages {
                let at = ports.clock.stamp();
                let message = Message { at, ..sample::message("s", text) };
                ports.sessions.queue(&message, Durability::Process).unwrap();
            }
            Self { clock, ports, active_turns: ActiveTurns::default(), session: Session::parse("s").unwrap() }
        }

        fn inbox<'a>(&'a self, sinks: &'a dyn Sinks) -> Inbox<'a> {
            let (window, durability) = (Duration::ZERO, Durability::Process);
            let turns = Turns { ports: &self.ports, active_turns: &self.active_turns, window, durability };
            Inbox { turns, sinks, retry: Retry { attempts_max: 3, ..Retry::default() } }
        }

        fn hand_over(&self, sink: &dyn Sinks) -> Due {
            self.inbox(sink).hand_over(&self.session).unwrap()
        }

        fn facts(&self) -> SessionFacts {
            self.ports.sessions.session(&self.session).unwrap()
        }

        fn receipt(&self, n: u32) -> Option<MessageHow> {
            let facts = self.facts();
            let message = facts.messages.iter().find(|(number, _)| *number == n)?;
            message.1.receipt.present().map(|receipt| receipt.how.clone())
        }
    }

    fn messages(sink: &FakeSink) -> Vec<(String, u32, bool)> {
        let message = |payload| match payload {
            SinkPayload::Message(sent) => Some((sent.message?, sent.attempt, sent.note.is_some())),
            _ => None,
        };
        sink.payloads().into_iter().filter_map(message).collect()
    }

    #[test]
    fn what_became_of_a_message_is_said_with_its_number() {
        let (world, events) = (World::new(&["one"]), Events::default());
        events.of(|| world.hand_over(&FakeSink::answering([SinkReply::busy()])));
        events.of(|| {
            world.clock.advance(Duration::from_secs(3600));
            world.hand_over(&FakeSink::default())
        });
        let [postponed, delivered] = ["message=postponed", "message=delivered"].map(|text| events.with(text));
        assert_eq!((postponed.len(), delivered.len()), (1, 1), "{events:?}");
        assert!(delivered[0].contains("session=s message_number=1 "), "{delivered:?}");
    }

    #[test]
    fn messages_are_taken_in_order_each_in_a_turn_of_its_own() {
        let world = World::new(&["one", "two", "three"]);
        let sink = FakeSink::default();
        assert_eq!(world.hand_over(&sink), Due::Never);
        let expected = ["one", "two", "three"].map(|text| (text.to_owned(), 1, false));
        assert_eq!(messages(&sink), expected);
        assert_eq!(world.facts().last_turn(), 3);
        assert_eq!(world.hand_over(&sink), Due::Never);
        assert_eq!(messages(&sink).len(), 3, "none comes again");
    }

    #[test]
    fn what_fails_comes_again_before_what_is_behind_it_and_is_given_up_in_the_end() {
        let world = World::new(&["one", "two"]);
        let sink = FakeSink::answering(vec![SinkReply::Unknown; 3]);
        for _ in 0..3 {
            let Due::In(pause) = world.hand_over(&sink) else { break };
            world.clock.advance(pause);
        }
        let (one, two) = (("one".to_owned(), 1, false), ("two".to_owned(), 1, false));
        let again = |attempt| ("one".to_owned(), attempt, false);
        assert_eq!(messages(&sink), [one, again(2), again(3), two]);
        assert!(world.facts().messages[0].1.is_dead_letter());
    }

    #[test]
    fn scenario_58_a_busy_session_costs_a_message_no_attempt_and_is_asked_ever_less_often() {
        let world = World::new(&["one"]);
        let sink = FakeSink::answering(vec![SinkReply::busy(); 6]);
        let mut pauses = Vec::new();
        while let Due::In(pause) = world.hand_over(&sink) {
            pauses.push(pause.as_secs());
            world.clock.advance(pause);
        }
        assert_eq!((pauses.len(), world.receipt(1)), (6, Some(MessageHow::Delivered)), "{pauses:?}");
        // Each is twice as long as the one before, a quarter more or less: each leaves a record.
        assert!(pauses[0] <= 6 && (120..=200).contains(&pauses[5]), "{pauses:?}");
    }

    #[test]
    fn a_turn_that_was_cut_short_costs_no_attempt_and_comes_again_with_a_note() {
        let world = World::new(&["one"]);
        let cutting = Cutting(&world, Interruption::Restart, FakeSink::default());
        world.hand_over(&cutting);
        assert_eq!(world.receipt(1), None);
        let (sink, active_turns) = (FakeSink::default(), ActiveTurns::default());
        let inbox = world.inbox(&sink);
        let again = Inbox { turns: Turns { active_turns: &active_turns, ..inbox.turns }, ..inbox };
        assert_eq!(again.hand_over(&world.session).unwrap(), Due::Never);
        assert_eq!(messages(&sink), [("one".to_owned(), 3, true)]);
        assert_eq!(world.receipt(1), Some(MessageHow::Delivered));
    }

    #[test]
    fn a_message_that_was_cut_short_for_another_is_overtaken() {
        let world = World::new(&["one"]);
        let cutting = Cutting(&world, Interruption::Message, FakeSink::default());
        assert_eq!(world.hand_over(&cutting), Due::Never);
        assert_eq!(world.receipt(1), Some(MessageHow::Overtaken));
    }

    /// Cuts the first two turns short that it is sent out in.
    struct Cutting<'a>(&'a World, Interruption, FakeSink);

    impl Sinks for Cutting<'_> {
        fn find(&self, _name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
            Ok(Box::new(self))
        }
    }

    impl FollowUpSink for Cutting<'_> {
        fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
            let turn = context.turn.unwrap();
            if turn > 2 {
                return self.2.deliver(payload, context);
            }
            let World { ports, session, .. } = self.0;
            crate::session::interrupt(ports, session, turn, &context.mark, self.1, Durability::Process)
                .unwrap();
            if turn == 2 {
                self.0.active_turns.stop();
            }
            Err(SinkError::TimedOut { survivors: Vec::new() })
        }
    }
}
