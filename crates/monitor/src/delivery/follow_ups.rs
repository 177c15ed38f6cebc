//! Driving the follow-ups of jobs: one attempt, or all of them until there is nothing more to do.

use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Wait};
use hearback_core::port::process::Presence;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::sink::{Delivery, Sinks};
use hearback_core::{BegunBy, JobId, LockState, NoticeBytes, Observed};
use tracing::{debug, error, warn};

use super::claim::{LeaseRule, LeasedFollowUp};
use super::due::{Claim, Due, Retry, due};
use super::hand_over::{Attempts, Route};
use super::interpret::Verdict;
use super::{compose, record};
use crate::session::Turns;
use crate::{Ports, reconcile};

/// How long an owner who is waiting may take to say that it has seen the end.
const READER_WITHIN: Duration = Duration::from_secs(2);
const READER_LOOK: Duration = Duration::from_millis(2);
/// Another process makes the attempt, and may die long before its time has passed.
const OTHERS_LOOK: Duration = Duration::from_secs(2);
/// Another process is just making it.
const OVERTAKEN: Duration = Duration::from_millis(50);

/// What to do about the session's turn, of which there is one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Leave if the session is in one: the process that holds it looks again afterwards.
    Try,
    /// Sleep until it has ended.
    Wait,
    /// The caller holds it.
    Held,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// There was nothing to do, and there will not be.
    Nothing,
    /// Not before this long.
    Later(Duration),
    /// The session is in a turn.
    InTurn,
    /// The owner has been told.
    Delivered,
    /// It could not be delivered.
    Failed {
        /// Why.
        error: String,
        /// When the next attempt is due; nothing when a person has to act.
        next: Option<Duration>,
    },
}

impl From<Verdict> for Attempt {
    fn from(verdict: Verdict) -> Self {
        match verdict.error() {
            None => Self::Delivered,
            Some(error) => Self::Failed { error: error.to_owned(), next: verdict.next() },
        }
    }
}

/// Delivers follow-ups.
pub struct Deliverer<'a> {
    /// The world.
    pub ports: &'a Ports,
    /// Where follow-ups go.
    pub sinks: &'a dyn Sinks,
    /// How often.
    pub retry: Retry,
    /// How much of a job's output is sent along.
    pub notice: NoticeBytes,
    /// Where turns begin, for sinks that start one.
    pub turns: Turns<'a>,
}

/// What an attempt needs of the session's turn.
enum TurnLock {
    /// Nothing more: the sink starts no turn, or the lock is held already.
    Enough,
    /// The lock was taken now, maybe after a wait: look again.
    Taken(Lock),
    /// Another process is in a turn.
    InTurn,
}

impl Deliverer<'_> {
    /// Makes one attempt at the follow-up of a job, if one is due.
    ///
    /// Safe to call from anywhere at any time: a lease is exclusive, and what has a receipt is never offered again.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn attempt(&self, id: &JobId, turn: Turn) -> Result<Attempt, StoreError> {
        match self.try_attempt(id, turn, LeaseRule::Required) {
            // Another process has closed it meanwhile, and moved it out of the way.
            Err(error) if error.is_gone() => self.try_attempt(id, turn, LeaseRule::Required),
            attempt => attempt,
        }
    }

    /// A follow-up as a sink would get it; nothing when there is no job.
    pub fn compose(&self, seen: &Observed) -> Option<Delivery> {
        compose::compose(self.ports, seen, &self.retry, self.notice)
    }

    fn try_attempt(&self, id: &JobId, turn: Turn, rule: LeaseRule) -> Result<Attempt, StoreError> {
        let mut turn_lock = None;
        loop {
            let Some(seen) = self.ports.store.observe(id)? else { return Ok(Attempt::Nothing) };
            let claim = match self.look(&seen)? {
                (Due::Now(claim), _) => claim,
                (due, last_lease) => return self.without_attempt(&seen, due, last_lease),
            };
            let Some(route) = self.route(&seen, claim) else { return Ok(Attempt::Nothing) };
            let wanted = if turn_lock.is_some() { Turn::Held } else { turn };
            match self.lock_turn(&seen, &route, wanted, rule)? {
                TurnLock::Enough => {}
                TurnLock::Taken(lock) => {
                    // The process that was in the turn may have delivered it meanwhile.
                    turn_lock = Some(lock);
                    continue;
                }
                TurnLock::InTurn => return Ok(Attempt::InTurn),
            }
            if claim.n == 1 && self.is_read_meanwhile(id)? {
                return Ok(Attempt::Nothing);
            }
            match self.make(&seen, claim, &route, turn_lock.take(), rule)? {
                Some(verdict) => {
                    self.settle(id);
                    return Ok(verdict.into());
                }
                None => std::thread::sleep(OVERTAKEN),
            }
        }
    }

    /// Does what is to be done when no attempt is.
    fn without_attempt(
        &self,
        seen: &Observed,
        due: Due,
        last_lease: LockState,
    ) -> Result<Attempt, StoreError> {
        Ok(match due {
            Due::Never | Due::Now(_) => Attempt::Nothing,
            // From the same look: the process that held the lease then may have died since, with all its time left.
            Due::In(pause) if last_lease == LockState::Held => Attempt::Later(pause.min(OTHERS_LOOK)),
            Due::In(pause) => Attempt::Later(pause),
            Due::Expired => {
                record::expired(self.ports, seen)?;
                warn!(job = %seen.id, "follow-up expired");
                self.settle(&seen.id);
                Attempt::Nothing
            }
            Due::GiveUp { n } => {
                let error = "its last attempt was never heard of again".to_owned();
                record::gave_up(self.ports, seen, n, &error)?;
                error!(job = %seen.id, attempt = n, error, "not delivered, given up");
                Attempt::Failed { error, next: None }
            }
        })
    }

    /// The sink that an attempt goes to.
    fn route<'s>(&'s self, seen: &'s Observed, claim: Claim) -> Option<Route<'s>> {
        let spec = seen.facts.spec.present()?;
        let name = spec.sinks.get(claim.sink as usize).map_or("", String::as_str);
        Some(Route { name, sink: self.sinks.find(name) })
    }

    /// Takes the lock of the session's turn for a sink that starts one.
    fn lock_turn(
        &self,
        seen: &Observed,
        route: &Route<'_>,
        turn: Turn,
        rule: LeaseRule,
    ) -> Result<TurnLock, StoreError> {
        let session = seen.facts.spec.present().and_then(|spec| spec.session.as_ref());
        let starts_turn = route.sink.as_ref().is_ok_and(|sink| sink.starts_turn());
        let (Some(session), true) = (session, starts_turn) else { return Ok(TurnLock::Enough) };
        let wait = match turn {
            Turn::Held => return Ok(TurnLock::Enough),
            Turn::Wait => Wait::Block,
            Turn::Try => Wait::Try,
        };
        match self.ports.lock_turn(session, wait) {
            Ok(Some(lock)) => Ok(TurnLock::Taken(lock)),
            Ok(None) => Ok(TurnLock::InTurn),
            // Without room for a lock no other process has one.
            Err(error) if rule.tolerates(&error) => Ok(TurnLock::Taken(Lock::new(()))),
            Err(error) => Err(error),
        }
    }

    /// Claims the attempt and makes it; nothing when another process was quicker.
    fn make(
        &self,
        seen: &Observed,
        claim: Claim,
        route: &Route<'_>,
        turn_lock: Option<Lock>,
        rule: LeaseRule,
    ) -> Result<Option<Verdict>, StoreError> {
        let within = route.sink.as_ref().map_or(Duration::ZERO, |sink| sink.within());
        let Some(item) = LeasedFollowUp::claim(self, seen, claim, within, rule)? else { return Ok(None) };
        Attempts { turns: self.turns, retry: self.retry }.make(&item, route, turn_lock)
    }

    /// Delivers until there is nothing more to do, sleeping in between. Returns early when another process does so, or
    /// when a monitor serves the whole store.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn see_through(&self, id: &JobId) -> Result<(), StoreError> {
        let seen = self.ports.store.observe(id)?;
        // Most jobs have no sink, and leave no trace of that.
        if seen.is_none_or(|seen| self.due(&seen).is_ok_and(|due| due == Due::Never)) {
            return Ok(());
        }
        let lock = self.ports.store.lock(id, JobLock::Deliverer, LockMode::Exclusive, Wait::Try);
        let _mine = match lock {
            Ok(None) => return Ok(()),
            Ok(Some(mine)) => Some(mine),
            // There may be no room for a lock, and the first attempt is made all the same.
            Err(error) if error.is_unwritable() => None,
            Err(error) => return Err(error),
        };
        let mut attempt = self.try_attempt(id, Turn::Wait, LeaseRule::MayBeMissing);
        let mut troubles = 0;
        loop {
            let pause = match attempt {
                Ok(Attempt::Later(pause) | Attempt::Failed { next: Some(pause), .. }) => {
                    troubles = 0;
                    pause
                }
                Ok(_) => return Ok(()),
                Err(error) if error.is_gone() => return Err(error),
                Err(error) if troubles >= self.retry.attempts_max && !error.is_unwritable() => {
                    return Err(error);
                }
                // A disk that is full may have room again long before any other process looks.
                Err(error) => {
                    troubles += 1;
                    if troubles == 1 {
                        warn!(job = %id, %error, "follow-up not attempted, trying again");
                    }
                    self.retry.pause(troubles, record::chance(self.ports, troubles))
                }
            };
            if self.ports.is_monitored() {
                return Ok(());
            }
            std::thread::sleep(pause);
            attempt = self.attempt(id, Turn::Wait);
        }
    }

    /// Whether something is to be done, and no process is there to do it.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn is_forsaken(&self, seen: &Observed) -> Result<bool, StoreError> {
        let is_now = !matches!(self.due(seen)?, Due::Never | Due::In(_));
        if !is_now || self.ports.host_lock()? == LockState::Held || self.is_on_its_way(seen)? {
            return Ok(false);
        }
        // Taken as a deliverer takes it: where there is no room for the lock, no process is to be sent out.
        let lock = self.ports.store.lock(&seen.id, JobLock::Deliverer, LockMode::Exclusive, Wait::Try)?;
        Ok(lock.is_some())
    }

    /// Whether the supervisor is still there: it delivers next, and knows what the launch was given to keep secret. One
    /// that keeps what was left behind has sent another process.
    fn is_on_its_way(&self, seen: &Observed) -> Result<bool, StoreError> {
        let Some(BegunBy::Supervisor(supervisor)) = seen.facts.begin.present().map(|begin| &begin.by) else {
            return Ok(false);
        };
        let is_there = self.ports.processes.presence(supervisor) == Presence::Same;
        let keeper = || self.ports.store.lock(&seen.id, JobLock::Keeper, LockMode::Exclusive, Wait::Try);
        Ok(is_there && keeper()?.is_some())
    }

    /// The number of the attempt that a process makes right now.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn under_way(&self, seen: &Observed) -> Result<Option<u32>, StoreError> {
        let Some(n) = Some(seen.last_lease()).filter(|n| *n > 0) else { return Ok(None) };
        Ok((self.lease_lock(seen, n)? == LockState::Held).then_some(n))
    }

    /// When the follow-up of a job has to be looked at next.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn due(&self, seen: &Observed) -> Result<Due, StoreError> {
        self.look(seen).map(|(due, _)| due)
    }

    /// The same, with whether a process held the last lease at that moment.
    fn look(&self, seen: &Observed) -> Result<(Due, LockState), StoreError> {
        if seen.hands_off(&self.ports.here).is_some() {
            // Not even a lock is made in a job that is left alone.
            return Ok((Due::Never, LockState::Free));
        }
        // Without room for its lease, the first attempt is known by its lock alone.
        let lease = self.lease_lock(seen, seen.last_lease().max(1))?;
        Ok((due(seen, &self.ports.here, lease, &self.ports.clock.stamp(), &self.retry), lease))
    }

    fn lease_lock(&self, seen: &Observed, n: u32) -> Result<LockState, StoreError> {
        let lock = self.ports.store.lock(&seen.id, JobLock::Lease(n), LockMode::Shared, Wait::Try)?;
        Ok(if lock.is_some() { LockState::Free } else { LockState::Held })
    }

    /// Lets an owner who is waiting for the end say that it has seen it, and tells whether it did.
    fn is_read_meanwhile(&self, id: &JobId) -> Result<bool, StoreError> {
        let until = self.ports.clock.awake() + READER_WITHIN;
        loop {
            match self.ports.store.lock(id, JobLock::Reader, LockMode::Exclusive, Wait::Try) {
                Ok(Some(_)) => break,
                Ok(None) if self.ports.clock.awake() < until => std::thread::sleep(READER_LOOK),
                // It does not answer; or there is no room even for a lock, and then no process holds one.
                Ok(None) => break,
                Err(error) if error.is_unwritable() => break,
                Err(error) => return Err(error),
            }
        }
        let seen = self.ports.store.observe(id)?;
        Ok(seen.is_none_or(|seen| !seen.facts.receipt.is_absent()))
    }

    /// Settles a job and moves it out of the way. Best effort: whatever is left undone, every later command does.
    fn settle(&self, id: &JobId) {
        if let Err(error) = reconcile::job(self.ports, id) {
            debug!(job = %id, %error, "job not settled");
        }
    }
}

impl std::fmt::Debug for Deliverer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliverer").field("retry", &self.retry).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
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
        let ports =
            Ports::new(store.clone(), FakeProcesses::default(), clock.clone(), FakeExecutor::default());
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
        fn see_through(&self, sink: &FakeSink) -> Vec<Attempt> {
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

    #[test]
    fn what_was_acknowledged_is_never_offered_again() {
        let world = world(&["a"]);
        let sink = FakeSink::default();
        assert_eq!(world.see_through(&sink), [Attempt::Delivered]);
        assert_eq!(world.state(), FollowUpState::Delivered);
        assert_eq!(world.attempt(&sink), Attempt::Nothing);
        let taken = sink.taken();
        assert_eq!(
            (taken.len(), taken[0].attempt, taken[0].id.as_str()),
            (1, 1, &*format!("{}.end", world.id))
        );
    }

    #[test]
    fn scenario_73_failures_are_repeated_with_one_identity_and_end_as_a_dead_letter() {
        let world = world(&["a"]);
        let sink = FakeSink::answering(vec![SinkReply::Unknown; 9]);
        let attempts = world.see_through(&sink);
        assert_eq!(attempts.len(), 3);
        assert!(matches!(attempts[2], Attempt::Failed { next: None, .. }), "{attempts:?}");
        assert_eq!(world.state(), FollowUpState::DeadLetter);
        let taken = sink.taken();
        assert_eq!(taken.iter().map(|delivery| delivery.attempt).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(taken.iter().all(|delivery| delivery.id == taken[0].id));
        // Asked for again by hand, it starts afresh.
        let again = Fact::Lease(4, Lease::at(hearback_core::port::clock::Clock::stamp(&world.clock)));
        let _ = world.store.publish(&world.id, &again, Default::default()).unwrap();
        assert_eq!(world.see_through(&FakeSink::default()), [Attempt::Delivered]);
    }

    #[test]
    fn scenario_58_a_busy_session_costs_no_attempt() {
        let world = world(&["a"]);
        let sink = FakeSink::answering(vec![SinkReply::Busy; 6]);
        let attempts = world.see_through(&sink);
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
        let (busy, unknown) = (SinkReply::Busy, SinkReply::Unknown);
        let sink = FakeSink::answering([busy.clone(), unknown.clone(), busy, unknown.clone(), unknown]);
        world.see_through(&sink);
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
        assert_eq!(chained.see_through(&FakeSink::answering([gone()])).last(), Some(&Attempt::Delivered));
        let alone = world(&["a"]);
        let attempts = alone.see_through(&FakeSink::answering([gone()]));
        assert_eq!(attempts, [Attempt::Failed { error: "deleted".into(), next: None }]);
        assert_eq!(alone.state(), FollowUpState::DeadLetter);
    }

    #[test]
    fn an_owner_who_waited_and_saw_it_is_not_told_again() {
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
        assert!(deliverer.attempt(&world.id, Turn::Try).is_err(), "who only looks in sends nothing");
        assert_eq!(sink.taken().len(), 0);
        let seen_through = deliverer.try_attempt(&world.id, Turn::Try, LeaseRule::MayBeMissing);
        assert!(seen_through.is_err(), "what it came to cannot be recorded");
        assert_eq!(sink.taken().len(), 1);
    }

    #[test]
    fn whoever_is_at_the_first_attempt_without_a_lease_is_left_alone() {
        let world = world(&["a"]);
        let lock = JobLock::Lease(1);
        let held = world.store.lock(&world.id, lock, LockMode::Exclusive, Wait::Try).unwrap();
        let sink = FakeSink::default();
        assert!(matches!(world.attempt(&sink), Attempt::Later(_)));
        drop(held);
        assert_eq!(world.attempt(&sink), Attempt::Delivered);
    }

    #[test]
    fn whoever_waits_for_somebody_elses_attempt_hears_of_its_death() {
        let world = world(&["a"]);
        let stamp = hearback_core::port::clock::Clock::stamp(&world.clock);
        let lease = Lease { attempts_used: 1, deadline_ms: 3_600_000, ..Lease::at(stamp) };
        let _ = world.store.publish(&world.id, &Fact::Lease(1, lease), Default::default()).unwrap();
        let lock = |lock| world.store.lock(&world.id, lock, LockMode::Exclusive, Wait::Try).unwrap();
        let at_it = lock(JobLock::Lease(1));
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
        let (sender, over) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let seen_through = other.deliverer(&FakeSink::default(), 8).see_through(&other.id);
            let _ = sender.send(seen_through.is_ok());
        });
        while lock(JobLock::Deliverer).is_some() {
            std::thread::yield_now();
        }
        assert!(over.recv_timeout(Duration::from_millis(200)).is_err(), "it waits");
        drop(at_it);
        assert_eq!(over.recv_timeout(Duration::from_secs(20)), Ok(true), "and not for an hour");
        assert_eq!(world.state(), FollowUpState::Delivered);
    }

    #[test]
    fn whoever_has_a_supervisor_is_not_forsaken() {
        let processes = FakeProcesses::default();
        let mut world = world(&["a"]);
        world.ports =
            Ports::new(world.store.clone(), processes.clone(), world.clock.clone(), FakeExecutor::default());
        let sink = FakeSink::default();
        let is_forsaken = || {
            let seen = world.store.observe(&world.id).unwrap().unwrap();
            world.deliverer(&sink, 8).is_forsaken(&seen).unwrap()
        };
        assert!(is_forsaken(), "its supervisor is gone");
        let facts = world.store.facts(&world.id);
        let Some(BegunBy::Supervisor(supervisor)) = facts.begin.present().map(|begin| begin.by.clone())
        else {
            panic!("somebody supervised it");
        };
        processes.spawn(supervisor);
        assert!(!is_forsaken(), "its supervisor is about to deliver");
        let keeper = world.ports.share(&world.id, JobLock::Keeper).unwrap();
        assert!(is_forsaken(), "its supervisor has something else to do");
        drop(keeper);
    }

    #[test]
    fn whoever_lost_the_lease_records_nothing() {
        let world = world(&["a"]);
        let late = Late(world.store.clone(), world.id.clone());
        let deliverer = world.deliverer(&late, 8);
        let attempt = deliverer.attempt(&world.id, Turn::Try).unwrap();
        assert!(matches!(attempt, Attempt::Later(_)), "{attempt:?}");
        assert!(world.store.facts(&world.id).receipt.is_absent());
    }

    /// Somebody else takes over while this one is at it.
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
}
