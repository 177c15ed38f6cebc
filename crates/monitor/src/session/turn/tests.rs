//! Tests of `turn.rs`.

use super::*;
use hearback_core::port::disk::Wait;
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
        Self { processes, ports, active_turns: ActiveTurns::default(), session: Session::parse("s").unwrap() }
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
fn a_process_that_is_stopping_begins_nothing_and_knows_what_it_runs() {
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
