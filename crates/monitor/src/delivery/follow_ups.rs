//! Delivering the follow-ups of jobs: one attempt, or attempts until nothing is left to do.

use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Wait};
use hearback_core::port::process::Presence;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::sink::{Delivery, Sinks};
use hearback_core::session::held;
use hearback_core::{BegunBy, JobId, LockState, NoticeBytes, Observed, SmallSort, Spec, Stamp};
use tracing::{debug, error, warn};

use super::claim::{LeaseRule, LeasedFollowUp};
use super::due::{Around, Claim, Due, OVERDUE_AFTER, Retry, due_at, overdue};
use super::hand_over::{Attempts, Item, Route};
use super::interpret::Verdict;
use super::{company, compose, record};
use crate::session::Turns;
use crate::{Ports, reconcile};

/// How long a waiting owner may take to mark the end as read. One that asks every second, such as an MCP client that
/// follows a task, has several tries, also on a busy machine.
const READER_WITHIN: Duration = Duration::from_secs(10);
const READER_LOOK: Duration = Duration::from_millis(2);
const READER_LOOK_MOST: Duration = Duration::from_millis(100);
/// How often to check an attempt of another process, which may die long before its deadline.
const OTHERS_LOOK: Duration = Duration::from_secs(2);
/// How often a process that delivers for many looks whether a session is still open that could not be reached.
const OPEN_LOOK: Duration = Duration::from_secs(2);
/// The pause before another look, after another process took the lease first.
const CLAIM_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// What to do about the lock of the session's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Return if the session is in a turn: the process that runs it looks again afterwards.
    Try,
    /// Sleep until the turn has ended.
    Wait,
    /// The caller holds the lock.
    Held,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// Nothing is to do, now or later.
    Nothing,
    /// Not before this long.
    Later(Duration),
    /// The session is in a turn.
    InTurn,
    /// The owner was notified.
    Delivered,
    /// It could not be delivered.
    Failed {
        /// Why.
        error: String,
        /// When the next attempt is due; none if a person has to act.
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
    /// The ports.
    pub ports: &'a Ports,
    /// Where follow-ups go.
    pub sinks: &'a dyn Sinks,
    /// How often and for how long.
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
    /// Any process may call this at any time: a lease is exclusive, and a follow-up with a receipt is never sent again.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn attempt(&self, id: &JobId, turn: Turn) -> Result<Attempt, StoreError> {
        match self.try_attempt(id, turn, LeaseRule::Required) {
            // Another process has closed it meanwhile, and moved the job to history.
            Err(error) if error.is_gone() => self.try_attempt(id, turn, LeaseRule::Required),
            attempt => attempt,
        }
    }

    /// A follow-up as a sink would get it; none if there is no job.
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
            if wanted == Turn::Wait && self.is_turn(&seen, &route) {
                self.await_company(&seen, &route);
            }
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
                Some(verdict) => return Ok(verdict.into()),
                None => std::thread::sleep(CLAIM_RETRY_PAUSE),
            }
        }
    }

    /// Handles a follow-up for which no attempt is due.
    pub(super) fn without_attempt(
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
                let (times, last) = seen.facts.cut_short_before(n + 1);
                let held = last.and_then(|reason| held(times, reason));
                let error = held.unwrap_or_else(|| "its last attempt left no result".to_owned());
                record::gave_up(self.ports, seen, n, &error)?;
                error!(job = %seen.id, attempt = n, error, "not delivered, given up");
                Attempt::Failed { error, next: None }
            }
        })
    }

    /// The sink that an attempt goes to.
    pub(super) fn route<'s>(&'s self, seen: &'s Observed, claim: Claim) -> Option<Route<'s>> {
        let name = self.sink_name(seen.facts.spec.present()?, claim.sink);
        Some(Route { name, sink: self.sinks.find(name) })
    }

    /// Whether a follow-up goes there as a turn of its session.
    fn is_turn(&self, seen: &Observed, route: &Route<'_>) -> bool {
        let has_session = seen.facts.spec.present().is_some_and(|spec| spec.session.is_some());
        has_session && route.sink.as_ref().is_ok_and(|sink| sink.starts_turn())
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
        let session = session.filter(|_| self.is_turn(seen, route));
        let Some(session) = session else { return Ok(TurnLock::Enough) };
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

    /// Claims the attempt and makes it, in a turn together with what else is due; none if another process was quicker.
    fn make(
        &self,
        seen: &Observed,
        claim: Claim,
        route: &Route<'_>,
        turn_lock: Option<Lock>,
        rule: LeaseRule,
    ) -> Result<Option<Verdict>, StoreError> {
        let within = route.sink.as_ref().map_or(Duration::ZERO, |sink| sink.within());
        // Before the lease: a process that ends between the lease and its result would leave a spent attempt.
        let is_turn = self.is_turn(seen, route);
        let _recording = is_turn.then(|| self.turns.active_turns.recording());
        let chance = record::chance(self.ports, claim.n);
        let Some(item) = LeasedFollowUp::claim(self, seen, claim, within, is_turn, rule, chance)? else {
            return Ok(None);
        };
        let mut items = if is_turn { self.company(&item, route, within) } else { Vec::new() };
        items.push(item);
        items.small_sort_by(|a, b| company::order(&a.seen).cmp(&company::order(&b.seen)));
        let list: Vec<_> = items.iter().map(|item| item as &dyn Item).collect();
        let verdicts = Attempts { turns: self.turns, retry: self.retry }.make(&list, route, turn_lock);
        let ids: Vec<_> = items.into_iter().map(|item| item.seen.id.clone()).collect();
        let mut ours = None;
        for (id, verdict) in ids.iter().zip(verdicts?) {
            if verdict.is_some() {
                self.settle(id);
            }
            if *id == seen.id {
                ours = verdict;
            }
        }
        Ok(ours)
    }

    /// Makes attempts until there is a receipt or a dead letter, and sleeps in between. Returns early if another
    /// process does this, or if a monitor serves the store.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn deliver_until_settled(&self, id: &JobId) -> Result<(), StoreError> {
        // Nothing is told of an end that is published and not durable yet: its author releases the lock when it is.
        let is_ending = |seen: &Observed| seen.locks.alive == LockState::Held && !seen.facts.end.is_absent();
        if self.ports.store.observe(id)?.is_some_and(|seen| is_ending(&seen)) {
            drop(self.ports.store.lock(id, JobLock::Alive, LockMode::Shared, Wait::Block)?);
        }
        let seen = self.ports.store.observe(id)?;
        // Most jobs have no sink. For them, not even a lock is made.
        if seen.is_none_or(|seen| self.due(&seen).is_ok_and(|due| due == Due::Never)) {
            return Ok(());
        }
        let lock = self.ports.store.lock(id, JobLock::Deliverer, LockMode::Exclusive, Wait::Try);
        let _mine = match lock {
            Ok(None) => return Ok(()),
            Ok(Some(mine)) => Some(mine),
            // If there is no room for a lock, the first attempt is still made.
            Err(error) if error.is_unwritable() => None,
            Err(error) => return Err(error),
        };
        let mut attempt = self.try_attempt(id, Turn::Wait, LeaseRule::MayBeMissing);
        let mut errors = 0;
        loop {
            let (pause, is_recorded) = match attempt {
                Ok(Attempt::Later(pause) | Attempt::Failed { next: Some(pause), .. }) => {
                    errors = 0;
                    (pause, true)
                }
                Ok(_) => return Ok(()),
                Err(error) if error.is_gone() => return Err(error),
                Err(error) if errors >= self.retry.attempts_max && !error.is_unwritable() => {
                    return Err(error);
                }
                // A disk that is full may have room again long before any other process looks.
                Err(error) => {
                    errors += 1;
                    if errors == 1 {
                        warn!(job = %id, %error, "follow-up not attempted, trying again");
                    }
                    (self.retry.pause(errors, record::chance(self.ports, errors)), false)
                }
            };
            if self.ports.is_monitored() {
                return Ok(());
            }
            let seen = self.ports.store.observe(id).ok().flatten();
            match seen.filter(|_| is_recorded) {
                Some(seen) => self.rest(&seen, pause),
                None => std::thread::sleep(pause),
            }
            attempt = self.attempt(id, Turn::Wait);
        }
    }

    /// Sleeps until the next attempt is due, but not longer than `pause`. One at a session that is open elsewhere is
    /// due as soon as it is closed there, and one in its place at once.
    fn rest(&self, seen: &Observed, pause: Duration) {
        let pause = match self.due(seen) {
            Ok(Due::In(left)) => left.min(pause),
            Ok(_) => return,
            Err(_) => pause,
        };
        match seen.facts.open_in() {
            Some(process) => _ = self.ports.processes.await_end(process, pause),
            None => std::thread::sleep(pause),
        }
    }

    /// Whether an attempt is due and no process is there to make it.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn needs_deliverer(&self, seen: &Observed) -> Result<bool, StoreError> {
        let is_now = !matches!(self.due(seen)?, Due::Never | Due::In(_));
        // A monitor that answers makes it at once, unless it is busy with many others.
        let is_left_to_monitor =
            || self.ports.is_monitored() && overdue(&seen.facts, &self.ports.clock.stamp()) < OVERDUE_AFTER;
        if !is_now || is_left_to_monitor() {
            return Ok(false);
        }
        Ok(!self.is_delivered_by_another(seen)?)
    }

    /// Whether the supervisor is alive and delivers next. It is preferred, because it has the secrets of the launch in
    /// its environment. A supervisor that keeps leftover processes has started a deliverer instead.
    pub(super) fn supervisor_delivers(&self, seen: &Observed) -> Result<bool, StoreError> {
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

    /// What is to be done about the follow-up of a job, and when.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn due(&self, seen: &Observed) -> Result<Due, StoreError> {
        self.look(seen).map(|(due, _)| due)
    }

    /// The same, with whether a process held the last lease at that moment.
    pub(super) fn look(&self, seen: &Observed) -> Result<(Due, LockState), StoreError> {
        if seen.hands_off(&self.ports.here).is_some() {
            // In a job that is left alone, not even a lock is made.
            return Ok((Due::Never, LockState::Free));
        }
        // Without room for its lease, the first attempt is known by its lock alone.
        let last_lease = self.lease_lock(seen, seen.last_lease().max(1))?;
        let due = self.due_at(seen, last_lease, &self.ports.clock.stamp());
        Ok((due, last_lease))
    }

    /// What is to be done about a follow-up at some moment, if the lock of its last attempt is known. What another
    /// process has the sink for is left to it, and so is an attempt that it makes right now.
    pub(super) fn due_at(&self, seen: &Observed, last_lease: LockState, now: &Stamp) -> Due {
        let Some(spec) = seen.facts.spec.present() else { return Due::Never };
        let is_unrouted = spec.sinks.is_empty() && self.sinks.of_unrouted().is_some();
        let chain = if is_unrouted { 1 } else { spec.sinks.len() };
        let around = self.around(seen, last_lease);
        match due_at(seen, &self.ports.here, around, now, &self.retry, chain) {
            (Due::Now(_) | Due::In(_), sink) if self.sinks.is_elsewhere(self.sink_name(spec, sink)) => {
                Due::Never
            }
            (due, _) => due,
        }
    }

    /// The name of a sink of the chain.
    fn sink_name<'s>(&'s self, spec: &'s Spec, place: u32) -> &'s str {
        let named = spec.sinks.get(place as usize).map(String::as_str);
        named.or_else(|| self.sinks.of_unrouted().filter(|_| spec.sinks.is_empty())).unwrap_or_default()
    }

    /// Whether a job can have its follow-up sent to the sink of this name.
    pub(super) fn may_go_to(&self, spec: &Spec, name: &str) -> bool {
        spec.sinks.iter().any(|sink| sink == name)
            || (spec.sinks.is_empty() && self.sinks.of_unrouted() == Some(name))
    }

    /// What is seen of a follow-up besides its records, if the lock of its last attempt is known.
    pub(super) fn around(&self, seen: &Observed, last_lease: LockState) -> Around {
        let open_in = seen.facts.open_in().map(|process| self.ports.processes.presence(process));
        Around { last_lease, open_in }
    }

    /// When to look again at a follow-up whose next attempt is due after this pause. The end of the process in which
    /// its session is open is no change of the store.
    pub(crate) fn look_after(&self, seen: &Observed, pause: Duration) -> Duration {
        if seen.facts.open_in().is_some() { pause.min(OPEN_LOOK) } else { pause }
    }

    pub(super) fn lease_lock(&self, seen: &Observed, n: u32) -> Result<LockState, StoreError> {
        let lock = self.ports.store.lock(&seen.id, JobLock::Lease(n), LockMode::Shared, Wait::Try)?;
        Ok(if lock.is_some() { LockState::Free } else { LockState::Held })
    }

    /// Gives an owner that waits for the end the time to mark it as read; returns whether it did.
    pub(super) fn is_read_meanwhile(&self, id: &JobId) -> Result<bool, StoreError> {
        let until = self.ports.clock.awake() + READER_WITHIN;
        let mut pause = READER_LOOK;
        loop {
            match self.ports.store.lock(id, JobLock::Reader, LockMode::Exclusive, Wait::Try) {
                Ok(Some(_)) => break,
                Ok(None) if self.ports.clock.awake() < until => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(READER_LOOK_MOST);
                }
                // It took too long; or there is no room even for a lock, and then no process holds one.
                Ok(None) => break,
                Err(error) if error.is_unwritable() => break,
                Err(error) => return Err(error),
            }
        }
        let seen = self.ports.store.observe(id)?;
        Ok(seen.is_none_or(|seen| !seen.facts.receipt.is_absent()))
    }

    /// Settles a job and moves it to history. Best effort: every later command completes what is left undone.
    pub(super) fn settle(&self, id: &JobId) {
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
mod tests;
