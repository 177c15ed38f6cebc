//! Carrying a delivery out: claim, check, hand over, check again, record.

use std::cell::Cell;
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::process::Presence;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::sink::{Delivery, DeliveryContext, FollowUpSink, SinkReply, Sinks};
use hearback_core::session::{Interruption, TurnCause, TurnHow};
use hearback_core::{
    BegunBy, Extra, FORMAT, Fact, JobId, JobView, Lease, LeaseResult, LockState, NoticeBytes, Observed,
    OsText, Receipt, ReceiptHow, Spec,
};

use super::due::{Claim, Due, Retry, age_of_end, due};
use super::printed::printed;
use crate::session::{Beginning, Turns};
use crate::{Ports, answer, reconcile};

/// How long an owner who is waiting may take to say that it has seen the end.
const READER_WITHIN: Duration = Duration::from_secs(2);
const READER_LOOK: Duration = Duration::from_millis(2);
/// What a lease lasts longer than its sink may take, for everything around it.
const LEASE_SLACK: Duration = Duration::from_secs(30);
/// How long to try to record a receipt on a disk that is full, unless there is no lease to show that it was sent.
const RECEIPT_WITHIN: Duration = Duration::from_secs(60);
const RECEIPT_PAUSE: Duration = Duration::from_millis(200);
const RECEIPT_PAUSE_MOST: Duration = Duration::from_secs(5);
/// Somebody else is at it, who may be dead long before its time is over.
const OTHERS_LOOK: Duration = Duration::from_secs(2);
/// Somebody else is just doing it.
const OVERTAKEN: Duration = Duration::from_millis(50);

/// What to do about the session's turn, of which there is one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Leave if the session is in one: whoever is looks again afterwards.
    Try,
    /// Sleep until it is over.
    Wait,
    /// We are in it.
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
        /// When the next attempt is due; nothing when somebody has to act.
        next: Option<Duration>,
    },
}

/// What an attempt came to.
enum Came {
    /// The sink answered, or failed.
    SinkReply(Result<SinkReply, String>),
    /// The turn was cut short.
    Interrupted(Interruption),
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

impl Deliverer<'_> {
    /// Makes one attempt at the follow-up of a job, if one is due.
    ///
    /// Safe to call from anywhere at any time: a lease is exclusive, and what has a receipt is never offered again.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn attempt(&self, id: &JobId, turn: Turn) -> Result<Attempt, StoreError> {
        match self.try_attempt(id, turn, false) {
            // Somebody else has closed it meanwhile, and moved it out of the way.
            Err(error) if error.is_gone() => self.try_attempt(id, turn, false),
            attempt => attempt,
        }
    }

    /// `bare`: this one goes ahead even if there is no room for a lock or a lease.
    fn try_attempt(&self, id: &JobId, turn: Turn, bare: bool) -> Result<Attempt, StoreError> {
        let mut held = None;
        loop {
            let Some(seen) = self.ports.store.observe(id)? else { return Ok(Attempt::Nothing) };
            if self.ports.here.is_foreign(&seen.facts) {
                return Ok(Attempt::Nothing);
            }
            let (due, lease) = self.look(&seen)?;
            let claim = match due {
                Due::Never => return Ok(Attempt::Nothing),
                // From the same look: whoever was at it then may have died since, with all its time before it.
                Due::In(pause) if lease == LockState::Held => {
                    return Ok(Attempt::Later(pause.min(OTHERS_LOOK)));
                }
                Due::In(pause) => return Ok(Attempt::Later(pause)),
                Due::Expired => {
                    self.receipt(&seen, ReceiptHow::Expired, RECEIPT_WITHIN)?;
                    self.settle(id);
                    return Ok(Attempt::Nothing);
                }
                Due::GiveUp { n } => {
                    let error = "its last attempt was never heard of again".to_owned();
                    self.record(
                        &seen,
                        n,
                        LeaseResult { gave_up: true, error: Some(error.clone()), ..self.result() },
                    )?;
                    return Ok(Attempt::Failed { error, next: None });
                }
                Due::Now(claim) => claim,
            };
            let Some(spec) = seen.facts.spec.present() else { return Ok(Attempt::Nothing) };
            let name = spec.sinks.get(claim.sink as usize).map_or("", String::as_str);
            let sink = self.sinks.find(name);
            let starts_turn = sink.as_ref().is_ok_and(|sink| sink.starts_turn());
            if let (true, None, Some(session)) = (starts_turn && turn != Turn::Held, &held, &spec.session) {
                let wait = if turn == Turn::Wait { Wait::Block } else { Wait::Try };
                held = match self.ports.lock_turn(session, wait) {
                    Ok(Some(lock)) => Some(lock),
                    Ok(None) => return Ok(Attempt::InTurn),
                    // Without room for a lock nobody else has one.
                    Err(error) if bare && error.is_unwritable() => Some(Lock::new(())),
                    Err(error) => return Err(error),
                };
                // Whoever was in the turn may have delivered it meanwhile.
                continue;
            }
            if claim.n == 1 && self.is_read_meanwhile(id)? {
                return Ok(Attempt::Nothing);
            }
            let in_turn = Cell::new(held.take());
            let deliver = |delivery: Delivery| {
                let came = match &sink {
                    Ok(sink) if starts_turn => self.deliver_in_turn(name, &**sink, delivery, bare),
                    Ok(sink) => {
                        let context = DeliveryContext {
                            mark: self.ports.sessions.mint(self.ports.clock.wall()),
                            turn: None,
                        };
                        let answer = sink.deliver(&delivery.into(), &context);
                        Ok(Came::SinkReply(answer.map_err(|error| error.to_string())))
                    }
                    Err(error) => Ok(Came::SinkReply(Err(error.to_string()))),
                };
                // The turn is over with its sink; on a full disk it can take long to record what came of it.
                drop(in_turn.take());
                came
            };
            let within = sink.as_ref().map_or(Duration::ZERO, |sink| sink.within());
            let _recording = starts_turn.then(|| self.turns.active_turns.recording());
            match self.make(&seen, spec, claim, within, bare, deliver)? {
                Some(attempt) => {
                    self.settle(id);
                    return Ok(attempt);
                }
                None => std::thread::sleep(OVERTAKEN),
            }
        }
    }

    /// Delivers until there is nothing more to do, sleeping in between. Returns early when somebody else does so, or
    /// when a monitor looks after the whole store.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn see_through(&self, id: &JobId) -> Result<(), StoreError> {
        let seen = self.ports.store.observe(id)?;
        // Most jobs have nobody to be sent to, and leave no trace of that.
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
        let mut attempt = self.try_attempt(id, Turn::Wait, true);
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
                // A disk that is full may have room again long before anybody else looks.
                Err(_) => {
                    troubles += 1;
                    self.retry.pause(troubles, self.chance(troubles))
                }
            };
            if self.is_monitored().unwrap_or(false) {
                return Ok(());
            }
            std::thread::sleep(pause);
            attempt = self.attempt(id, Turn::Wait);
        }
    }

    /// Whether something is to be done, and nobody is there to do it.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn is_forsaken(&self, seen: &Observed) -> Result<bool, StoreError> {
        if matches!(self.due(seen)?, Due::Never | Due::In(_)) || self.is_monitored()? {
            return Ok(false);
        }
        if self.is_on_its_way(seen)? {
            return Ok(false);
        }
        // Taken as a deliverer takes it: where there is no room for the lock, nobody else is to be sent out.
        let lock = self.ports.store.lock(&seen.id, JobLock::Deliverer, LockMode::Exclusive, Wait::Try)?;
        Ok(lock.is_some())
    }

    /// Whether the supervisor is still there: it delivers next, and knows what the launch was given to keep secret. One
    /// that keeps what was left behind has sent somebody else.
    fn is_on_its_way(&self, seen: &Observed) -> Result<bool, StoreError> {
        let Some(BegunBy::Supervisor(supervisor)) = seen.facts.begin.present().map(|begin| &begin.by) else {
            return Ok(false);
        };
        let is_there = self.ports.processes.presence(supervisor) == Presence::Same;
        let keeper = || self.ports.store.lock(&seen.id, JobLock::Keeper, LockMode::Exclusive, Wait::Try);
        Ok(is_there && keeper()?.is_some())
    }

    /// The number of the attempt that somebody is at right now.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn under_way(&self, seen: &Observed) -> Result<Option<u32>, StoreError> {
        let Some(n) = seen.facts.leases.iter().map(|(n, _)| *n).max() else { return Ok(None) };
        let lock = self.ports.store.lock(&seen.id, JobLock::Lease(n), LockMode::Shared, Wait::Try)?;
        Ok(lock.is_none().then_some(n))
    }

    fn is_monitored(&self) -> Result<bool, StoreError> {
        Ok(self.ports.sessions.lock_monitor(LockMode::Shared, Wait::Try)?.is_none())
    }

    /// When the follow-up of a job has to be looked at next.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn due(&self, seen: &Observed) -> Result<Due, StoreError> {
        self.look(seen).map(|(due, _)| due)
    }

    /// The same, with whether somebody was at the last attempt at that moment.
    fn look(&self, seen: &Observed) -> Result<(Due, LockState), StoreError> {
        if self.ports.here.is_foreign(&seen.facts) {
            return Ok((Due::Never, LockState::Free));
        }
        // Without room for its lease, the first attempt is known by its lock alone.
        let last = seen.facts.leases.iter().map(|(n, _)| *n).max().unwrap_or(1);
        let lock = self.ports.store.lock(&seen.id, JobLock::Lease(last), LockMode::Shared, Wait::Try)?;
        let state = if lock.is_some() { LockState::Free } else { LockState::Held };
        Ok((due(&seen.facts, state, &self.ports.clock.stamp(), &self.retry), state))
    }

    /// Lets an owner who is waiting for the end say that it has seen it, and tells whether it did.
    fn is_read_meanwhile(&self, id: &JobId) -> Result<bool, StoreError> {
        let until = self.ports.clock.awake() + READER_WITHIN;
        loop {
            match self.ports.store.lock(id, JobLock::Reader, LockMode::Exclusive, Wait::Try) {
                Ok(Some(_)) => break,
                Ok(None) if self.ports.clock.awake() < until => std::thread::sleep(READER_LOOK),
                // It does not answer; or there is no room even for a lock, and then nobody holds one.
                Ok(None) => break,
                Err(error) if error.is_unwritable() => break,
                Err(error) => return Err(error),
            }
        }
        let seen = self.ports.store.observe(id)?;
        Ok(seen.is_none_or(|seen| !seen.facts.receipt.is_absent()))
    }

    /// Makes one attempt; nothing when somebody else was quicker.
    fn make(
        &self,
        seen: &Observed,
        spec: &Spec,
        claim: Claim,
        within: Duration,
        bare: bool,
        deliver: impl Fn(Delivery) -> Result<Came, StoreError>,
    ) -> Result<Option<Attempt>, StoreError> {
        let (id, store) = (&seen.id, &self.ports.store);
        // The folder stays where it is while we work in it.
        let _keeper = match self.ports.share(id, JobLock::Keeper) {
            Err(error) if bare && error.is_unwritable() => None,
            keeper => keeper?,
        };
        let _mine = match store.lock(id, JobLock::Lease(claim.n), LockMode::Exclusive, Wait::Try) {
            Ok(Some(mine)) => mine,
            Ok(None) => return Ok(None),
            Err(error) if bare && error.is_unwritable() => Lock::new(()),
            Err(error) => return Err(error),
        };
        let pause = self.retry.pause(claim.attempts_used, self.chance(claim.n));
        let lease = Lease {
            deadline_ms: millis(within.saturating_add(LEASE_SLACK)),
            attempts_used: claim.attempts_used,
            sink: claim.sink,
            next_ms: millis(pause),
            ..Lease::at(self.ports.clock.stamp())
        };
        match store.publish(id, &Fact::Lease(claim.n, lease), spec.durability) {
            Ok(Publish::New) => {}
            Ok(Publish::Exists) => return Ok(None),
            // On a full disk the first attempt goes ahead under the lock alone, by whoever sees it through: another
            // would send it again and again.
            Err(error) if error.is_unwritable() && claim.n == 1 && bare => {}
            Err(error) => return Err(error),
        }
        let Some(now) = self.still_ours(id, claim.n)? else { return Ok(None) };
        let came = deliver(self.compose(&now, claim)?)?;
        if self.still_ours(id, claim.n)?.is_none() {
            return Ok(None);
        }
        let receipt_within = if bare { Duration::MAX } else { RECEIPT_WITHIN };
        self.conclude(&now, spec, claim, (pause, receipt_within), came).map(Some)
    }

    /// Hands a delivery to a sink that starts a turn of the session, as that turn.
    fn deliver_in_turn(
        &self,
        name: &str,
        sink: &dyn FollowUpSink,
        delivery: Delivery,
        bare: bool,
    ) -> Result<Came, StoreError> {
        let send = |delivery: Delivery, mark: JobId, turn: Option<u32>| {
            sink.deliver(&delivery.into(), &DeliveryContext { mark, turn }).map_err(|error| error.to_string())
        };
        let mint = || self.ports.sessions.mint(self.ports.clock.wall());
        let beginning = Beginning {
            sink: Some(name.to_owned()),
            cwd: delivery.job.cwd.clone(),
            ..Beginning::new(TurnCause::FollowUp { delivery: delivery.id.clone() })
        };
        let turn = match delivery.session.clone() {
            None => return Ok(Came::SinkReply(send(delivery, mint(), None))),
            Some(session) => match self.turns.begin(&session, beginning) {
                Ok(Some(turn)) => turn,
                // This process is about to end; whoever comes next delivers it.
                Ok(None) => return Ok(Came::SinkReply(Ok(SinkReply::Busy))),
                // On a full disk the first attempt goes ahead, and no turn is recorded.
                Err(error) if bare && error.is_unwritable() => {
                    return Ok(Came::SinkReply(send(delivery, mint(), None)));
                }
                Err(error) => return Err(error),
            },
        };
        let answer = send(delivery.after(turn.note().cloned()), turn.mark().clone(), Some(turn.number()));
        let how = match &answer {
            Ok(SinkReply::Delivered) => TurnHow::Done,
            Ok(answer) => TurnHow::Failed { error: format!("{answer:?}") },
            Err(error) => TurnHow::Failed { error: error.clone() },
        };
        match turn.end(how) {
            Ok(TurnHow::Interrupted { reason }) => Ok(Came::Interrupted(reason)),
            Ok(_) => Ok(Came::SinkReply(answer)),
            // What was delivered is delivered, whether or not it can be said that the turn is over.
            Err(error) if answer != Ok(SinkReply::Delivered) && !error.is_unwritable() => Err(error),
            Err(_) => Ok(Came::SinkReply(answer)),
        }
    }

    fn conclude(
        &self,
        seen: &Observed,
        spec: &Spec,
        claim: Claim,
        (pause, receipt_within): (Duration, Duration),
        came: Came,
    ) -> Result<Attempt, StoreError> {
        let last = claim.attempts_used >= self.retry.attempts_max;
        let result = self.result();
        let answer = match came {
            Came::SinkReply(answer) => answer,
            // It goes on as its own next attempt, and this one was none.
            Came::Interrupted(reason) => {
                let error = format!("interrupted: {reason}");
                // Whoever interrupted it for a message is to be heard first.
                let is_message = reason == Interruption::Message;
                let next =
                    if is_message { self.retry.pause(1, self.chance(claim.n)) } else { Duration::ZERO };
                let (next_ms, told) = (millis(next), Some(error.clone()));
                self.record(seen, claim.n, LeaseResult { busy: true, error: told, next_ms, ..result })?;
                return Ok(Attempt::Failed { error, next: Some(next) });
            }
        };
        let (result, error, next) = match answer {
            Ok(SinkReply::Delivered) => {
                self.receipt(seen, ReceiptHow::Delivered, receipt_within)?;
                return Ok(Attempt::Delivered);
            }
            Ok(SinkReply::Busy) => {
                // Whoever is busy for long is asked ever less often: each time leaves a record.
                let pause = self.retry.pause(1 + busy_before(seen), self.chance(claim.n));
                (LeaseResult { busy: true, ..result }, "the session is busy".to_owned(), Some(pause))
            }
            Ok(SinkReply::Gone { reason }) => {
                let error = if reason.is_empty() { "the session is gone".to_owned() } else { reason };
                let more = (claim.sink as usize) + 1 < spec.sinks.len();
                (LeaseResult { gone: true, ..result }, error, more.then_some(Duration::ZERO))
            }
            Ok(SinkReply::RetryAfter { millis }) => {
                let pause = Duration::from_millis(millis).min(self.retry.most);
                (result, "the sink asked for another time".to_owned(), (!last).then_some(pause))
            }
            Ok(_) => {
                (result, "the sink gave an answer that is not known".to_owned(), (!last).then_some(pause))
            }
            Err(error) => (result, error, (!last).then_some(pause)),
        };
        let result = LeaseResult {
            gave_up: next.is_none(),
            next_ms: next.map_or(0, millis),
            error: Some(error.clone()),
            ..result
        };
        self.record(seen, claim.n, result)?;
        Ok(Attempt::Failed { error, next })
    }

    /// Looks again: nobody has taken over, and nobody has closed it.
    fn still_ours(&self, id: &JobId, n: u32) -> Result<Option<Observed>, StoreError> {
        let Some(seen) = self.ports.store.observe(id)? else { return Ok(None) };
        let highest = seen.facts.leases.iter().map(|(n, _)| *n).max().unwrap_or(n);
        Ok((highest == n && seen.facts.receipt.is_absent()).then_some(seen))
    }

    fn compose(&self, seen: &Observed, claim: Claim) -> Result<Delivery, StoreError> {
        let log = self.ports.store.log_path(&seen.id);
        let log = OsText::from(log.to_string_lossy().as_ref());
        let job = JobView::new(seen, &self.ports.here, log);
        let mut job = job.ok_or_else(|| StoreError::Io(std::io::ErrorKind::NotFound.into()))?;
        answer::complete(self.ports, seen, &mut job);
        let output = printed(self.ports, seen, self.notice, &mut job);
        let late = age_of_end(&seen.facts, &self.ports.clock.stamp())
            .is_some_and(|age| age >= self.retry.late_after);
        let leases = seen.facts.leases.iter().filter(|(n, _)| *n <= claim.n);
        // A fresh start by hand takes a number and is no attempt.
        let attempts =
            leases.filter(|(_, lease)| lease.present().is_none_or(|lease| lease.attempts_used > 0)).count();
        let depth = seen.facts.spec.present().map_or(0, |spec| spec.depth) + 1;
        Ok(Delivery::new(job, &output, u32::try_from(attempts.max(1)).unwrap_or(u32::MAX), late, depth))
    }

    /// Closes a delivery. There is one receipt, whoever tried.
    fn receipt(&self, seen: &Observed, how: ReceiptHow, within: Duration) -> Result<(), StoreError> {
        let receipt = Fact::Receipt(Receipt::new(how, self.ports.clock.stamp()));
        let until = self.ports.clock.awake().saturating_add(within);
        let mut pause = RECEIPT_PAUSE;
        loop {
            match self.publish(seen, &receipt) {
                Ok(_) => break,
                // What was delivered must not be sent again for want of a few bytes: somebody may make room.
                Err(error) if error.is_unwritable() && self.ports.clock.awake() < until => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(RECEIPT_PAUSE_MOST);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Settles a job and moves it out of the way. Best effort: whatever is left undone, every later command does.
    fn settle(&self, id: &JobId) {
        let _ = reconcile::job(self.ports, id);
    }

    fn record(&self, seen: &Observed, n: u32, result: LeaseResult) -> Result<(), StoreError> {
        self.publish(seen, &Fact::LeaseResult(n, result)).map(|_| ())
    }

    fn publish(&self, seen: &Observed, fact: &Fact) -> Result<Publish, StoreError> {
        let durability = seen.facts.spec.present().map(|spec| spec.durability).unwrap_or_default();
        self.ports.store.publish(&seen.id, fact, durability)
    }

    fn result(&self) -> LeaseResult {
        LeaseResult {
            format: FORMAT,
            at: self.ports.clock.stamp(),
            gave_up: false,
            busy: false,
            gone: false,
            next_ms: 0,
            error: None,
            extra: Extra::new(),
        }
    }

    /// Good enough to keep a crowd apart: who is told at the same moment by the same clock differs in its number.
    fn chance(&self, n: u32) -> u64 {
        let now = self.ports.clock.stamp().since_boot_ms;
        (now.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) ^ u64::from(n) ^ u64::from(std::process::id())
    }
}

/// How often in a row the session was busy.
fn busy_before(seen: &Observed) -> u32 {
    let results = seen.facts.results.iter().rev();
    let busy = results.take_while(|(_, result)| result.present().is_some_and(|result| result.busy));
    u32::try_from(busy.count()).unwrap_or(u32::MAX)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
    use hearback_core::port::sink::SinkError;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeSink, FakeStore, sample};
    use hearback_core::{Facts, FollowUpState, LockView, Read, SinkPayload, fold};

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
        let seen_through = deliverer.try_attempt(&world.id, Turn::Try, true);
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
