//! Making one attempt that was claimed: compose, hand over to the sink, interpret, record.

use std::path::PathBuf;

use hearback_core::port::disk::Lock;
use hearback_core::port::record::StoreError;
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback_core::session::{TurnCause, TurnHow};
use hearback_core::{JobId, Session, SinkPayload};
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

    /// Whether it is handed to this sink as a turn of its session.
    fn needs_turn(&self, sink: &dyn FollowUpSink) -> bool;

    /// What that turn is for.
    fn cause(&self) -> TurnCause;

    /// Composes what is sent.
    fn compose(&self) -> Result<SinkPayload, StoreError>;

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
    fn history(&self) -> History;

    /// When its receipt is published.
    fn receipt_order(&self) -> ReceiptOrder;

    /// Publishes its receipt.
    fn acknowledge(&self) -> Result<(), StoreError>;

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

impl Attempts<'_> {
    /// Makes the attempt; none if it is left to another process.
    ///
    /// `turn_lock` is the lock of the session's turn, if it has to be released when the turn has ended.
    pub(super) fn make(
        &self,
        item: &dyn Item,
        route: &Route<'_>,
        turn_lock: Option<Lock>,
    ) -> Result<Option<Verdict>, StoreError> {
        // A process that is about to end waits for this record.
        let _recording = route.needs_turn(item).then(|| self.turns.active_turns.recording());
        let Subject { job, session, message_number, attempt } = item.subject();
        let (job, session) = (job.map(display), session.map(display));
        debug!(job, session, message_number, attempt, sink = route.name, "attempt begins");
        let payload = item.compose()?;
        let Some(response) = self.hand_over(item, route, payload)? else { return Ok(None) };
        drop(turn_lock);
        if !item.is_still_ours()? {
            return Ok(None);
        }
        let verdict = interpret(&response, &item.history(), &self.retry);
        match &verdict {
            Verdict::Delivered if is_acknowledged_in_turn(item, route) => {}
            Verdict::Delivered => item.acknowledge()?,
            _ => item.record(&verdict)?,
        }
        // Only what is recorded is reported.
        say(&item.subject(), route.name, &verdict);
        Ok(Some(verdict))
    }

    fn hand_over(
        &self,
        item: &dyn Item,
        route: &Route<'_>,
        payload: SinkPayload,
    ) -> Result<Option<Response>, StoreError> {
        let sink = match &route.sink {
            Ok(sink) => &**sink,
            Err(error) => return Ok(Some(Response::Failed(error.to_string()))),
        };
        let session = payload.session().filter(|_| item.needs_turn(sink)).cloned();
        let Some(session) = session else { return Ok(Some(self.send(sink, &payload, None, item.receipt()))) };
        let turn = match self.begin_turn(item, route, &session, &payload) {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok(item.without_turn()),
            Err(error) if item.tolerates(&error) => {
                return Ok(Some(self.send(sink, &payload, None, item.receipt())));
            }
            Err(error) => return Err(error),
        };
        let payload = payload.after(turn.note().cloned());
        let response = self.send(sink, &payload, Some(&turn), item.receipt());
        if response == DELIVERED && is_acknowledged_in_turn(item, route) {
            item.acknowledge()?;
        }
        Ok(Some(end_turn(turn, response)))
    }

    fn begin_turn(
        &self,
        item: &dyn Item,
        route: &Route<'_>,
        session: &Session,
        payload: &SinkPayload,
    ) -> Result<Option<OpenTurn<'_>>, StoreError> {
        let beginning = Beginning {
            sink: Some(route.name.to_owned()),
            destination: payload.destination().map(str::to_owned),
            cwd: payload.cwd().cloned(),
            ..Beginning::new(item.cause())
        };
        self.turns.begin(session, beginning)
    }

    /// Runs the sink. It looks for the receipt last: everything else is ready by then, so that hardly any time is left
    /// in which the owner closes the delivery and hears of it all the same.
    pub(super) fn send(
        &self,
        sink: &dyn FollowUpSink,
        payload: &SinkPayload,
        turn: Option<&OpenTurn<'_>>,
        receipt: Option<PathBuf>,
    ) -> Response {
        let ports = self.turns.ports;
        let context = DeliveryContext {
            mark: turn.map_or_else(|| ports.sessions.mint(ports.clock.wall()), |turn| turn.mark().clone()),
            turn: turn.map(OpenTurn::number),
            receipts: receipt.into_iter().collect(),
        };
        match sink.deliver(payload, &context) {
            Ok(reply) => Response::Replied(reply),
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
        Verdict::Busy { error, .. } | Verdict::Interrupted { error, .. } => {
            info!(job, session, message_number, attempt, sink, next_ms, error, "postponed");
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

const DELIVERED: Response = Response::Replied(SinkReply::Delivered);

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
