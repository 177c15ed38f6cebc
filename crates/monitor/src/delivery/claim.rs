//! Claiming an attempt: what keeps other processes away while it is made.
//!
//! A follow-up is claimed by a lease: a numbered fact and the lock beside it. A message is claimed by the lock of the
//! session's turn, which the caller of [`super::Inbox`] holds.

use std::path::PathBuf;
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::sink::{FollowUpSink, SinkReply};
use hearback_core::session::{Interruption, Message, MessageFacts, MessageResult, TurnCause};
use hearback_core::{Fact, Lease, MessagePayload, Observed, Session, SinkPayload, delivery_id};

use super::due::Claim;
use super::hand_over::{Item, ReceiptOrder, Subject};
use super::interpret::{History, Response, SinkRole, Verdict};
use super::{Deliverer, Inbox, compose, record};

/// How much longer a lease lasts than its sink may take, for everything around it.
const LEASE_SLACK: Duration = Duration::from_secs(30);

/// Whether an attempt needs its lease on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseRule {
    /// Without a lease there is no attempt: another process may make it at the same time.
    Required,
    /// On a full disk, the first attempt is made under its lock alone. Only for
    /// [`Deliverer::deliver_until_settled`], which stays until the receipt is recorded: without a record, any other
    /// process would send it again and again.
    MayBeMissing,
}

impl LeaseRule {
    /// Whether an attempt goes ahead although something could not be written.
    pub(super) fn tolerates(self, error: &StoreError) -> bool {
        self == Self::MayBeMissing && error.is_unwritable()
    }
}

/// The follow-up of a job whose lease this process holds.
pub(super) struct LeasedFollowUp<'a> {
    pub(super) deliverer: &'a Deliverer<'a>,
    pub(super) held: HeldFollowUp,
}

impl std::ops::Deref for LeasedFollowUp<'_> {
    type Target = HeldFollowUp;

    fn deref(&self) -> &HeldFollowUp {
        &self.held
    }
}

/// The same without its deliverer: what is held for as long as the attempt takes.
#[derive(Debug)]
pub(super) struct HeldFollowUp {
    /// The job as it was seen after the lease was taken.
    pub(super) seen: Observed,
    pub(super) claim: Claim,
    starts_turn: bool,
    pub(super) rule: LeaseRule,
    /// Spreads the pauses of deliveries that failed. Those that failed in one turn come again in one turn, so they
    /// share it.
    pub(super) chance: u64,
    /// Keeps the folder where it is while this process works in it.
    _keeper: Option<Lock>,
    _lease: Lock,
}

impl<'a> LeasedFollowUp<'a> {
    /// Takes the lease of an attempt at a sink that may take `within`; none if another process was quicker.
    pub(super) fn claim(
        deliverer: &'a Deliverer<'a>,
        seen: &Observed,
        claim: Claim,
        within: Duration,
        starts_turn: bool,
        rule: LeaseRule,
        chance: u64,
    ) -> Result<Option<Self>, StoreError> {
        let (id, ports) = (&seen.id, deliverer.ports);
        let keeper = match ports.share(id, JobLock::Keeper) {
            Err(error) if rule.tolerates(&error) => None,
            keeper => keeper?,
        };
        let lock = match ports.store.lock(id, JobLock::Lease(claim.n), LockMode::Exclusive, Wait::Try) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Ok(None),
            Err(error) if rule.tolerates(&error) => Lock::new(()),
            Err(error) => return Err(error),
        };
        let lease = Lease {
            deadline_ms: record::millis(within.saturating_add(LEASE_SLACK)),
            attempts_used: claim.attempts_used,
            sink: claim.sink,
            next_ms: record::millis(deliverer.retry.pause(claim.attempts_used, chance)),
            turn: starts_turn,
            in_place_of: claim.in_place_of,
            ..Lease::at(ports.clock.stamp())
        };
        match ports.publish(seen, &Fact::Lease(claim.n, lease)) {
            Ok(Publish::New) => {}
            Ok(Publish::Exists) => return Ok(None),
            Err(error) if claim.n == 1 && rule.tolerates(&error) => {}
            Err(error) => return Err(error),
        }
        let Some(seen) = still_ours(deliverer, seen, claim.n)? else { return Ok(None) };
        let held = HeldFollowUp { seen, claim, starts_turn, rule, chance, _keeper: keeper, _lease: lock };
        Ok(Some(Self { deliverer, held }))
    }
}

impl<'a> LeasedFollowUp<'a> {
    /// The lease of a caller that has exited since, which this process ends for it; none if another process does.
    pub(super) fn of_caller(
        deliverer: &'a Deliverer<'a>,
        seen: Observed,
        n: u32,
        lease: &Lease,
    ) -> Result<Option<Self>, StoreError> {
        let (id, ports) = (&seen.id, deliverer.ports);
        let keeper = ports.share(id, JobLock::Keeper)?;
        let lock = ports.store.lock(id, JobLock::Lease(n), LockMode::Exclusive, Wait::Try)?;
        let Some(lock) = lock else { return Ok(None) };
        let (attempts_used, chance) = (lease.attempts_used, record::chance(ports, n));
        let claim = Claim { n, attempts_used, sink: 0, in_place_of: None };
        let (starts_turn, rule) = (false, LeaseRule::Required);
        let held = HeldFollowUp { seen, claim, starts_turn, rule, chance, _keeper: keeper, _lease: lock };
        Ok(Some(Self { deliverer, held }))
    }
}

impl LeasedFollowUp<'_> {
    fn role(&self) -> SinkRole<'_> {
        if self.claim.in_place_of.is_none() {
            return SinkRole::Own;
        }
        let results = self.seen.facts.results.iter().filter_map(|(n, result)| Some((n, result.present()?)));
        let last = results.filter(|(_, result)| result.unreachable).max_by_key(|(n, _)| *n);
        let reason = last.and_then(|(_, result)| result.error.as_deref()).unwrap_or_default();
        SinkRole::StandIn { reason, starts_turn: self.starts_turn }
    }
}

/// Looks again: no other process has taken over, and none has closed it.
pub(super) fn still_ours(
    deliverer: &Deliverer<'_>,
    seen: &Observed,
    n: u32,
) -> Result<Option<Observed>, StoreError> {
    let Some(seen) = deliverer.ports.store.observe(&seen.id)? else { return Ok(None) };
    // Without room for a lease there is none.
    let highest = seen.last_lease().max(1);
    Ok((highest == n && seen.facts.receipt.is_absent()).then_some(seen))
}

impl Item for LeasedFollowUp<'_> {
    fn subject(&self) -> Subject<'_> {
        let session = self.seen.facts.spec.present().and_then(|spec| spec.session.as_ref());
        Subject { job: Some(&self.seen.id), session, message_number: None, attempt: self.claim.n }
    }

    fn id(&self) -> String {
        delivery_id(&self.seen.id)
    }

    fn needs_turn(&self, sink: &dyn FollowUpSink) -> bool {
        sink.starts_turn()
    }

    fn cause(&self, others: Vec<String>) -> TurnCause {
        TurnCause::FollowUp { delivery: delivery_id(&self.seen.id), others }
    }

    fn repeats(&self) -> Option<Interruption> {
        self.seen.facts.last_cut_short_before(self.claim.n)
    }

    fn compose(&self, n: usize) -> Result<SinkPayload, StoreError> {
        let Deliverer { ports, retry, notice, .. } = self.deliverer;
        let delivery = compose::compose(ports, &self.seen, retry, notice.shared(n));
        let delivery = delivery.ok_or_else(|| StoreError::Io(std::io::ErrorKind::NotFound.into()))?;
        Ok(match self.role() {
            SinkRole::StandIn { reason, starts_turn: false } => delivery.unreached(reason).into(),
            _ => delivery.into(),
        })
    }

    fn without_turn(&self) -> Option<Response> {
        // The lease is taken, so its result has to say that this was no attempt.
        Some(Response::Replied(SinkReply::busy()))
    }

    fn tolerates(&self, error: &StoreError) -> bool {
        self.rule.tolerates(error)
    }

    fn receipt(&self) -> Option<PathBuf> {
        self.deliverer.ports.store.receipt_path(&self.seen.id)
    }

    fn is_still_ours(&self) -> Result<bool, StoreError> {
        still_ours(self.deliverer, &self.seen, self.claim.n).map(|seen| seen.is_some())
    }

    fn history(&self) -> History<'_> {
        let facts = &self.seen.facts;
        let busy =
            facts.results.iter().rev().take_while(|(_, result)| result.present().is_some_and(|it| it.busy));
        let chain = facts.spec.present().map_or(0, |spec| spec.sinks.len());
        History {
            attempts_used: self.claim.attempts_used,
            busy_before: u32::try_from(busy.count()).unwrap_or(u32::MAX),
            cut_short_before: facts.cut_short_before(self.claim.n).0,
            more_sinks: (self.claim.sink as usize) + 1 < chain,
            role: self.role(),
            chance: self.chance,
        }
    }

    fn receipt_order(&self) -> ReceiptOrder {
        // On a full disk a receipt can take long, and nothing else may wait for the session meanwhile.
        ReceiptOrder::AfterTurn
    }

    fn acknowledge(&self, verdict: &Verdict) -> Result<(), StoreError> {
        record::delivered(self, verdict)
    }

    fn record(&self, verdict: &Verdict) -> Result<(), StoreError> {
        record::lease_result(self, verdict)
    }
}

/// A message that is first in line, for which the caller holds the lock of the session's turn.
pub(super) struct FirstMessage<'a> {
    pub(super) inbox: &'a Inbox<'a>,
    pub(super) session: &'a Session,
    /// The number of the message.
    pub(super) n: u32,
    pub(super) facts: &'a MessageFacts,
    pub(super) message: &'a Message,
    pub(super) claim: Claim,
}

impl Item for FirstMessage<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject {
            job: None,
            session: Some(self.session),
            message_number: Some(self.n),
            attempt: self.claim.n,
        }
    }

    fn id(&self) -> String {
        format!("{}.message.{}", self.session, self.n)
    }

    fn needs_turn(&self, _sink: &dyn FollowUpSink) -> bool {
        // Each message is a turn, whatever its sink does with it: that is how its attempts are numbered.
        true
    }

    fn cause(&self, _others: Vec<String>) -> TurnCause {
        TurnCause::Message { n: self.n, attempt: self.claim.n }
    }

    fn repeats(&self) -> Option<Interruption> {
        self.facts.last_cut_short()
    }

    fn compose(&self, _n: usize) -> Result<SinkPayload, StoreError> {
        Ok(MessagePayload::message(self.n, self.claim.n, self.message).into())
    }

    fn without_turn(&self) -> Option<Response> {
        // Nothing is recorded of this attempt yet, and the next process makes it.
        None
    }

    fn tolerates(&self, _error: &StoreError) -> bool {
        false
    }

    fn receipt(&self) -> Option<PathBuf> {
        self.inbox.turns.ports.sessions.message_receipt_path(self.session, self.n)
    }

    fn is_still_ours(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn history(&self) -> History<'_> {
        let results = self.facts.results.iter().rev();
        let is_busy = |it: &MessageResult| !it.spent && it.interrupted.is_none() && !it.released;
        let busy = results.take_while(|(_, result)| result.present().is_some_and(is_busy));
        History {
            attempts_used: self.claim.attempts_used,
            busy_before: u32::try_from(busy.count()).unwrap_or(u32::MAX),
            cut_short_before: self.facts.cut_short_in_a_row(),
            more_sinks: false,
            role: SinkRole::Own,
            chance: record::chance(self.inbox.turns.ports, self.claim.n),
        }
    }

    fn receipt_order(&self) -> ReceiptOrder {
        // A turn that dies between the two is found to be done.
        ReceiptOrder::BeforeTurnEnds
    }

    fn acknowledge(&self, _: &Verdict) -> Result<(), StoreError> {
        record::message_delivered(self)
    }

    fn record(&self, verdict: &Verdict) -> Result<(), StoreError> {
        record::message_result(self, verdict)
    }
}
