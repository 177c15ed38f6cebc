//! Sessions: turns, messages, and what is known of them.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use hearback_core::note::HistoryEnd;
use hearback_core::port::disk::{Publish, Wait};
use hearback_core::port::process::DetachedRequest;
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::Sinks;
use hearback_core::session::{
    Message, MessageFact, MessageFacts, MessageHow, SessionFacts, SessionState, TurnCause, TurnHow,
    fold_session,
};
use hearback_core::{Exit, Extra, FORMAT, LockState, OsText, Session};
use hearback_monitor::delivery::{Due, Inbox, Turn, message_due};
use hearback_monitor::session::{Admission, Beginning, OpenTurn, Refusal, Turns, admit};
use tracing::{debug, warn};

use crate::permissions::{Capability, Denied, Guarded};
use crate::{Hearback, Scope};

/// The command by which hearback, executed again, sees the messages of a session through.
pub(crate) const MESSENGER_COMMAND: &str = "__messenger";
/// A message that nobody has touched for so long may have nobody.
const FORSAKEN_AFTER: Duration = Duration::from_secs(30);
/// More than anybody types; what is larger belongs in a file that the message names.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// What a host says about a turn that it runs.
#[derive(Debug, Clone, Default)]
pub struct TurnRequest {
    /// Where it shows what the agent says.
    pub destination: Option<String>,
    /// What the conversation ends with.
    pub history: HistoryEnd,
}

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// Whom it is for.
    pub session: Session,
    /// What it says.
    pub text: String,
    /// The sink that it goes to; by default where the last turn went, else `default_sink`.
    pub sink: Option<String>,
    /// Where the host shows what the agent says.
    pub destination: Option<String>,
}

/// What became of a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub n: u32,
    /// Whether the turn that the session was in has been cut short for it.
    pub interrupted: bool,
    /// Whether the session was in a turn.
    pub in_turn: bool,
}

/// Why a message was not sent. Nothing is kept of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It says nothing.
    #[error("the message is empty")]
    Empty,
    /// It says too much.
    #[error("the message has more than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
    /// No sink is known for the session.
    #[error("no sink for session `{0}`: it has had no turn, and there is no default sink")]
    NoRoute(Session),
    /// There is no sink of this name.
    #[error("there is no sink `{0}`")]
    NoSink(String),
    /// The host takes none for now.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The records cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session as it was seen.
#[derive(Debug, Clone)]
pub struct SeenSession {
    /// Which.
    pub session: Session,
    /// Everything that was seen of it.
    pub facts: SessionFacts,
    /// Whether anybody is in a turn of it.
    pub lock: LockState,
}

impl Hearback {
    pub(crate) fn turns(&self) -> Turns<'_> {
        Turns {
            ports: &self.ports,
            active_turns: &self.active_turns,
            window: self.settings().resume_window,
            durability: self.settings().durability,
        }
    }

    pub(crate) fn inbox(&self) -> Inbox<'_> {
        Inbox { turns: self.turns(), sinks: &self.registry, retry: self.settings().retry }
    }

    /// Runs `turn` as a turn of a session, of which there is one at a time, and then hands over what became due for it
    /// meanwhile: messages and follow-ups. Nothing when the session is in a turn and `wait` says not to wait.
    ///
    /// `turn` tells how it ended besides what it returns. Its processes should carry the turn's mark, and its agent
    /// should hear the turn's note first.
    ///
    /// # Errors
    ///
    /// When the session's lock cannot be taken, or the records cannot be read or written.
    pub fn in_turn<T>(
        &self,
        session: &Session,
        wait: Wait,
        request: TurnRequest,
        turn: impl FnOnce(&OpenTurn<'_>) -> (T, TurnHow),
    ) -> Result<Option<T>, Guarded<StoreError>> {
        self.permissions().check(Capability::Turn)?;
        self.run_turn(session, wait, request, turn).map_err(Guarded::Failed)
    }

    fn run_turn<T>(
        &self,
        session: &Session,
        wait: Wait,
        request: TurnRequest,
        turn: impl FnOnce(&OpenTurn<'_>) -> (T, TurnHow),
    ) -> Result<Option<T>, StoreError> {
        let Some(lock) = self.ports.lock_turn(session, wait)? else { return Ok(None) };
        let TurnRequest { destination, history } = request;
        let beginning = Beginning {
            destination,
            history,
            cwd: std::env::current_dir().ok().map(|cwd| hearback_platform::from_os(cwd.as_os_str())),
            ..Beginning::new(TurnCause::Command)
        };
        let Some(open) = self.turns().begin(session, beginning)? else { return Ok(None) };
        let (done, how) = turn(&open);
        // How the turn went is told, whatever becomes of the rest: what could not be handed over is due again later.
        let mut handed_over = open.end(how).and_then(|_| self.hand_over_in_turn(session));
        drop(lock);
        // What came while we were letting go found the session busy, and left: whoever lets go looks once more.
        let is_due = || !self.active_turns.is_stopping() && self.is_due_in(session).unwrap_or(false);
        while handed_over.is_ok() && is_due() {
            let Ok(Some(_lock)) = self.ports.lock_turn(session, Wait::Try) else { break };
            handed_over = self.hand_over_in_turn(session);
        }
        Ok(Some(done))
    }

    /// Runs an agent in front of this process, with its streams, as a turn of a session; see [`Hearback::in_turn`].
    /// Nothing when the session is in a turn and `wait` says not to wait; else how the agent ended.
    ///
    /// # Errors
    ///
    /// When the session's lock cannot be taken, or the records cannot be read or written.
    pub fn run_agent(
        &self,
        session: &Session,
        wait: Wait,
        request: TurnRequest,
        argv: &[OsString],
    ) -> Result<Option<io::Result<Exit>>, Guarded<StoreError>> {
        self.in_turn(session, wait, request, |turn| {
            let set = |name: &str, value: String| (OsString::from(name), Some(OsString::from(value)));
            let variables = [
                set(crate::session::VARIABLE, session.to_string()),
                set(crate::session::TURN_VARIABLE, turn.number().to_string()),
                (crate::session::NOTE_VARIABLE.into(), turn.note().map(|note| note.text.clone().into())),
            ];
            let ran = hearback_platform::Native::default().run_in_front(argv, &variables, turn.mark());
            let how = match &ran {
                Ok(Exit::Exited { code: 0 }) => TurnHow::Done,
                Ok(exit) => TurnHow::Failed { error: exit.to_string() },
                Err(error) => TurnHow::Failed { error: error.to_string() },
            };
            (ran, how)
        })
    }

    fn hand_over_in_turn(&self, session: &Session) -> Result<(), StoreError> {
        self.inbox().hand_over(session)?;
        let deliverer = self.deliverer();
        for job in self.follow_ups(&session.clone().into())? {
            deliverer.attempt(&job.view.id, Turn::Held)?;
        }
        Ok(())
    }

    fn is_due_in(&self, session: &Session) -> Result<bool, StoreError> {
        if matches!(self.message_due(session)?, Due::Now(_) | Due::Expired) {
            return Ok(true);
        }
        let deliverer = self.deliverer();
        for job in self.follow_ups(&session.clone().into())? {
            if matches!(deliverer.due(&job.seen)?, Due::Now(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends a message to a session. When this returns, it is on disk, and somebody is on the way with it.
    ///
    /// # Errors
    ///
    /// When it is refused, or cannot be recorded; then nothing is kept of it.
    pub fn send(&self, send: &OutgoingMessage) -> Result<Sent, SendError> {
        self.permissions().check(Capability::Send)?;
        match send.text.len() {
            _ if send.text.trim().is_empty() => return Err(SendError::Empty),
            0..=MAX_MESSAGE_BYTES => {}
            _ => return Err(SendError::TooLong),
        }
        let seen = self.see_session(&send.session)?;
        let (sink, cwd) = self.route(&seen, send.sink.as_deref())?;
        let in_turn = seen.lock == LockState::Held;
        let stopping = self.store.host()?.stopping(self.ports.host_lock()?);
        let interrupts = match admit(stopping, self.settings().busy, in_turn) {
            Admission::Queue => false,
            Admission::Interrupt => true,
            Admission::Refuse(refusal) => return Err(refusal.into()),
        };
        let message = Message {
            format: FORMAT,
            session: send.session.clone(),
            at: self.ports.clock.stamp(),
            text: send.text.clone(),
            sink,
            destination: send.destination.clone(),
            cwd,
            depth: crate::session::current_depth(),
            extra: Extra::new(),
        };
        let n = self.store.queue(&message, self.settings().durability)?;
        // First on disk, then somebody on the way, then cut short: it is sent, whatever becomes of the interruption.
        self.send_messenger(&send.session);
        let interrupted = interrupts && self.turns().interrupt_for(&send.session, n).unwrap_or(false);
        Ok(Sent { n, interrupted, in_turn })
    }

    /// Where a message goes, and where its agent runs.
    fn route(&self, seen: &SeenSession, asked: Option<&str>) -> Result<(String, Option<OsText>), SendError> {
        let turns = seen.facts.turns.iter().rev().filter_map(|(_, turn)| turn.begin.present());
        let last = turns.clone().find_map(|begin| begin.sink.as_deref());
        let name = asked.or(last).or(self.settings().default_sink.as_deref());
        let name = name.ok_or_else(|| SendError::NoRoute(seen.session.clone()))?;
        if self.registry.find(name).is_err() {
            return Err(SendError::NoSink(name.to_owned()));
        }
        let cwd = turns.clone().find_map(|begin| begin.cwd.clone());
        let here = || std::env::current_dir().ok().map(|cwd| hearback_platform::from_os(cwd.as_os_str()));
        Ok((name.to_owned(), cwd.or_else(here)))
    }

    /// Lets somebody see the messages of a session through: whoever looks after the store, or else a process of their
    /// own. Best effort: whatever is left waiting, the next message or the next monitor finds.
    fn send_messenger(&self, session: &Session) {
        if self.is_monitored() {
            if let Err(error) = self.store.wake_host() {
                warn!(%session, %error, "monitor not woken");
            }
            return;
        }
        let sent = self.supervisor_program().and_then(|program| {
            let env = vec![(crate::session::VARIABLE.into(), Some(session.as_str().into()))];
            let (args, home) = (vec![MESSENGER_COMMAND.into()], self.home().to_owned());
            self.ports.processes.spawn_detached(&DetachedRequest { program, args, home, env })
        });
        match sent {
            Ok(()) => debug!(%session, "messenger started"),
            Err(error) => warn!(%session, %error, "messenger not started"),
        }
    }

    /// Sees the messages of a session through, asleep between attempts, unless another process does.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub(crate) fn see_messages_through(&self, session: &Session) -> Result<(), StoreError> {
        self.inbox().see_through(session)
    }

    fn message_due(&self, session: &Session) -> Result<Due, StoreError> {
        let facts = self.store.session(session)?;
        Ok(message_due(&facts, &self.ports.clock.stamp(), &self.settings().retry))
    }

    /// Drops a message that waits, or that nobody could be given; tells whether there was one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn discard_message(&self, session: &Session, n: u32) -> Result<bool, Guarded<StoreError>> {
        self.permissions().check(Capability::Send)?;
        self.drop_message(session, n).map_err(Guarded::Failed)
    }

    fn drop_message(&self, session: &Session, n: u32) -> Result<bool, StoreError> {
        let facts = self.store.session(session)?;
        if !facts.messages.iter().any(|(number, message)| *number == n && message.receipt.is_absent()) {
            return Ok(false);
        }
        let receipt = MessageFact::receipt(self.ports.clock.stamp(), MessageHow::Discarded);
        let dropped = self.store.publish_message(session, n, &receipt, self.settings().durability)?;
        // Whoever was behind it may be next.
        self.send_messenger(session);
        Ok(dropped == Publish::New)
    }

    /// Every session of a scope of which anything is recorded, by name.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn sessions(&self, scope: &Scope) -> Result<Vec<SeenSession>, StoreError> {
        let mut sessions = self.store.sessions()?;
        sessions.retain(|session| scope.sees(Some(session)));
        sessions.sort();
        let seen: Vec<_> =
            sessions.iter().map(|session| self.see_session(session)).collect::<Result<_, _>>()?;
        // Whoever would have taken a message may have died. Not at once: a monitor may just be taking over.
        let now = self.ports.clock.stamp();
        for SeenSession { session, facts, .. } in &seen {
            let since = facts.waiting().next().and_then(|(_, message)| {
                let tried = message.last_result().map(|result| &result.at);
                tried.or_else(|| message.message.present().map(|message| &message.at))
            });
            let is_forsaken =
                since.is_some_and(|at| Duration::from_millis(at.age_ms(&now)) >= FORSAKEN_AFTER);
            if is_forsaken && !self.is_monitored() {
                self.send_messenger(session);
            }
        }
        Ok(seen)
    }

    /// One session as it is recorded.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn see_session(&self, session: &Session) -> Result<SeenSession, StoreError> {
        // The lock first: a turn that ends in between has its end by then.
        let lock = self.turns().is_in_turn(session)?;
        Ok(SeenSession { session: session.clone(), facts: self.store.session(session)?, lock })
    }
}

impl SeenSession {
    /// The messages that somebody still has to take, or that nobody could be given.
    pub fn open_messages(&self) -> impl Iterator<Item = (u32, &MessageFacts)> {
        let open = self.facts.messages.iter().filter(|(_, message)| message.receipt.is_absent());
        open.map(|(n, message)| (*n, message))
    }

    /// What it is.
    pub fn state(&self) -> SessionState<'_> {
        fold_session(&self.facts, self.lock)
    }
}
