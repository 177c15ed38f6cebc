//! Tests of `follow_ups.rs`.

use super::*;
use hearback_core::port::record::{FactStore, JobFiles};
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeSink, FakeStore, sample};
use hearback_core::{
    Fact, Facts, FollowUpState, Lease, LockView, Read, Receipt, ReceiptHow, SinkPayload, Spec, fold,
};

use crate::session::ActiveTurns;

struct World {
    store: FakeStore,
    clock: FakeClock,
    ports: Ports,
    active_turns: ActiveTurns,
    id: JobId,
}

fn world(sinks: &[&str]) -> World {
    let (store, clock) = (FakeStore::default(), FakeClock::default());
    let ports = Ports::new(store.clone(), FakeProcesses::default(), clock.clone(), FakeExecutor::default());
    let id = sample::id(1);
    let mut spec = Spec { id: id.clone(), ..sample::spec("s") };
    spec.sinks = sinks.iter().map(|name| (*name).to_owned()).collect();
    let mut end = sample::end(0);
    end.at = Some(hearback_core::port::clock::Clock::stamp(&clock));
    store.put(
        &id,
        Facts {
            spec: Read::Present(spec),
            begin: Read::Present(sample::begin()),
            end: Read::Present(end),
            ..Facts::default()
        },
    );
    World { store, clock, ports, active_turns: ActiveTurns::default(), id }
}

impl World {
    fn deliverer<'a>(&'a self, sinks: &'a dyn Sinks, attempts_max: u32) -> Deliverer<'a> {
        let (ports, window, durability) = (&self.ports, Duration::ZERO, Default::default());
        let turns = Turns { ports, active_turns: &self.active_turns, window, durability };
        let (retry, notice) = (Retry { attempts_max, ..Retry::default() }, NoticeBytes::default());
        Deliverer { ports, sinks, retry, notice, turns }
    }

    fn attempt(&self, sink: &FakeSink) -> Attempt {
        self.deliverer(sink, 3).attempt(&self.id, Turn::Try).unwrap()
    }

    fn state(&self) -> FollowUpState {
        fold(&self.store.facts(&self.id), LockView::FREE).follow_up.state
    }

    /// Attempts until nothing is due, letting the pauses pass.
    fn deliver_until_settled(&self, sink: &FakeSink) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        for _ in 0..20 {
            let attempt = self.attempt(sink);
            match &attempt {
                Attempt::Later(pause) => self.clock.advance(*pause),
                Attempt::Nothing => break,
                _ => attempts.push(attempt),
            }
        }
        attempts
    }
}

/// Has one sink; the others are those of other processes.
struct Only(&'static str, FakeSink);

impl Sinks for Only {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        if name == self.0 { self.1.find(name) } else { Err(SinkError::Elsewhere(name.to_owned())) }
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        name != self.0
    }

    fn of_unrouted(&self) -> Option<&str> {
        (self.0 == "host").then_some(self.0)
    }
}

#[test]
fn what_another_process_has_the_sink_for_is_left_to_it() {
    let world = world(&["host", "a"]);
    let (host, other) = (
        Only("host", FakeSink::answering([SinkReply::Gone { reason: "x".into() }])),
        Only("a", FakeSink::default()),
    );
    let attempt = |sinks: &Only| world.deliverer(sinks, 3).attempt(&world.id, Turn::Try).unwrap();
    assert_eq!(attempt(&other), Attempt::Nothing);
    assert!(world.store.facts(&world.id).leases.is_empty(), "no attempt is spent");
    let seen = || world.store.observe(&world.id).unwrap().unwrap();
    let waits = || {
        let now = world.ports.clock.stamp();
        super::super::waits_for_host(&seen(), &world.ports.here, &now, &Retry::default())
    };
    assert!(waits());
    assert!(matches!(attempt(&host), Attempt::Failed { next: Some(Duration::ZERO), .. }));
    assert_eq!(attempt(&host), Attempt::Nothing, "the next sink of the chain is the other's");
    assert!(!waits());
    assert_eq!(attempt(&other), Attempt::Delivered);
}

#[test]
fn what_names_no_sink_goes_to_a_host_and_is_fetched_otherwise() {
    let world = world(&[]);
    let attempt = |sinks: &Only| world.deliverer(sinks, 3).attempt(&world.id, Turn::Try).unwrap();
    assert_eq!(attempt(&Only("a", FakeSink::default())), Attempt::Nothing);
    assert_eq!(attempt(&Only("host", FakeSink::default())), Attempt::Delivered);
}

#[test]
fn what_a_turn_has_taken_is_held_until_it_is_concluded() {
    let world = world(&["host"]);
    let host = Only("host", FakeSink::default());
    let deliverer = world.deliverer(&host, 3);
    let jobs = std::slice::from_ref(&world.id);
    let steer = || deliverer.steer(jobs, "host", Duration::from_secs(60));
    let (taken, payload) = steer().pop().unwrap();
    assert_eq!((taken.job(), payload.attempt()), (&world.id, 1));
    assert!(steer().is_empty(), "it is taken once");
    deliverer.conclude(taken, &super::super::Response::Replied(SinkReply::busy())).unwrap();
    assert_eq!(world.state(), FollowUpState::Pending);
    world.clock.advance(Duration::from_secs(60));
    let (taken, _) = steer().pop().unwrap();
    deliverer.conclude(taken, &super::super::Response::Replied(SinkReply::Delivered)).unwrap();
    assert_eq!(world.state(), FollowUpState::Delivered);
}

#[test]
fn what_was_acknowledged_is_never_offered_again() {
    let world = world(&["a"]);
    let sink = FakeSink::default();
    assert_eq!(world.deliver_until_settled(&sink), [Attempt::Delivered]);
    assert_eq!(world.state(), FollowUpState::Delivered);
    assert_eq!(world.attempt(&sink), Attempt::Nothing);
    let taken = sink.taken();
    assert_eq!((taken.len(), taken[0].attempt, taken[0].id.as_str()), (1, 1, &*format!("{}.end", world.id)));
}

impl World {
    /// Another ended job of the same session.
    fn another(&self, n: u64) -> JobId {
        let id = sample::id(n);
        let mut facts = self.store.facts(&self.id);
        if let Read::Present(spec) = &mut facts.spec {
            spec.id = id.clone();
        }
        self.store.put(&id, facts);
        id
    }
}

/// Starts turns, and closes follow-ups as soon as an attempt at them is claimed, or at the last moment.
struct Closing<'a> {
    world: &'a World,
    claimed: Vec<JobId>,
    handed_over: Vec<JobId>,
    sink: FakeSink,
}

impl Closing<'_> {
    fn close(&self, ids: &[JobId]) -> bool {
        let facts = |id| self.world.store.facts(id);
        let open = ids.iter().filter(|id| !facts(id).leases.is_empty() && facts(id).receipt.is_absent());
        let closed =
            open.map(|id| super::super::close(&self.world.ports, id, ReceiptHow::Discarded).unwrap());
        closed.count() > 0
    }
}

impl Sinks for Closing<'_> {
    fn find(&self, _name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        Ok(Box::new(self))
    }
}

impl FollowUpSink for Closing<'_> {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        if self.close(&self.handed_over) {
            return Err(SinkError::Closed);
        }
        self.sink.deliver(payload, context)
    }

    fn starts_turn(&self) -> bool {
        self.close(&self.claimed);
        true
    }
}

#[test]
fn scenario_129_what_is_closed_between_its_claim_and_the_hand_over_is_left_out() {
    let world = world(&["a"]);
    let (second, third, fourth) = (world.another(2), world.another(3), world.another(4));
    let told = |claimed: &[&JobId], handed_over: &[&JobId]| {
        let ids = |ids: &[&JobId]| ids.iter().map(|id| (*id).clone()).collect();
        let (claimed, handed_over) = (ids(claimed), ids(handed_over));
        let closing = Closing { world: &world, claimed, handed_over, sink: FakeSink::default() };
        let attempt = world.deliverer(&closing, 3).attempt(&world.id, Turn::Try).unwrap();
        let told: Vec<_> = closing.sink.taken().into_iter().map(|delivery| delivery.job.id).collect();
        (attempt, told, closing.sink.payloads().len())
    };
    let expected = vec![world.id.clone(), fourth.clone()];
    assert_eq!(told(&[&second], &[&third]), (Attempt::Delivered, expected, 1));
    let how = |id: &JobId| world.store.facts(id).receipt.present().map(|receipt| receipt.how);
    let (told_of, closed) = (Some(ReceiptHow::Delivered), Some(ReceiptHow::Discarded));
    assert_eq!([&world.id, &second, &third, &fourth].map(how), [told_of, closed, closed, told_of]);
    assert_eq!(told(&[], &[]), (Attempt::Nothing, vec![], 0), "each has its receipt");
}

#[test]
fn scenario_73_failures_are_repeated_with_one_identity_and_end_as_a_dead_letter() {
    let world = world(&["a"]);
    let sink = FakeSink::answering(vec![SinkReply::Unknown; 9]);
    let attempts = world.deliver_until_settled(&sink);
    assert_eq!(attempts.len(), 3);
    assert!(matches!(attempts[2], Attempt::Failed { next: None, .. }), "{attempts:?}");
    assert_eq!(world.state(), FollowUpState::DeadLetter);
    let taken = sink.taken();
    assert_eq!(taken.iter().map(|delivery| delivery.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(taken.iter().all(|delivery| delivery.id == taken[0].id));
    // A retry by hand starts again from the first attempt.
    let again = Fact::Lease(4, Lease::at(hearback_core::port::clock::Clock::stamp(&world.clock)));
    let _ = world.store.publish(&world.id, &again, Default::default()).unwrap();
    assert_eq!(world.deliver_until_settled(&FakeSink::default()), [Attempt::Delivered]);
}

#[test]
fn scenario_58_a_busy_session_costs_no_attempt() {
    let world = world(&["a"]);
    let sink = FakeSink::answering(vec![SinkReply::busy(); 6]);
    let attempts = world.deliver_until_settled(&sink);
    assert_eq!((attempts.len(), attempts.last()), (7, Some(&Attempt::Delivered)), "{attempts:?}");
    let pauses: Vec<_> = attempts
        .iter()
        .map(|attempt| match attempt {
            Attempt::Failed { next: Some(pause), .. } => pause.as_secs(),
            _ => 0,
        })
        .collect();
    // Each is twice as long as the one before, a quarter more or less.
    assert!(pauses[0] <= 6 && (120..=200).contains(&pauses[5]), "{pauses:?}");
}

#[test]
fn what_is_fetched_counts_attempts_as_what_is_sent_does() {
    let world = world(&["a"]);
    let (busy, unknown) = (SinkReply::busy(), SinkReply::Unknown);
    let sink = FakeSink::answering([busy.clone(), unknown.clone(), busy, unknown.clone(), unknown]);
    world.deliver_until_settled(&sink);
    assert_eq!(world.state(), FollowUpState::DeadLetter);
    let attempts: Vec<_> =
        sink.taken().iter().map(|sent| (sent.attempt, sent.job.follow_up.attempts)).collect();
    assert_eq!(attempts, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
    let fetched = || {
        let seen = world.store.observe(&world.id).unwrap().unwrap();
        world.deliverer(&sink, 3).compose(&seen).unwrap()
    };
    assert_eq!((fetched().attempt, fetched().job.follow_up.attempts), (5, 5));
    assert_eq!(super::super::start_afresh(&world.ports, &world.id).unwrap(), super::super::Closed::Done);
    assert_eq!((fetched().attempt, fetched().job.follow_up.attempts), (5, 5), "a retry is no attempt");
    let last = sink.taken().pop().unwrap();
    let (sent, fetched) = (last.job.output, fetched().job.output);
    assert_eq!(sent, fetched, "and both say where its output is");
}

#[test]
fn scenario_75_a_session_that_is_gone_falls_to_the_next_sink_and_then_to_people() {
    let gone = || SinkReply::Gone { reason: "deleted".into() };
    let chained = world(&["a", "b"]);
    assert_eq!(
        chained.deliver_until_settled(&FakeSink::answering([gone()])).last(),
        Some(&Attempt::Delivered)
    );
    let alone = world(&["a"]);
    let attempts = alone.deliver_until_settled(&FakeSink::answering([gone()]));
    assert_eq!(attempts, [Attempt::Failed { error: "deleted".into(), next: None }]);
    assert_eq!(alone.state(), FollowUpState::DeadLetter);
}

#[test]
fn an_owner_that_waited_and_read_the_end_is_not_notified() {
    let world = world(&["a"]);
    let reader = world.ports.share(&world.id, JobLock::Reader).unwrap();
    let seen = world.store.observe(&world.id).unwrap().unwrap();
    std::thread::scope(|scope| {
        let attempt = scope.spawn(|| world.attempt(&FakeSink::default()));
        let receipt = Receipt::new(ReceiptHow::Read, sample::stamp());
        let _ = world.store.publish(&seen.id, &Fact::Receipt(receipt), Default::default()).unwrap();
        drop(reader);
        assert_eq!(attempt.join().unwrap(), Attempt::Nothing);
    });
    assert_eq!(world.state(), FollowUpState::Read);
}

#[test]
fn a_full_disk_does_not_keep_the_first_attempt() {
    let world = world(&["a"]);
    world.store.refuse_writes(true);
    let sink = FakeSink::answering([SinkReply::Unknown]);
    let deliverer = world.deliverer(&sink, 8);
    assert!(deliverer.attempt(&world.id, Turn::Try).is_err(), "a process that does not stay sends nothing");
    assert_eq!(sink.taken().len(), 0);
    let attempt = deliverer.try_attempt(&world.id, Turn::Try, LeaseRule::MayBeMissing);
    assert!(attempt.is_err(), "its result cannot be recorded");
    assert_eq!(sink.taken().len(), 1);
}

#[test]
fn a_process_that_makes_the_first_attempt_without_a_lease_is_left_alone() {
    let world = world(&["a"]);
    let lock = JobLock::Lease(1);
    let held = world.store.lock(&world.id, lock, LockMode::Exclusive, Wait::Try).unwrap();
    let sink = FakeSink::default();
    assert!(matches!(world.attempt(&sink), Attempt::Later(_)));
    drop(held);
    assert_eq!(world.attempt(&sink), Attempt::Delivered);
}

#[test]
fn a_process_that_waits_for_the_attempt_of_another_notices_its_death() {
    let world = world(&["a"]);
    let stamp = hearback_core::port::clock::Clock::stamp(&world.clock);
    let lease = Lease { attempts_used: 1, deadline_ms: 3_600_000, ..Lease::at(stamp) };
    let _ = world.store.publish(&world.id, &Fact::Lease(1, lease), Default::default()).unwrap();
    let lock = |lock| world.store.lock(&world.id, lock, LockMode::Exclusive, Wait::Try).unwrap();
    let attempt = lock(JobLock::Lease(1));
    assert_eq!(world.attempt(&FakeSink::default()), Attempt::Later(OTHERS_LOOK), "whatever happens next");
    let other = World {
        ports: Ports::new(
            world.store.clone(),
            FakeProcesses::default(),
            world.clock.clone(),
            FakeExecutor::default(),
        ),
        store: world.store.clone(),
        clock: world.clock.clone(),
        active_turns: ActiveTurns::default(),
        id: world.id.clone(),
    };
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let delivered = other.deliverer(&FakeSink::default(), 8).deliver_until_settled(&other.id);
        let _ = sender.send(delivered.is_ok());
    });
    // It is only looked at: whoever takes it for a moment keeps the other process from it for good.
    while !world.store.is_held(&world.id, JobLock::Deliverer) {
        std::thread::yield_now();
    }
    assert!(ended.recv_timeout(Duration::from_millis(200)).is_err(), "it waits");
    drop(attempt);
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(true), "and not for an hour");
    assert_eq!(world.state(), FollowUpState::Delivered);
}

#[test]
fn a_job_whose_supervisor_is_there_needs_no_deliverer() {
    let processes = FakeProcesses::default();
    let mut world = world(&["a"]);
    world.ports =
        Ports::new(world.store.clone(), processes.clone(), world.clock.clone(), FakeExecutor::default());
    let sink = FakeSink::default();
    let needs_deliverer = || {
        let seen = world.store.observe(&world.id).unwrap().unwrap();
        world.deliverer(&sink, 8).needs_deliverer(&seen).unwrap()
    };
    assert!(needs_deliverer(), "its supervisor died");
    let facts = world.store.facts(&world.id);
    let Some(BegunBy::Supervisor(supervisor)) = facts.begin.present().map(|begin| begin.by.clone()) else {
        panic!("a supervisor has begun it");
    };
    processes.spawn(supervisor);
    assert!(!needs_deliverer(), "its supervisor is about to deliver");
    let keeper = world.ports.share(&world.id, JobLock::Keeper).unwrap();
    assert!(needs_deliverer(), "its supervisor has something else to do");
    drop(keeper);
}

#[test]
fn a_process_that_lost_the_lease_records_nothing() {
    let world = world(&["a"]);
    let late = Late(world.store.clone(), world.id.clone());
    let deliverer = world.deliverer(&late, 8);
    let attempt = deliverer.attempt(&world.id, Turn::Try).unwrap();
    assert!(matches!(attempt, Attempt::Later(_)), "{attempt:?}");
    assert!(world.store.facts(&world.id).receipt.is_absent());
}

/// Another process takes over while this sink delivers.
struct Late(FakeStore, JobId);

impl Sinks for Late {
    fn find(&self, _name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        Ok(Box::new(self))
    }
}

impl FollowUpSink for Late {
    fn deliver(&self, _: &SinkPayload, _: &DeliveryContext) -> Result<SinkReply, SinkError> {
        let lease = Lease { attempts_used: 2, next_ms: 9_000, ..Lease::at(sample::stamp()) };
        let _ = self.0.publish(&self.1, &Fact::Lease(2, lease), Default::default()).unwrap();
        Ok(SinkReply::Delivered)
    }
}
