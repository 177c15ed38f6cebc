//! Claims of callers that have no process to hold a lock: a lease that lasts until its deadline, and a token that ends
//! it.

use std::time::Duration;

use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::sink::{Delivery, SinkReply};
use hearback_core::{ClaimToken, Fact, JobId, Lease, Observed, Timestamp};

use super::claim::{LeasedFollowUp, still_ours};
use super::due::{Claim, ClaimHold, Due, claim_hold, due_to_caller};
use super::hand_over::Item;
use super::interpret::{Response, interpret};
use super::{Deliverer, record};

/// A follow-up that a caller has claimed.
#[derive(Debug)]
pub struct CallerClaim {
    /// What a sink would get.
    pub delivery: Delivery,
    /// What acknowledges or releases it.
    pub token: ClaimToken,
    /// Until when it is the caller's, by the wall clock of now.
    pub until: Timestamp,
}

/// Why a caller gives a follow-up back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// It cannot take it now. No attempt is spent, and the pause grows each time.
    Busy(String),
    /// It failed. The attempt is spent.
    Failed(String),
}

impl From<Released> for Response {
    fn from(released: Released) -> Self {
        match released {
            Released::Busy(reason) => {
                Self::Replied(SinkReply::Busy { reason, process: None, retry_after_ms: None })
            }
            Released::Failed(reason) if reason.is_empty() => Self::Failed("the caller released it".into()),
            Released::Failed(reason) => Self::Failed(reason),
        }
    }
}

/// How often a claim is tried again after another process was quicker: then that one has it.
const TRIES: usize = 3;

impl Deliverer<'_> {
    /// Claims the follow-up of a job that no sink gets, for so long. Otherwise returns when it is free, if it will be.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn claim_for_caller(
        &self,
        id: &JobId,
        lasts: Duration,
    ) -> Result<Result<CallerClaim, Option<Duration>>, StoreError> {
        for _ in 0..TRIES {
            let Some(seen) = self.ports.store.observe(id)? else { return Ok(Err(None)) };
            if seen.hands_off(&self.ports.here).is_some() {
                return Ok(Err(None));
            }
            let last_lease = self.lease_lock(&seen, seen.last_lease().max(1))?;
            let now = self.ports.clock.stamp();
            match due_to_caller(&seen, &self.ports.here, last_lease, &now, &self.retry) {
                Due::Now(claim) => {
                    if claim.n == 1 && self.is_read_meanwhile(id)? {
                        return Ok(Err(None));
                    }
                    if let Some(claimed) = self.take_for_caller(&seen, claim, lasts)? {
                        return Ok(Ok(claimed));
                    }
                }
                Due::In(pause) => return Ok(Err(Some(pause))),
                due => return self.without_attempt(&seen, due, last_lease).map(|_| Err(None)),
            }
        }
        Ok(Err(None))
    }

    /// Takes the lease; none if another process was quicker.
    fn take_for_caller(
        &self,
        seen: &Observed,
        claim: Claim,
        lasts: Duration,
    ) -> Result<Option<CallerClaim>, StoreError> {
        let (id, ports) = (&seen.id, self.ports);
        let _keeper = ports.share(id, JobLock::Keeper)?;
        let lock = ports.store.lock(id, JobLock::Lease(claim.n), LockMode::Exclusive, Wait::Try)?;
        let Some(_lock) = lock else { return Ok(None) };
        let at = ports.clock.stamp();
        let secret = ports.sessions.mint(at.wall_ms).to_string();
        let until = at.wall_ms.after(record::millis(lasts));
        let lease = Lease {
            deadline_ms: record::millis(lasts),
            attempts_used: claim.attempts_used,
            secret: Some(secret.clone()),
            ..Lease::at(at)
        };
        if ports.publish(seen, &Fact::Lease(claim.n, lease))? == Publish::Exists {
            return Ok(None);
        }
        let Some(seen) = still_ours(self, seen, claim.n)? else { return Ok(None) };
        let token = ClaimToken { job: id.clone(), lease: claim.n, secret };
        Ok(self.compose(&seen).map(|delivery| CallerClaim { delivery, token, until }))
    }

    /// What the token of a caller is worth now; none if there is no such job.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn claim_hold(&self, token: &ClaimToken) -> Result<Option<(ClaimHold, Observed)>, StoreError> {
        let Some(seen) = self.ports.store.observe(&token.job)? else { return Ok(None) };
        let last_lease = self.lease_lock(&seen, seen.last_lease().max(1))?;
        let hold = claim_hold(&seen.facts, token, last_lease, &self.ports.clock.stamp());
        Ok(Some((hold, seen)))
    }

    /// Gives a follow-up back that a caller has claimed. Returns what its token was worth: nothing is changed unless it
    /// was held.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn release_claim(&self, token: &ClaimToken, released: Released) -> Result<ClaimHold, StoreError> {
        let Some((hold, seen)) = self.claim_hold(token)? else { return Ok(ClaimHold::Unknown) };
        let lease = seen.facts.leases.iter().find(|(n, _)| *n == token.lease);
        let lease = lease.and_then(|(_, lease)| lease.present().cloned());
        let is_open = seen.facts.receipt.is_absent();
        let Some(lease) = lease.filter(|_| hold == ClaimHold::Held && is_open) else {
            return Ok(if is_open { hold } else { ClaimHold::Over });
        };
        let Some(item) = LeasedFollowUp::of_caller(self, seen, token.lease, &lease)? else {
            return Ok(ClaimHold::Over);
        };
        let verdict = interpret(&released.into(), &item.history(), &self.retry);
        record::lease_result(&item, &verdict)?;
        Ok(ClaimHold::Held)
    }
}
