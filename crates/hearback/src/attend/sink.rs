//! The sink of a host: it tells the host what is due, and answers when the host has closed the turn.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, HOST_SINK, SinkError, SinkReply, Sinks};
use hearback_core::{JobId, SinkPayload, job_of_delivery};

use super::host::Host;
use super::items::{Claim, Delivered, Held, HostItem};
use super::turns::{HostNews, HostTurn, Running, TurnKind};

/// A host may take as long as it likes: its death is seen by its locks.
pub(super) const WITHIN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The sinks of a host: its own. What goes elsewhere is left to other processes.
pub(super) struct HostSinks {
    host: Arc<Host>,
    /// Tells those that closed a turn that what became of it is recorded.
    recorded: Mutex<Option<Sender<()>>>,
    /// Whether anything was handed over.
    pub(super) has_handed_over: std::sync::atomic::AtomicBool,
}

/// The host has closed a turn.
pub(super) struct ClosedTurn {
    pub(super) reply: Result<SinkReply, SinkError>,
    /// Who is told when that is recorded.
    pub(super) recorded: Sender<()>,
}

impl HostSinks {
    pub(super) fn new(host: &Arc<Host>) -> Self {
        Self { host: Arc::clone(host), recorded: Mutex::default(), has_handed_over: false.into() }
    }

    /// What was closed last is recorded.
    fn tell_recorded(&self, next: Option<Sender<()>>) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorded) = std::mem::replace(&mut *recorded, next) {
            let _ = recorded.send(()); // The host may not wait for it.
        }
    }
}

impl Drop for HostSinks {
    fn drop(&mut self) {
        self.tell_recorded(None);
    }
}

impl Sinks for HostSinks {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        match name {
            HOST_SINK => Ok(Box::new(self)),
            _ => Err(SinkError::Elsewhere(name.to_owned())),
        }
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        name != HOST_SINK
    }

    fn of_unrouted(&self) -> Option<&str> {
        Some(HOST_SINK)
    }
}

impl FollowUpSink for HostSinks {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        self.tell_recorded(None);
        let (Some(session), Some(number)) = (payload.session(), context.turn) else {
            return Err(SinkError::Failed("a host gets nothing outside a turn".into()));
        };
        if context.receipts.iter().any(|receipt| receipt.exists()) {
            return Err(SinkError::Closed);
        }
        let host = &self.host;
        // After the begin of the turn was recorded: a drain that began before it is seen here, and one that begins
        // later sees the turn.
        if host.is_closed() || host.draining().is_ok_and(|kind| kind.is_some()) {
            return Ok(SinkReply::busy());
        }
        let payload = host.hearback.secrets().masked_payload(payload);
        let token = host.token(&context.mark);
        let items = items(&payload).into_iter().map(|(delivered, payload)| {
            let token = host.token(&context.mark);
            let id = payload.id().to_owned();
            (
                Held { token: token.clone(), id, claim: Claim::Deliverer(delivered), said: None },
                HostItem { token, payload },
            )
        });
        let (held, items): (Vec<_>, Vec<_>) = items.unzip();
        let (closed, answer) = channel();
        let facts = host.hearback.store.session(session).unwrap_or_default();
        let destination = facts.last_begin().and_then(|begin| begin.destination.clone());
        let turn = HostTurn {
            token: token.clone(),
            session: session.clone(),
            number,
            mark: context.mark.clone(),
            note: note(&payload),
            destination: payload.destination().map(str::to_owned).or(destination),
            items,
        };
        let kind = TurnKind::Delivered(closed);
        host.turns.insert(token, Running::new(session.clone(), number, context.mark.clone(), kind, held));
        self.has_handed_over.store(true, std::sync::atomic::Ordering::SeqCst);
        host.tell(HostNews::Turn { turn, text: payload.text().to_owned() });
        match answer.recv() {
            Ok(ClosedTurn { reply, recorded }) => {
                self.tell_recorded(Some(recorded));
                host.hearback.secrets().masked_reply(reply)
            }
            // The host has gone.
            Err(_) => Ok(SinkReply::busy()),
        }
    }

    fn starts_turn(&self) -> bool {
        true
    }

    fn within(&self) -> Duration {
        WITHIN
    }
}

/// The items of a payload, each with a payload of its own; none if an interrupted turn continues.
fn items(payload: &SinkPayload) -> Vec<(Delivered, SinkPayload)> {
    match payload {
        SinkPayload::Message(message) if message.message.is_none() => Vec::new(),
        SinkPayload::Message(message) => {
            let number = message.id.rsplit('.').next().and_then(|number| number.parse().ok());
            vec![(Delivered::Message(number.unwrap_or(0)), payload.clone())]
        }
        SinkPayload::FollowUp(_) | SinkPayload::FollowUps(_) => {
            let job = |id: &str| JobId::parse(job_of_delivery(id)).ok();
            let deliveries = payload.deliveries().iter();
            deliveries.filter_map(|it| Some((Delivered::FollowUp(job(&it.id)?), it.clone().into()))).collect()
        }
        SinkPayload::Notice(_) => Vec::new(),
    }
}

fn note(payload: &SinkPayload) -> Option<hearback_core::note::Note> {
    match payload {
        SinkPayload::FollowUp(delivery) => delivery.note.clone(),
        SinkPayload::FollowUps(several) => several.note.clone(),
        SinkPayload::Message(message) => message.note.clone(),
        SinkPayload::Notice(_) => None,
    }
}
