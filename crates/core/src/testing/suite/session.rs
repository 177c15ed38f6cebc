//! What every store of sessions does.

use crate::port::disk::{LockMode, Publish, Wait};
use crate::port::session::{SessionLock, SessionStore};
use crate::session::{Interruption, MessageFact, MessageHow, SessionFacts, TurnCause, TurnFact, TurnHow};
use crate::testing::sample;
use crate::{
    Durability, Extra, FORMAT, HostBegin, HostFact, Session, StopDone, StopKind, StopRequest, StopTaken,
};

const POWER: Durability = Durability::Power;

/// Holds an empty store to its promises.
pub fn session(store: &dyn SessionStore) {
    let unknown = Session::parse("unknown").unwrap();
    assert!(store.sessions().unwrap().is_empty());
    assert_eq!(store.session(&unknown).unwrap(), SessionFacts::default());
    assert!(store.sessions().unwrap().is_empty(), "looking makes nothing");
    turns(store);
    messages(store);
    locks(store);
    host(store);
    let mut known = store.sessions().unwrap();
    known.sort();
    assert_eq!(known.iter().map(Session::as_str).collect::<Vec<_>>(), ["messages", "turns"]);
}

fn turns(store: &dyn SessionStore) {
    let session = Session::parse("turns").unwrap();
    for n in 1..=5 {
        let all = [
            TurnFact::Begin(Box::new(sample::turn_begin("turns", TurnCause::Command))),
            TurnFact::resumable(sample::stamp(), Interruption::Restart, true),
            TurnFact::interrupt(sample::stamp(), Interruption::Restart),
            TurnFact::end(sample::stamp(), TurnHow::Done),
        ];
        for fact in &all {
            for expected in [Publish::New, Publish::Exists] {
                assert_eq!(store.publish_turn(&session, n, fact, POWER).unwrap(), expected, "{fact:?}");
            }
        }
    }
    let facts = store.session(&session).unwrap();
    assert_eq!(facts.last_turn(), 5);
    assert!(
        facts.turns.iter().all(|(_, turn)| turn.begin.present().is_some() && turn.end.present().is_some())
    );
    assert!(facts.turns[0].1.resumable.present().is_some_and(|mark| mark.asked));
    store.forget(&session, 2).unwrap();
    let kept = store.session(&session).unwrap();
    assert_eq!(kept.turns.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [4, 5]);
}

fn messages(store: &dyn SessionStore) {
    let session = Session::parse("messages").unwrap();
    let receipt = |how| MessageFact::receipt(sample::stamp(), how);
    for (text, n) in [("one", 1), ("two", 2), ("three", 3)] {
        assert_eq!(store.queue(&sample::message("messages", text), POWER).unwrap(), n);
    }
    let failed = MessageFact::result(1, sample::stamp(), "no".into(), true, None);
    for expected in [Publish::New, Publish::Exists] {
        assert_eq!(store.publish_message(&session, 1, &failed, POWER).unwrap(), expected);
    }
    let _ = store.publish_message(&session, 2, &receipt(MessageHow::Delivered), POWER).unwrap();
    let facts = store.session(&session).unwrap();
    assert!(facts.messages[0].1.is_dead_letter());
    assert_eq!(facts.waiting().map(|(n, _)| n).collect::<Vec<_>>(), [3]);
    let text = |n: usize| facts.messages[n].1.message.present().map(|message| message.text.clone());
    assert_eq!((text(0).as_deref(), text(2).as_deref()), (Some("one"), Some("three")));
    let _ = store.publish_message(&session, 3, &receipt(MessageHow::Delivered), POWER).unwrap();
    store.forget(&session, 8).unwrap();
    let kept = store.session(&session).unwrap();
    let numbers: Vec<_> = kept.messages.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, [1, 3], "what was not taken, and the newest");
    assert_eq!(store.queue(&sample::message("messages", "four"), POWER).unwrap(), 4, "no number twice");
    store.forget(&session, 0).unwrap();
    let numbers: Vec<_> = store.session(&session).unwrap().messages.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, [1, 4], "what waits, or was given up, is never forgotten");
}

fn locks(store: &dyn SessionStore) {
    let session = Session::parse("turns").unwrap();
    let alone = |mode, wait| store.lock_session(&session, SessionLock::Turn, mode, wait).unwrap();
    let held = alone(LockMode::Exclusive, Wait::Block);
    assert!(alone(LockMode::Exclusive, Wait::Try).is_none(), "one turn at a time");
    assert!(alone(LockMode::Shared, Wait::Try).is_none(), "and everybody can see that");
    drop(held);
    assert!(alone(LockMode::Shared, Wait::Try).is_some());
    let monitor = store.lock_monitor(LockMode::Exclusive, Wait::Try).unwrap();
    assert!(monitor.is_some() && store.lock_monitor(LockMode::Shared, Wait::Try).unwrap().is_none());
}

fn host(store: &dyn SessionStore) {
    assert!(store.host().unwrap().last_begin().is_none());
    let (at, extra) = (sample::stamp(), Extra::new());
    let (process, version) = (sample::process(7), "1".to_owned());
    let begin =
        HostBegin { format: FORMAT, process, at: at.clone(), service: false, version, extra: extra.clone() };
    let all = [
        HostFact::Begin(begin.clone()),
        HostFact::Request(StopRequest::new(StopKind::Restart, at.clone())),
        HostFact::Taken(StopTaken { format: FORMAT, at: at.clone(), awaited: 2, extra: extra.clone() }),
    ];
    for fact in &all {
        for expected in [Publish::New, Publish::Exists] {
            assert_eq!(store.publish_host(3, fact, POWER).unwrap(), expected, "{fact:?}");
        }
    }
    let facts = store.host().unwrap();
    assert_eq!(facts.last_begin(), Some(&begin));
    let (n, open) = facts.open_request().unwrap();
    assert_eq!((n, open.taken.present().map(|taken| taken.awaited)), (3, Some(2)));
    let done = HostFact::Done(StopDone { format: FORMAT, at, interrupted: Some(1), extra });
    let _ = store.publish_host(3, &done, POWER).unwrap();
    assert!(store.host().unwrap().open_request().is_none());
    for n in 4..=6 {
        let _ = store.publish_host(n, &all[0], POWER).unwrap();
    }
    let _ = store.publish_host(4, &all[1], POWER).unwrap();
    store.forget_host(2).unwrap();
    let facts = store.host().unwrap();
    assert_eq!(facts.begins.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(facts.requests.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 4]);
    store.wake_host().unwrap();
}
