//! Messages for a session: taken in order, one turn each, tried again, and given up where somebody can see it.

use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::port::sink::{DeliveryContext, SinkReply, Sinks};
use hearback_core::session::{
    Message, MessageFact, MessageHow, SessionFacts, TurnCause, TurnHow, fold_session,
};
use hearback_core::{LockState, MessagePayload, Read, Session, SinkPayload, Stamp};

use super::turn::{Beginning, OpenTurn, Turns};
use crate::follow_up::Retry;

/// What is to be done about the messages of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextMessage {
    /// Nothing.
    Nothing,
    /// Not before this long.
    In(Duration),
    /// Hand this one over.
    Now {
        /// Its number.
        n: u32,
        /// Which attempt this is, from 1.
        attempt: u32,
        /// How many count towards giving up, this one included.
        attempts_used: u32,
    },
    /// Nobody took this one for too long.
    Expired {
        /// Its number.
        n: u32,
    },
}

/// Decides. The first that waits is the one: order is kept, whatever that costs those behind it.
pub fn next_message(facts: &SessionFacts, now: &Stamp, retry: &Retry) -> NextMessage {
    // One that cannot be read costs itself alone; one of a newer build is for somebody newer, with those behind it.
    let mut waiting = facts.waiting().filter(|(_, message)| !matches!(message.message, Read::Unreadable(_)));
    let Some((n, first)) = waiting.next() else { return NextMessage::Nothing };
    let Some(message) = first.message.present() else { return NextMessage::Nothing };
    if Duration::from_millis(message.at.age_ms(now)) >= retry.expire_after {
        return NextMessage::Expired { n };
    }
    let left = first.last_result().map_or(0, |last| last.next_ms.saturating_sub(last.at.age_ms(now)));
    if left > 0 {
        return NextMessage::In(Duration::from_millis(left));
    }
    // A result that cannot be read was an attempt all the same.
    let spent = first.results.iter().filter(|(_, result)| result.present().is_none_or(|it| it.spent)).count();
    let attempt = first.results.iter().map(|(attempt, _)| *attempt).max().unwrap_or(0) + 1;
    NextMessage::Now { n, attempt, attempts_used: u32::try_from(spent).unwrap_or(u32::MAX).saturating_add(1) }
}

/// Hands messages over.
pub struct Inbox<'a> {
    /// Where turns begin.
    pub turns: Turns<'a>,
    /// Where messages go.
    pub sinks: &'a dyn Sinks,
    /// How often.
    pub retry: Retry,
}

impl Inbox<'_> {
    /// Hands over everything that is due, in order, and tells what is next. The caller holds the session's lock.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn hand_over(&self, session: &Session) -> Result<NextMessage, StoreError> {
        let ports = self.turns.ports;
        loop {
            let facts = ports.sessions.session(session)?;
            // An attempt that was cut short by a death has its number; the next one takes another.
            if self.turns.close_forsaken(session, &facts)? {
                continue;
            }
            let next = next_message(&facts, &ports.clock.stamp(), &self.retry);
            let (n, attempt, used) = match next {
                NextMessage::Now { n, attempt, attempts_used } => (n, attempt, attempts_used),
                NextMessage::Expired { n } => {
                    self.close(session, n, MessageHow::Expired)?;
                    continue;
                }
                other => return Ok(other),
            };
            let message = facts.messages.iter().find(|(number, _)| *number == n);
            let Some(message) = message.and_then(|(_, facts)| facts.message.present()) else { continue };
            let beginning = Beginning {
                sink: Some(message.sink.clone()),
                destination: message.destination.clone(),
                cwd: message.cwd.clone(),
                ..Beginning::new(TurnCause::Message { n, attempt })
            };
            let _recording = self.turns.active_turns.recording();
            let Some(turn) = self.turns.begin(session, beginning)? else { return Ok(next) };
            self.deliver(session, n, attempt, used, message, turn)?;
        }
    }

    fn deliver(
        &self,
        session: &Session,
        n: u32,
        attempt: u32,
        used: u32,
        message: &Message,
        turn: OpenTurn<'_>,
    ) -> Result<(), StoreError> {
        let letter = MessagePayload::message(n, attempt, message, turn.note().cloned());
        let answer = self.send(&message.sink, letter.into(), &turn);
        let (error, spent, pause) = match answer {
            Ok(SinkReply::Delivered) => {
                self.close(session, n, MessageHow::Delivered)?;
                turn.end(TurnHow::Done)?;
                return Ok(());
            }
            Ok(SinkReply::Busy) => {
                ("the session is busy".to_owned(), false, Some(self.retry.pause(1, attempt.into())))
            }
            Ok(SinkReply::Gone { reason }) if reason.is_empty() => {
                ("the session is gone".to_owned(), true, None)
            }
            Ok(SinkReply::Gone { reason }) => (reason, true, None),
            Ok(SinkReply::RetryAfter { millis }) => {
                let pause = Duration::from_millis(millis).min(self.retry.most);
                ("the sink asked for another time".to_owned(), true, Some(pause))
            }
            Ok(_) => ("the sink gave an answer that is not known".to_owned(), true, Some(self.pause(used))),
            Err(error) => (error, true, Some(self.pause(used))),
        };
        // What became of the message is recorded even if the end of its turn cannot be.
        let how = turn.end(TurnHow::Failed { error: error.clone() });
        if matches!(how, Ok(TurnHow::Interrupted { .. })) {
            return Ok(()); // What becomes of the message was recorded with the end of the turn.
        }
        let last = spent && used >= self.retry.attempts_max;
        let next = pause.filter(|_| !last).map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        let result = MessageFact::result(attempt, self.turns.ports.clock.stamp(), error, spent, next);
        let _ = self.turns.ports.sessions.publish_message(session, n, &result, self.turns.durability)?;
        Ok(())
    }

    fn pause(&self, used: u32) -> Duration {
        let chance = self.turns.ports.clock.stamp().since_boot_ms;
        self.retry.pause(used, chance)
    }

    fn close(&self, session: &Session, n: u32, how: MessageHow) -> Result<(), StoreError> {
        let receipt = MessageFact::receipt(self.turns.ports.clock.stamp(), how);
        let _ = self.turns.ports.sessions.publish_message(session, n, &receipt, self.turns.durability)?;
        Ok(())
    }

    fn send(&self, sink: &str, payload: SinkPayload, turn: &OpenTurn<'_>) -> Result<SinkReply, String> {
        let context = DeliveryContext { mark: turn.mark().clone(), turn: Some(turn.number()) };
        let sink = self.sinks.find(sink).map_err(|error| error.to_string())?;
        sink.deliver(&payload, &context).map_err(|error| error.to_string())
    }

    /// Lets a session go on whose last turn was cut short, if it still is to, and tells whether it did. What was cut
    /// short over a follow-up or a message needs no help: those come again by themselves. The caller holds the
    /// session's lock.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn resume(&self, session: &Session, default_sink: Option<&str>) -> Result<bool, StoreError> {
        let ports = self.turns.ports;
        let facts = ports.sessions.session(session)?;
        if self.turns.close_forsaken(session, &facts)? {
            return self.resume(session, default_sink);
        }
        let state = fold_session(&facts, LockState::Free);
        let Some(interrupted) = state.interrupted else { return Ok(false) };
        let by_itself =
            |cause: &TurnCause| matches!(cause, TurnCause::FollowUp { .. } | TurnCause::Message { .. });
        let begin = interrupted.begin;
        let next = next_message(&facts, &ports.clock.stamp(), &self.retry);
        if begin.is_some_and(|begin| by_itself(&begin.cause)) || next != NextMessage::Nothing {
            return Ok(false);
        }
        let sink = begin.and_then(|begin| begin.sink.as_deref()).or(default_sink);
        let Some(name) = sink.filter(|name| self.sinks.find(name).is_ok_and(|sink| sink.starts_turn()))
        else {
            return Ok(false);
        };
        let beginning = Beginning {
            sink: Some(name.to_owned()),
            cwd: begin.and_then(|begin| begin.cwd.clone()),
            ..Beginning::new(TurnCause::Resume { turn: interrupted.turn })
        };
        // Decided by the same function that decides about the note: what is too old, or suspended, is left alone.
        let is_wanted = {
            let (now, unknown) = (ports.clock.stamp(), hearback_core::note::Silence::default());
            hearback_core::note::decide(&state, beginning.history, unknown, &now, self.turns.window).is_some()
        };
        if !is_wanted {
            return Ok(false);
        }
        let cwd = beginning.cwd.clone();
        let Some(turn) = self.turns.begin(session, beginning)? else { return Ok(false) };
        let Some(note) = turn.note().cloned() else {
            turn.end(TurnHow::Failed { error: "there was nothing to go on from".into() })?;
            return Ok(false);
        };
        let letter = MessagePayload { cwd, ..MessagePayload::resume(session, interrupted.turn, note) };
        let how = match self.send(name, letter.into(), &turn) {
            Ok(SinkReply::Delivered) => TurnHow::Done,
            Ok(_) => TurnHow::Failed { error: "the agent did not take it up".into() },
            Err(error) => TurnHow::Failed { error },
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
    use super::*;
    use hearback_core::port::sink::{FollowUpSink, SinkError};
    use hearback_core::session::Interruption;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeSink, FakeStore, sample};
    use hearback_core::{Durability, Session};

    use crate::Ports;
    use crate::session::ActiveTurns;

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

        fn hand_over(&self, sink: &dyn Sinks) -> NextMessage {
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

    fn letters(sink: &FakeSink) -> Vec<(String, u32, bool)> {
        let letter = |payload| match payload {
            SinkPayload::Message(letter) => Some((letter.message?, letter.attempt, letter.note.is_some())),
            _ => None,
        };
        sink.payloads().into_iter().filter_map(letter).collect()
    }

    #[test]
    fn messages_are_taken_in_order_each_in_a_turn_of_its_own() {
        let world = World::new(&["one", "two", "three"]);
        let sink = FakeSink::default();
        assert_eq!(world.hand_over(&sink), NextMessage::Nothing);
        let expected = ["one", "two", "three"].map(|text| (text.to_owned(), 1, false));
        assert_eq!(letters(&sink), expected);
        assert_eq!(world.facts().last_turn(), 3);
        assert_eq!(world.hand_over(&sink), NextMessage::Nothing);
        assert_eq!(letters(&sink).len(), 3, "none comes again");
    }

    #[test]
    fn what_fails_comes_again_before_what_is_behind_it_and_is_given_up_in_the_end() {
        let world = World::new(&["one", "two"]);
        let sink = FakeSink::answering(vec![SinkReply::Unknown; 3]);
        for _ in 0..3 {
            let NextMessage::In(pause) = world.hand_over(&sink) else { break };
            world.clock.advance(pause);
        }
        let (one, two) = (("one".to_owned(), 1, false), ("two".to_owned(), 1, false));
        let again = |attempt| ("one".to_owned(), attempt, false);
        assert_eq!(letters(&sink), [one, again(2), again(3), two]);
        assert!(world.facts().messages[0].1.is_dead_letter());
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
        assert_eq!(again.hand_over(&world.session).unwrap(), NextMessage::Nothing);
        assert_eq!(letters(&sink), [("one".to_owned(), 3, true)]);
        assert_eq!(world.receipt(1), Some(MessageHow::Delivered));
    }

    #[test]
    fn a_message_that_was_cut_short_for_another_is_overtaken() {
        let world = World::new(&["one"]);
        let cutting = Cutting(&world, Interruption::Message, FakeSink::default());
        assert_eq!(world.hand_over(&cutting), NextMessage::Nothing);
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
            super::super::interrupt(ports, session, turn, &context.mark, self.1, Durability::Process)
                .unwrap();
            if turn == 2 {
                self.0.active_turns.stop();
            }
            Err(SinkError::TimedOut)
        }
    }
}
