//! Taking what is due into a turn that runs: claims that are held until the turn has ended, or until each is closed.

use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::session::{Interruption, MessageFact, MessageFacts, SessionFacts};
use hearback_core::{JobId, Observed, Session, SinkPayload, SmallSort};
use tracing::debug;

use super::claim::{FirstMessage, HeldFollowUp, LeaseRule, LeasedFollowUp};
use super::company::order;
use super::due::{Claim, Due, due_in_line};
use super::hand_over::{Attempts, Item, Route};
use super::interpret::{Response, Verdict, interpret};
use super::{Deliverer, Inbox, record};

/// The most that one turn takes at once: more is too much for one text.
const MOST: usize = 32;

/// A follow-up that a turn which runs has taken. Its lease is held while this is.
#[derive(Debug)]
pub struct SteeredFollowUp {
    held: HeldFollowUp,
    sink: String,
}

impl SteeredFollowUp {
    /// Its job.
    pub fn job(&self) -> &JobId {
        &self.held.seen.id
    }
}

impl Deliverer<'_> {
    /// Claims those of these jobs whose follow-ups are due at this sink, in the order of the ends, for a turn that
    /// runs. The caller holds the lock of that turn. What was cut short before comes in a turn of its own.
    ///
    /// Best effort: what cannot be claimed comes after the turn.
    pub fn steer(&self, jobs: &[JobId], sink: &str, within: Duration) -> Vec<(SteeredFollowUp, SinkPayload)> {
        let route = Route { name: sink, sink: self.sinks.find(sink) };
        let mut due: Vec<_> = jobs.iter().filter_map(|id| self.due_mate(id, &route)).collect();
        due.small_sort_by(|(a, _), (b, _)| order(a).cmp(&order(b)));
        due.truncate(MOST);
        let many = due.len();
        let take = |(seen, claim): (Observed, Claim)| {
            let chance = record::chance(self.ports, claim.n);
            let leased = LeasedFollowUp::claim(self, &seen, claim, within, true, LeaseRule::Required, chance);
            let composed = leased.and_then(|leased| {
                let Some(leased) = leased else { return Ok(None) };
                let payload = leased.compose(many)?;
                Ok(Some((SteeredFollowUp { held: leased.held, sink: sink.to_owned() }, payload)))
            });
            composed.unwrap_or_else(|error| {
                debug!(job = %seen.id, %error, "not claimed, it comes after the turn");
                None
            })
        };
        due.into_iter().filter_map(take).collect()
    }

    /// Records what became of a follow-up that a turn has taken, and releases it.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn conclude(&self, steered: SteeredFollowUp, response: &Response) -> Result<(), StoreError> {
        let id = steered.held.seen.id.clone();
        let route = Route { name: &steered.sink, sink: self.sinks.find(&steered.sink) };
        let item = LeasedFollowUp { deliverer: self, held: steered.held };
        let verdict = Attempts { turns: self.turns, retry: self.retry }.conclude(&item, &route, response);
        drop(item);
        self.settle(&id);
        verdict.map(drop)
    }
}

/// A message that a turn which runs has taken. The lock of the turn keeps other processes away from it.
#[derive(Debug)]
pub struct SteeredMessage {
    session: Session,
    /// Its number.
    pub n: u32,
    facts: MessageFacts,
    claim: Claim,
}

impl Inbox<'_> {
    /// Takes the messages that are due at this sink, in order, into a turn that runs, without those that it `has`. The
    /// caller holds the lock of that turn. What was cut short before comes in a turn of its own, and so does what is
    /// behind it.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn steer(
        &self,
        session: &Session,
        sink: &str,
        has: impl Fn(u32) -> bool,
    ) -> Result<Vec<(SteeredMessage, SinkPayload)>, StoreError> {
        let ports = self.turns.ports;
        let facts = ports.sessions.session(session)?;
        let mut taken = Vec::new();
        for (n, message, claim) in self.due_in_turn(&facts, sink, has) {
            // If this process dies, this is all that is known of the attempt.
            let cut = MessageFact::interrupted(claim.n, ports.clock.stamp(), Interruption::Crash, 0);
            let _ = ports.sessions.publish_message(session, n, &cut, self.turns.durability)?;
            let (session, message) = (session.clone(), message.clone());
            let mut steered = SteeredMessage { session, n, facts: message, claim };
            let payload = steered.item(self).map(|item| item.compose(1)).transpose()?;
            // The result of this attempt has a number of its own.
            steered.claim.n += 1;
            taken.extend(payload.map(|payload| (steered, payload)));
        }
        Ok(taken)
    }

    /// How many messages a turn that runs could take.
    pub fn steerable(&self, facts: &SessionFacts, sink: &str, has: impl Fn(u32) -> bool) -> usize {
        self.due_in_turn(facts, sink, has).len()
    }

    fn due_in_turn<'f>(
        &self,
        facts: &'f SessionFacts,
        sink: &str,
        has: impl Fn(u32) -> bool,
    ) -> Vec<(u32, &'f MessageFacts, Claim)> {
        let now = self.turns.ports.clock.stamp();
        let waiting = facts.waiting().filter(|(n, _)| !has(*n));
        let due = waiting.map_while(|(n, message)| {
            let goes_there = message.message.present().is_some_and(|message| message.sink == sink);
            match due_in_line(message, &now, &self.retry) {
                Some(Due::Now(claim)) if goes_there && message.cut_short_in_a_row() == 0 => {
                    Some((n, message, claim))
                }
                _ => None,
            }
        });
        due.take(MOST).collect()
    }

    /// Records what became of a message that a turn has taken.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn conclude(&self, steered: &SteeredMessage, response: &Response) -> Result<(), StoreError> {
        let Some(item) = steered.item(self) else { return Ok(()) };
        match interpret(response, &item.history(), &self.retry) {
            verdict @ (Verdict::Delivered | Verdict::Queued) => item.acknowledge(&verdict),
            verdict => item.record(&verdict),
        }
    }
}

impl SteeredMessage {
    fn item<'a>(&'a self, inbox: &'a Inbox<'a>) -> Option<FirstMessage<'a>> {
        let Self { session, n, facts, claim } = self;
        let message = facts.message.present()?;
        Some(FirstMessage { inbox, session, n: *n, facts, message, claim: *claim })
    }
}
