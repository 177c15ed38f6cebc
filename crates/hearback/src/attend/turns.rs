//! The turns that a host runs: opening, taking more into them, and closing them and what they hold.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hearback_core::note::Note;
use hearback_core::port::disk::{Lock, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::{HOST_SINK, SinkError, SinkReply};
use hearback_core::session::{Interruption, MessageFact, MessageHow, TurnCause, TurnHow};
use hearback_core::{FollowUps, JobId, ReceiptHow, Session, SinkPayload, StopKind};
use hearback_monitor::delivery::{self, Deliverer, Inbox, Response};
use hearback_monitor::session::{Beginning, HeldTurn};
use hearback_monitor::wait::CancelWait;
use tracing::warn;

use super::host::{Host, SessionHost};
use super::items::{Claim, Delivered, Held, HostItem, Release};
use super::look::Heard;
use super::sink::{ClosedTurn, HostSinks, WITHIN};
use crate::TurnRequest;
use crate::permissions::{Capability, Denied};

/// How long a host waits for the record of a turn that it closed, which a thread of its own makes.
const RECORDED_WITHIN: Duration = Duration::from_secs(60);
/// The most turns that one host runs at the same time.
const TURNS_MAX: usize = 1024;

/// A turn that a host runs.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTurn {
    /// Names it.
    pub token: String,
    /// Its session.
    pub session: Session,
    /// Its number.
    pub number: u32,
    /// The mark that every process of its agent should carry; see [`HostTurn::env`].
    pub mark: JobId,
    /// What its agent should hear first: the turn before was cut short.
    pub note: Option<Note>,
    /// Where the host shows what the agent says.
    pub destination: Option<String>,
    /// What it holds.
    pub items: Vec<HostItem>,
}

impl HostTurn {
    /// Variables for the processes of its agent. By these they are found, and killed, if this process dies.
    pub fn env(&self) -> BTreeMap<String, String> {
        let depth = self.items.iter().map(|item| item.payload.depth()).max().unwrap_or(0);
        let mut env = BTreeMap::from([
            (crate::session::VARIABLE.to_owned(), self.session.to_string()),
            (crate::session::TURN_VARIABLE.to_owned(), self.number.to_string()),
            (hearback_platform::Names::HEARBACK.bounded_run.to_owned(), self.mark.to_string()),
        ]);
        if depth > 0 {
            env.insert(crate::session::DEPTH_VARIABLE.to_owned(), depth.to_string());
        }
        if let Some(note) = &self.note {
            env.insert(crate::session::NOTE_VARIABLE.to_owned(), note.text.clone());
        }
        env
    }
}

/// What a host is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HostNews {
    /// Something is due for a session that it attends, and a turn has begun for it.
    Turn {
        /// The turn, and what it holds; nothing if an interrupted turn is to be continued.
        turn: HostTurn,
        /// The note and the items as text for the agent.
        text: String,
    },
    /// Something became due while a turn of this host runs.
    Due {
        /// The session.
        session: Session,
        /// The token of the turn.
        turn: String,
        /// How much is due.
        count: usize,
    },
    /// A turn is to end soon.
    Interrupt {
        /// The session.
        session: Session,
        /// The token of the turn.
        turn: String,
        /// Why.
        reason: Interruption,
    },
    /// A monitor is about to end, and no turn begins until that is over.
    Draining {
        /// What the monitor does.
        kind: StopKind,
        /// Whether it is over.
        over: bool,
    },
}

/// How a host closes a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnClose {
    /// The agent did what it was asked. What is open of its items is acknowledged.
    Done,
    /// It did not. What is open of its items is given back, and an attempt is spent.
    Failed {
        /// Why.
        error: String,
    },
}

/// Why a turn was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenTurnError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The session is in a turn.
    #[error("session `{0}` is in a turn")]
    Busy(Session),
    /// A monitor is about to end, and no turn begins meanwhile.
    #[error("hearback is about to {0}, and no turn begins meanwhile")]
    Draining(StopKind),
    /// This host runs too many turns.
    #[error("this host runs {TURNS_MAX} turns")]
    TooMany,
    /// The wait was cancelled.
    #[error("the wait was cancelled")]
    Cancelled,
    /// The records cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a token was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// There is no such turn or claim, or it is over.
    #[error("there is no turn or claim `{0}`, or it is over")]
    Unknown(String),
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The records cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The turns that run, by their tokens.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<String, Arc<Running>>>);

/// A turn that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) session: Session,
    pub(super) number: u32,
    mark: JobId,
    /// What it holds. None when it is closed.
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
pub(super) struct Open {
    kind: TurnKind,
    pub(super) items: Vec<Held>,
    /// How much the host was told to be due.
    pub(super) told_due: usize,
    pub(super) is_interrupt_told: bool,
}

/// Who has begun a turn.
#[derive(Debug)]
pub(super) enum TurnKind {
    /// A thread that delivers, and waits for its end.
    Delivered(Sender<ClosedTurn>),
    /// The host.
    Opened { turn: HeldTurn, lock: Lock },
}

impl std::fmt::Debug for ClosedTurn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClosedTurn").field("reply", &self.reply).finish_non_exhaustive()
    }
}

impl Turns {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, token: String, turn: Running) {
        self.all().insert(token, Arc::new(turn));
    }

    /// The turn of a session, with its token.
    pub(super) fn of(&self, session: &Session) -> Option<(String, Arc<Running>)> {
        let all = self.all();
        let found = all.iter().find(|(_, turn)| turn.session == *session);
        found.map(|(token, turn)| (token.clone(), Arc::clone(turn)))
    }

    fn get(&self, token: &str) -> Result<Arc<Running>, TokenError> {
        self.all().get(token).cloned().ok_or_else(|| TokenError::Unknown(token.to_owned()))
    }

    /// The turn that has an item of this token.
    fn with_item(&self, token: &str) -> Result<Arc<Running>, TokenError> {
        let turns: Vec<_> = self.all().values().cloned().collect();
        let has = |turn: &Arc<Running>| {
            turn.open().as_ref().is_some_and(|open| open.items.iter().any(|item| item.token == token))
        };
        turns.into_iter().find(has).ok_or_else(|| TokenError::Unknown(token.to_owned()))
    }

    fn remove(&self, token: &str) -> Result<Arc<Running>, TokenError> {
        self.all().remove(token).ok_or_else(|| TokenError::Unknown(token.to_owned()))
    }
}

impl Running {
    pub(super) fn new(session: Session, number: u32, mark: JobId, kind: TurnKind, items: Vec<Held>) -> Self {
        let open = Open { kind, items, told_due: 0, is_interrupt_told: false };
        Self { session, number, mark, open: Mutex::new(Some(open)) }
    }

    pub(super) fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Whether the turn has taken this message.
    pub(super) fn has_message(&self, n: u32) -> bool {
        self.items.iter().any(|item| match &item.claim {
            Claim::Deliverer(Delivered::Message(number)) => *number == n,
            Claim::Message(steered) => steered.n == n,
            _ => false,
        })
    }
}

impl SessionHost {
    /// Opens a turn of a session, because the host has something to say to its agent. Waits up to `wait` while the
    /// session is in another turn, or until `cancel`.
    ///
    /// # Errors
    ///
    /// When the session stays in a turn, or no turn may begin.
    pub fn open_turn(
        &self,
        session: &Session,
        wait: Duration,
        request: TurnRequest,
        cancel: &CancelWait,
    ) -> Result<HostTurn, OpenTurnError> {
        let host = &self.0;
        host.hearback.permissions().check(Capability::Turn)?;
        if let Some(kind) = host.draining()? {
            return Err(OpenTurnError::Draining(kind));
        }
        let lock = host.lock_turn(session, wait, cancel)?;
        if host.turns.all().len() >= TURNS_MAX {
            return Err(OpenTurnError::TooMany);
        }
        let TurnRequest { destination, history } = request;
        let beginning = Beginning {
            destination,
            history,
            sink: Some(HOST_SINK.to_owned()),
            cwd: std::env::current_dir().ok().map(|cwd| hearback_platform::from_os(cwd.as_os_str())),
            ..Beginning::new(TurnCause::Command)
        };
        let turns = host.hearback.turns();
        let begun = turns.begin(session, beginning)?.map(hearback_monitor::session::OpenTurn::hold);
        let Some(turn) = begun else { return Err(OpenTurnError::Draining(StopKind::Stop)) };
        // A drain that began before the turn is seen here, and one that begins later sees the turn.
        if let Some(kind) = host.draining()? {
            let error = format!("hearback was about to {kind}");
            turns.end_held(&turn, TurnHow::Failed { error })?;
            return Err(OpenTurnError::Draining(kind));
        }
        let facts = host.hearback.store.session(session).unwrap_or_default();
        let token = host.token(&turn.mark);
        let opened = HostTurn {
            token: token.clone(),
            session: session.clone(),
            number: turn.number,
            mark: turn.mark.clone(),
            note: turn.note.clone(),
            destination: facts.last_begin().and_then(|begin| begin.destination.clone()),
            items: Vec::new(),
        };
        let (number, mark) = (turn.number, turn.mark.clone());
        let running =
            Running::new(session.clone(), number, mark, TurnKind::Opened { turn, lock }, Vec::new());
        host.turns.insert(token, running);
        // What is due already is told.
        host.hear(Heard::Look(session.clone()));
        Ok(opened)
    }

    /// Takes what is due for the session of a turn into that turn: the agent hears of it while it works. Returns the
    /// items, and all of them as text.
    ///
    /// # Errors
    ///
    /// When there is no such turn, or the records cannot be read or written.
    pub fn claim(&self, turn: &str) -> Result<(Vec<HostItem>, Option<String>), TokenError> {
        let host = &self.0;
        host.hearback.permissions().check(Capability::Turn)?;
        let running = host.turns.get(turn)?;
        let mut guard = running.open();
        let Some(open) = guard.as_mut() else { return Err(TokenError::Unknown(turn.to_owned())) };
        let sinks = HostSinks::new(host);
        let messages = host.inbox(&sinks).steer(&running.session, HOST_SINK, |n| open.has_message(n))?;
        let messages =
            messages.into_iter().map(|(steered, payload)| (Claim::Message(Box::new(steered)), payload));
        let jobs = host.hearback.open_jobs_of(&running.session)?;
        let follow_ups = host.deliverer(&sinks).steer(&jobs, HOST_SINK, WITHIN);
        let follow_ups =
            follow_ups.into_iter().map(|(steered, payload)| (Claim::FollowUp(Box::new(steered)), payload));
        let mut items = Vec::new();
        for (claim, payload) in messages.chain(follow_ups) {
            let payload = host.hearback.secrets().masked_payload(&payload);
            let token = host.token(&running.mark);
            let id = payload.id().to_owned();
            open.items.push(Held { token: token.clone(), id, claim, said: None });
            items.push(HostItem { token, payload });
        }
        open.told_due = 0;
        let text = text(&running.session, running.number, &items);
        Ok((items, text))
    }

    /// Closes an item: the agent has it, and it never comes again.
    ///
    /// # Errors
    ///
    /// When there is no such item, or the records cannot be read or written.
    pub fn acknowledge_item(&self, token: &str) -> Result<(), TokenError> {
        let host = &self.0;
        host.hearback.permissions().check(Capability::Ack)?;
        let running = host.turns.with_item(token)?;
        let mut guard = running.open();
        let unknown = || TokenError::Unknown(token.to_owned());
        let item = guard.as_mut().and_then(|open| open.items.iter_mut().find(|item| item.token == token));
        let item = item.ok_or_else(unknown)?;
        let response = Response::Replied(SinkReply::Delivered);
        let sinks = HostSinks::new(host);
        match std::mem::replace(&mut item.claim, Claim::Closed) {
            Claim::Deliverer(delivered) => {
                let closed = host.close_delivered(&running.session, &delivered);
                // The thread that delivers it still counts on it.
                item.claim = Claim::Deliverer(delivered);
                closed?;
            }
            Claim::FollowUp(steered) => host.deliverer(&sinks).conclude(*steered, &response)?,
            Claim::Message(steered) => {
                let closed = host.inbox(&sinks).conclude(&steered, &response);
                if closed.is_err() {
                    item.claim = Claim::Message(steered);
                }
                closed?;
            }
            Claim::Closed => {}
        }
        item.said = Some(SinkReply::Delivered);
        Ok(())
    }

    /// Gives an item back. It is free when its turn has ended. What was acknowledged stays so.
    ///
    /// # Errors
    ///
    /// When there is no such item.
    pub fn release_item(&self, token: &str, why: Release) -> Result<(), TokenError> {
        let running = self.0.turns.with_item(token)?;
        let mut guard = running.open();
        let unknown = || TokenError::Unknown(token.to_owned());
        let item = guard.as_mut().and_then(|open| open.items.iter_mut().find(|item| item.token == token));
        let item = item.ok_or_else(unknown)?;
        if item.said != Some(SinkReply::Delivered) {
            item.said = Some(why.into());
        }
        Ok(())
    }

    /// Closes a turn. When this returns, what became of its items is recorded.
    ///
    /// # Errors
    ///
    /// When there is no such turn, or the records cannot be written. The turn is over all the same.
    pub fn close_turn(&self, turn: &str, how: &TurnClose) -> Result<(), TokenError> {
        let running = self.0.turns.remove(turn)?;
        let open = running.open().take().ok_or_else(|| TokenError::Unknown(turn.to_owned()))?;
        let closed = self.0.close(&running.session, open, how);
        self.0.hear(Heard::Look(running.session.clone()));
        Ok(closed?)
    }
}

/// All items as text for an agent; none without an item.
fn text(session: &Session, turn: u32, items: &[HostItem]) -> Option<String> {
    let deliveries: Vec<_> = items.iter().flat_map(|item| item.payload.deliveries().to_vec()).collect();
    let is_message = |item: &&HostItem| matches!(item.payload, SinkPayload::Message(_));
    let mut texts: Vec<_> =
        items.iter().filter(is_message).map(|item| item.payload.text().to_owned()).collect();
    if !deliveries.is_empty() {
        texts.push(FollowUps::new(session.clone(), turn, deliveries, None).text);
    }
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

impl Host {
    pub(super) fn deliverer<'a>(&'a self, sinks: &'a HostSinks) -> Deliverer<'a> {
        Deliverer { sinks, ..self.hearback.deliverer() }
    }

    pub(super) fn inbox<'a>(&'a self, sinks: &'a HostSinks) -> Inbox<'a> {
        Inbox { sinks, ..self.hearback.inbox() }
    }

    /// Takes the lock of a session's turn, asleep while another process has it.
    fn lock_turn(
        &self,
        session: &Session,
        wait: Duration,
        cancel: &CancelWait,
    ) -> Result<Lock, OpenTurnError> {
        let ports = &self.hearback.ports;
        let deadline = ports.clock.awake().saturating_add(wait);
        let (free, is_free) = channel();
        let cancelled = free.clone();
        let _hook = cancel.on_cancel(move || _ = cancelled.send(()));
        let mut is_waiting = false;
        loop {
            if let Some(lock) = ports.lock_turn(session, Wait::Try)? {
                return Ok(lock);
            }
            let left = deadline.saturating_sub(ports.clock.awake());
            if left.is_zero() {
                return Err(OpenTurnError::Busy(session.clone()));
            }
            if cancel.is_cancelled() {
                return Err(OpenTurnError::Cancelled);
            }
            if !is_waiting {
                is_waiting = true;
                self.hear(Heard::Await(session.clone(), free.clone()));
                // It may have become free before the thread that looks knew of this wait.
                continue;
            }
            match is_free.recv_timeout(left) {
                // Each that waits is woken once. One that comes too late has to be known again.
                Ok(()) => is_waiting = false,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(OpenTurnError::Cancelled),
            }
        }
    }

    /// Records what became of a turn and of its items.
    fn close(self: &Arc<Self>, session: &Session, open: Open, how: &TurnClose) -> Result<(), StoreError> {
        let Open { kind, items, .. } = open;
        let (mut delivered, mut follow_ups, mut failure) = (Vec::new(), Vec::new(), None);
        let error = match how {
            TurnClose::Done => None,
            TurnClose::Failed { error } => Some(error.clone()),
        };
        let sinks = HostSinks::new(self);
        let is_interrupted = error.is_some().then(|| self.interruption(session)).flatten();
        for Held { id, claim, said, .. } in items {
            let reply = said.unwrap_or_else(|| match &error {
                None => SinkReply::Delivered,
                Some(reason) => SinkReply::Failed { reason: reason.clone() },
            });
            let response = match (is_interrupted, &reply) {
                (Some(reason), SinkReply::Failed { .. }) => Response::Interrupted(reason),
                _ => Response::Replied(reply.clone()),
            };
            match claim {
                Claim::Deliverer(_) => delivered.push((id, reply)),
                Claim::FollowUp(steered) => follow_ups.push((steered, response)),
                // Before the turn ends, as for every message.
                Claim::Message(steered) => {
                    failure = self.inbox(&sinks).conclude(&steered, &response).err().or(failure);
                }
                Claim::Closed => {}
            }
        }
        match kind {
            TurnKind::Delivered(closed) => {
                let reply = match (&delivered[..], error) {
                    ([], Some(error)) => Err(SinkError::Failed(error)),
                    ([], None) => Ok(SinkReply::Delivered),
                    (_, error) => Ok(SinkReply::Each { replies: delivered, error }),
                };
                let (recorded, is_recorded) = channel();
                let _ = closed.send(ClosedTurn { reply, recorded });
                if is_recorded.recv_timeout(RECORDED_WITHIN) == Err(RecvTimeoutError::Timeout) {
                    warn!(%session, "what became of a turn is not recorded yet");
                }
            }
            TurnKind::Opened { turn, lock } => {
                let how = error.map_or(TurnHow::Done, |error| TurnHow::Failed { error });
                failure = self.hearback.turns().end_held(&turn, how).err().or(failure);
                drop(lock);
            }
        }
        for (steered, response) in follow_ups {
            failure = self.deliverer(&sinks).conclude(*steered, &response).err().or(failure);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Why the turn of a session is to end, if it is.
    fn interruption(&self, session: &Session) -> Option<Interruption> {
        let facts = self.hearback.store.session(session).ok()?;
        let (_, turn) = facts.turns.last()?;
        turn.interrupt.present().map(|interrupt| interrupt.reason)
    }

    /// Publishes the receipt of what a thread delivers.
    fn close_delivered(&self, session: &Session, delivered: &Delivered) -> Result<(), StoreError> {
        let hearback = &self.hearback;
        match delivered {
            Delivered::FollowUp(id) => delivery::close(&hearback.ports, id, ReceiptHow::Delivered).map(drop),
            Delivered::Message(n) => {
                let receipt = MessageFact::receipt(hearback.ports.clock.stamp(), MessageHow::Delivered);
                let durability = hearback.settings().durability;
                hearback.store.publish_message(session, *n, &receipt, durability).map(drop)
            }
        }
    }

    /// Ends every turn as one that the host could not run: nothing is spent.
    pub(super) fn give_back(self: &Arc<Self>) {
        let turns: Vec<_> = self.turns.all().drain().map(|(_, turn)| turn).collect();
        for turn in turns {
            let Some(mut open) = turn.open().take() else { continue };
            for item in &mut open.items {
                item.said.get_or_insert_with(SinkReply::busy);
            }
            let how = TurnClose::Failed { error: "the host has gone".into() };
            if let Err(error) = self.close(&turn.session, open, &how) {
                warn!(session = %turn.session, %error, "turn not given back");
            }
        }
    }
}
