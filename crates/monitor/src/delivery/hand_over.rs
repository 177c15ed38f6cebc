//! Making attempts that were claimed: compose, hand over to the sink, interpret, record.
//!
//! Several follow-ups of one session go to a sink that starts turns in one turn. Each keeps its identity, its claim,
//! its attempts and its receipt.

use std::path::PathBuf;

use hearback_core::port::disk::Lock;
use hearback_core::port::record::StoreError;
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback_core::session::{Interruption, TurnCause, TurnHow};
use hearback_core::{FollowUps, JobId, Session, SinkPayload};
use tracing::field::display;
use tracing::{debug, error, info, warn};

use super::due::Retry;
use super::interpret::{History, Response, Verdict, interpret};
use super::record;
use crate::session::{Beginning, OpenTurn, Turns};

/// One thing to deliver, claimed: the follow-up of a job, or a message to a session. What differs between the two.
pub(super) trait Item {
    /// What it is, for events.
    fn subject(&self) -> Subject<'_>;

    /// The id of its delivery.
    fn id(&self) -> String;

    /// Whether it is handed to this sink as a turn of its session.
    fn needs_turn(&self, sink: &dyn FollowUpSink) -> bool;

    /// What that turn is for, if it is told together with others.
    fn cause(&self, others: Vec<String>) -> TurnCause;

    /// Why an earlier turn for it was cut short, if one was.
    fn repeats(&self) -> Option<Interruption>;

    /// Composes what is sent, as one of `n` in a turn.
    fn compose(&self, n: usize) -> Result<SinkPayload, StoreError>;

    /// The response to assume if this process begins no further turn, because it is about to end; none if that is no
    /// attempt.
    fn without_turn(&self) -> Option<Response>;

    /// Whether it is handed over although the begin of its turn cannot be recorded.
    fn tolerates(&self, error: &StoreError) -> bool;

    /// The file that exists once it is closed, if there is one.
    fn receipt(&self) -> Option<PathBuf>;

    /// Whether no other process has taken over, or closed it, since it was claimed.
    fn is_still_ours(&self) -> Result<bool, StoreError>;

    /// What is known of the attempts so far.
    fn history(&self) -> History<'_>;

    /// When its receipt is published.
    fn receipt_order(&self) -> ReceiptOrder;

    /// Publishes its receipt: the agent has it, or keeps it in a queue.
    fn acknowledge(&self, verdict: &Verdict) -> Result<(), StoreError>;

    /// Records an attempt that did not deliver it.
    fn record(&self, verdict: &Verdict) -> Result<(), StoreError>;
}

/// What is delivered, for events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The job of a follow-up.
    pub(super) job: Option<&'a JobId>,
    /// The session that gets it, if it has one.
    pub(super) session: Option<&'a Session>,
    /// The number of a message; the field `message` of an event is its text.
    pub(super) message_number: Option<u32>,
    /// The number of this attempt.
    pub(super) attempt: u32,
}

/// When a receipt is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceiptOrder {
    /// Before the end of the turn is.
    BeforeTurnEnds,
    /// After the turn, when its lock is released.
    AfterTurn,
}

/// A sink by its name, or why there is none.
pub(super) struct Route<'a> {
    pub(super) name: &'a str,
    pub(super) sink: Result<Box<dyn FollowUpSink + 'a>, SinkError>,
}

impl Route<'_> {
    /// Whether an item goes there as a turn of its session.
    fn needs_turn(&self, item: &dyn Item) -> bool {
        self.sink.as_ref().is_ok_and(|sink| item.needs_turn(&**sink))
    }
}

/// Where turns begin, and how often an attempt is made.
#[derive(Clone, Copy)]
pub(super) struct Attempts<'a> {
    pub(super) turns: Turns<'a>,
    pub(super) retry: Retry,
}

/// One item with what is sent of it.
struct Composed<'a> {
    /// Its place in the list of items.
    place: usize,
    item: &'a dyn Item,
    payload: SinkPayload,
}

/// Items that a response is about, with their places in the list.
type Told<'a> = Vec<(usize, &'a dyn Item)>;

impl Attempts<'_> {
    /// Makes one attempt for all items; for each, none if it is left to another process.
    ///
    /// More than one item go to a sink that starts a turn, in one turn of the session that they share. `turn_lock` is
    /// the lock of that turn, if it has to be released when the turn has ended.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written. What an item came to is recorded even if that fails for another.
    pub(super) fn make(
        &self,
        items: &[&dyn Item],
        route: &Route<'_>,
        turn_lock: Option<Lock>,
    ) -> Result<Vec<Option<Verdict>>, StoreError> {
        // A process that is about to end waits for this record.
        let _recording =
            items.iter().any(|item| route.needs_turn(*item)).then(|| self.turns.active_turns.recording());
        let mut composed = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            let Subject { job, session, message_number, attempt } = item.subject();
            let (job, session) = (job.map(display), session.map(display));
            debug!(job, session, message_number, attempt, sink = route.name, "attempt begins");
            composed.push(Composed { place, item: *item, payload: item.compose(items.len())? });
        }
        let mut verdicts = vec![None; items.len()];
        let (response, told) = self.hand_over(composed, route)?;
        drop(turn_lock);
        let Some(response) = response else { return Ok(verdicts) };
        let mut failure = None;
        for (place, item) in told {
            match self.conclude(item, route, &response.about(&item.id())) {
                Ok(verdict) => verdicts[place] = verdict,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(verdicts), Err)
    }

    /// Records what an attempt came to for one item; none if another process has taken over.
    pub(super) fn conclude(
        &self,
        item: &dyn Item,
        route: &Route<'_>,
        response: &Response,
    ) -> Result<Option<Verdict>, StoreError> {
        if !item.is_still_ours()? {
            return Ok(None);
        }
        let verdict = interpret(response, &item.history(), &self.retry);
        match &verdict {
            Verdict::Delivered | Verdict::Queued if is_acknowledged_in_turn(item, route) => {}
            Verdict::Delivered | Verdict::Queued => item.acknowledge(&verdict)?,
            _ => item.record(&verdict)?,
        }
        // Only what is recorded is reported.
        say(&item.subject(), route.name, &verdict);
        Ok(Some(verdict))
    }

    /// Hands over, and returns the response with the items that it is about; no response if all are left to others.
    fn hand_over<'i>(
        &self,
        composed: Vec<Composed<'i>>,
        route: &Route<'_>,
    ) -> Result<(Option<Response>, Told<'i>), StoreError> {
        let items: Vec<_> = composed.iter().map(|it| (it.place, it.item)).collect();
        let sink = match &route.sink {
            Ok(sink) => &**sink,
            Err(error) => return Ok((Some(Response::Failed(error.to_string())), items)),
        };
        let Some(first) = composed.first() else { return Ok((None, items)) };
        let item = first.item;
        let session = first.payload.session().filter(|_| item.needs_turn(sink)).cloned();
        let alone = || self.send(sink, &first.payload, None, item.receipt().into_iter().collect());
        let Some(session) = session else { return Ok((Some(alone()), items)) };
        let turn = match self.begin_turn(&composed, route, &session) {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok((item.without_turn(), items)),
            Err(error) if composed.len() == 1 && item.tolerates(&error) => return Ok((Some(alone()), items)),
            Err(error) => return Err(error),
        };
        let (response, told) = self.send_in_turn(composed, sink, &turn);
        let Some(response) = response else {
            turn.end(TurnHow::Done)?;
            return Ok((None, told));
        };
        for (_, item) in told.iter().filter(|(_, item)| is_acknowledged_in_turn(*item, route)) {
            match response.about(&item.id()) {
                Response::Replied(SinkReply::Delivered) => item.acknowledge(&Verdict::Delivered)?,
                Response::Replied(SinkReply::Queued) => item.acknowledge(&Verdict::Queued)?,
                _ => {}
            }
        }
        Ok((Some(end_turn(turn, response)), told))
    }

    /// Hands over in a turn. What was closed since it was claimed is left out; no response if that is all.
    fn send_in_turn<'i>(
        &self,
        mut composed: Vec<Composed<'i>>,
        sink: &dyn FollowUpSink,
        turn: &OpenTurn<'_>,
    ) -> (Option<Response>, Told<'i>) {
        loop {
            composed.retain(|it| {
                it.item.is_still_ours().unwrap_or_else(|error| {
                    warn!(delivery = it.payload.id(), %error, "not handed over, it cannot be read");
                    false
                })
            });
            let told = composed.iter().map(|it| (it.place, it.item)).collect();
            let payloads = composed.iter().map(|it| it.payload.clone()).collect();
            let Some(payload) = joined(payloads, turn) else { return (None, told) };
            let receipts = composed.iter().filter_map(|it| it.item.receipt()).collect();
            let response = self.send(sink, &payload, Some(turn), receipts);
            // If one of them was closed at the last moment, nothing was handed over: the others are.
            let is_closed = |it: &Composed<'_>| matches!(it.item.is_still_ours(), Ok(false));
            if response != Response::Closed || !composed.iter().any(is_closed) {
                return (Some(response), told);
            }
        }
    }

    fn begin_turn(
        &self,
        composed: &[Composed<'_>],
        route: &Route<'_>,
        session: &Session,
    ) -> Result<Option<OpenTurn<'_>>, StoreError> {
        let Some((first, others)) = composed.split_first() else { return Ok(None) };
        let others = others.iter().map(|other| other.payload.id().to_owned()).collect();
        let beginning = Beginning {
            sink: Some(route.name.to_owned()),
            destination: first.payload.destination().map(str::to_owned),
            cwd: first.payload.cwd().cloned(),
            repeats: composed.iter().find_map(|it| it.item.repeats()),
            ..Beginning::new(first.item.cause(others))
        };
        self.turns.begin(session, beginning)
    }

    /// Runs the sink. It looks for the receipts last: everything else is ready by then, so that hardly any time is left
    /// in which the owner closes the delivery and hears of it all the same.
    pub(super) fn send(
        &self,
        sink: &dyn FollowUpSink,
        payload: &SinkPayload,
        turn: Option<&OpenTurn<'_>>,
        receipts: Vec<PathBuf>,
    ) -> Response {
        let ports = self.turns.ports;
        let context = DeliveryContext {
            mark: turn.map_or_else(|| ports.sessions.mint(ports.clock.wall()), |turn| turn.mark().clone()),
            turn: turn.map(OpenTurn::number),
            receipts,
        };
        match sink.deliver(payload, &context) {
            Ok(reply) => Response::Replied(reply),
            Err(SinkError::Closed) => Response::Closed,
            Err(error) => Response::Failed(error.to_string()),
        }
    }
}

/// Says what an attempt came to: what a person has to act upon is an error.
fn say(subject: &Subject<'_>, sink: &str, verdict: &Verdict) {
    let Subject { job, session, message_number, attempt } = *subject;
    let (job, session) = (job.map(display), session.map(display));
    let next_ms = verdict.next().map(record::millis);
    match verdict {
        Verdict::Delivered => info!(job, session, message_number, attempt, sink, "delivered"),
        Verdict::Queued => info!(job, session, message_number, attempt, sink, "queued by the agent"),
        Verdict::Busy { error, .. } | Verdict::Interrupted { error, .. } => {
            info!(job, session, message_number, attempt, sink, next_ms, error, "postponed");
        }
        Verdict::Unreachable { error, .. } => {
            warn!(job, session, message_number, attempt, sink, next_ms, error, "session cannot be reached");
        }
        Verdict::StandIn { told: true, error, .. } => {
            info!(job, session, attempt, sink, next_ms, error, "told in place of the session");
        }
        Verdict::StandIn { told: false, error, .. } => {
            warn!(job, session, attempt, sink, next_ms, error, "not told in place of the session");
        }
        Verdict::Retry { error, .. } => {
            warn!(job, session, message_number, attempt, sink, next_ms, error, "not delivered, trying again");
        }
        Verdict::NextSink { error } => {
            warn!(job, session, message_number, attempt, sink, error, "not delivered, trying the next sink");
        }
        Verdict::GiveUp { error, .. } => {
            error!(job, session, message_number, attempt, sink, error, "not delivered, given up");
        }
    }
}

/// One payload for a turn: that of its only item, or one of all follow-ups; none if there is nothing to tell.
fn joined(mut payloads: Vec<SinkPayload>, turn: &OpenTurn<'_>) -> Option<SinkPayload> {
    let note = turn.note().cloned();
    if payloads.len() <= 1 {
        return payloads.pop().map(|payload| payload.after(note));
    }
    let deliveries = payloads.iter().flat_map(|payload| payload.deliveries().to_vec()).collect();
    Some(FollowUps::new(turn.session().clone(), turn.number(), deliveries, note).into())
}

fn is_acknowledged_in_turn(item: &dyn Item, route: &Route<'_>) -> bool {
    item.receipt_order() == ReceiptOrder::BeforeTurnEnds && route.needs_turn(item)
}

/// Ends the turn of an attempt, and returns the response. If the end of the turn cannot be recorded, the attempt still
/// is: the next turn of the session closes this one.
fn end_turn(turn: OpenTurn<'_>, response: Response) -> Response {
    let how = response.error().map_or(TurnHow::Done, |error| TurnHow::Failed { error });
    match turn.end(how) {
        Ok(TurnHow::Interrupted { reason }) => Response::Interrupted(reason),
        Ok(_) => response,
        Err(error) => {
            warn!(%error, "end of turn not recorded");
            response
        }
    }
}
