//! Sessions: turns, messages, and their state.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use hearback_core::note::HistoryEnd;
use hearback_core::port::disk::{Publish, Wait};
use hearback_core::port::process::DetachedRequest;
use hearback_core::port::record::{FactStore, Housekeeping, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::HOST_SINK;
use hearback_core::session::{
    ChainCount, Message, MessageFact, MessageFacts, MessageHow, SessionFacts, SessionState, TurnCause,
    TurnHow, fold_session,
};
use hearback_core::{Exit, Extra, FORMAT, LockState, OsText, Session, SmallSort};
use hearback_monitor::delivery::{Due, Inbox, OVERDUE_AFTER, Turn, message_overdue};
use hearback_monitor::session::{Admission, Beginning, OpenTurn, Refusal, Turns, admit};
use tracing::{debug, warn};

use crate::permissions::{Capability, Denied, Guarded};
use crate::sinks::NoSink;
use crate::{Hearback, Scope};

/// The command that makes hearback, executed again, deliver the messages of a session.
pub(crate) const MESSENGER_COMMAND: &str = "__messenger";
/// If no attempt was made at a message for so long, its messenger may have died.
const MESSENGER_LOST_AFTER: Duration = OVERDUE_AFTER;
/// How long a monitor may take to begin the turn of a message. After that, a messenger does it.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);
const TAKEN_LOOK: Duration = Duration::from_millis(2);
/// The time in which `max_rate` messages may be sent by turns.
const RATE_WINDOW: Duration = Duration::from_secs(60 * 60);
/// How many jobs of history are looked at for their owners.
const OWNERS_SEARCHED: usize = 1000;
/// The largest message. Larger text belongs in a file that the message names.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// What a host says about a turn that it runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TurnRequest {
    /// Where it shows what the agent says.
    pub destination: Option<String>,
    /// How the conversation ends.
    pub history: HistoryEnd,
}

/// A message to be sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutgoingMessage {
    /// The session that gets it.
    pub session: Session,
    /// Its text.
    pub text: String,
    /// The sink that it goes to; by default where the last turn went, else `default_sink`.
    pub sink: Option<String>,
    /// Where the host shows what the agent says.
    pub destination: Option<String>,
}

impl OutgoingMessage {
    /// A message that goes where the last turn of the session went.
    pub fn new(session: Session, text: impl Into<String>) -> Self {
        Self { session, text: text.into(), sink: None, destination: None }
    }
}

/// A message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Its number.
    pub n: u32,
    /// Whether it interrupted a turn of the session.
    pub interrupted: bool,
    /// Whether the session was in a turn.
    pub in_turn: bool,
}

/// Why a message was not sent. Nothing of it is recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// It is empty.
    #[error("the message is empty")]
    Empty,
    /// It is too long.
    #[error("the message has more than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
    /// No sink is known for the session.
    #[error("no sink for session `{0}`: it has had no turn, and there is no default sink")]
    NoRoute(Session),
    /// There is no sink of this name.
    #[error(transparent)]
    NoSink(#[from] NoSink),
    /// The chain of messages that send messages is too long.
    #[error("this message is number {depth} of a chain in which each leads to the next; the limit is {most}")]
    TooDeep {
        /// How many follow-ups and messages led to it, itself included.
        depth: u32,
        /// The limit.
        most: u32,
    },
    /// Turns send too many messages to the session.
    #[error(
        "turns and jobs have sent {most} messages to session `{session}` within an hour, which is the limit"
    )]
    TooFast {
        /// The session.
        session: Session,
        /// How many they may send in an hour.
        most: usize,
    },
    /// The host is about to end, and takes no messages.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The records cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A session as it was seen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SeenSession {
    /// Its name.
    pub session: Session,
    /// What is recorded of it.
    pub facts: SessionFacts,
    /// The lock of its turn: held while it is in one.
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

    /// Runs `turn` as a turn of a session, and then delivers what became due for it meanwhile: messages and follow-ups.
    /// A session has one turn at a time; none if it is in a turn and `wait` says not to wait.
    ///
    /// `turn` returns its result and how it ended. Its processes should carry the turn's mark, and its agent should get
    /// the turn's note first.
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
        // The result of the turn is returned even if a hand-over fails: what was not handed over is due again later.
        let mut handed_over = open.end(how).and_then(|_| self.hand_over_in_turn(session));
        drop(lock);
        // A process that came just before the release found the session busy, and left. So look once more.
        let is_due = || !self.active_turns.is_stopping() && self.is_due_in(session).unwrap_or(false);
        while handed_over.is_ok() && is_due() {
            let Ok(Some(_lock)) = self.ports.lock_turn(session, Wait::Try) else { break };
            handed_over = self.hand_over_in_turn(session);
        }
        Ok(Some(done))
    }

    /// Runs an agent in front of this process, with its streams, as a turn of a session; see [`Hearback::in_turn`].
    /// Returns how the agent ended; none if the session is in a turn and `wait` says not to wait.
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
                // It ran to its end; how is unknown where this process ignores SIGCHLD.
                Ok(Exit::Exited { code: 0 } | Exit::Unknown) => TurnHow::Done,
                Ok(exit) => TurnHow::Failed { error: exit.to_string() },
                Err(error) => TurnHow::Failed { error: error.to_string() },
            };
            (ran, how)
        })
    }

    fn hand_over_in_turn(&self, session: &Session) -> Result<(), StoreError> {
        self.inbox().hand_over(session)?;
        let deliverer = self.deliverer();
        for job in self.follow_ups(&session.clone().into())?.jobs {
            deliverer.attempt(&job.view.id, Turn::Held)?;
        }
        Ok(())
    }

    fn is_due_in(&self, session: &Session) -> Result<bool, StoreError> {
        if matches!(self.message_due(session)?, Due::Now(_) | Due::Expired) {
            return Ok(true);
        }
        let deliverer = self.deliverer();
        for job in self.follow_ups(&session.clone().into())?.jobs {
            if matches!(deliverer.due(&job.seen)?, Due::Now(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends a message to a session. When this returns, it is on disk, and a process is there to deliver it.
    ///
    /// # Errors
    ///
    /// When it is refused, or cannot be recorded. Then nothing of it is kept.
    pub fn send(&self, send: &OutgoingMessage) -> Result<Sent, SendError> {
        self.permissions().check(Capability::Send)?;
        match send.text.len() {
            _ if send.text.trim().is_empty() => return Err(SendError::Empty),
            0..=MAX_MESSAGE_BYTES => {}
            _ => return Err(SendError::TooLong),
        }
        let seen = self.see_session(&send.session)?;
        let depth = crate::session::depth_of_message();
        let chain = self.check_chain(&seen, depth)?;
        let (sink, cwd) = self.route(&seen, send.sink.as_deref())?;
        let in_turn = seen.lock == LockState::Held;
        let stopping = self.store.host()?.stopping(self.ports.host_lock()?);
        let interrupts = match admit(stopping, self.settings().busy, seen.lock) {
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
            depth,
            chain,
            extra: Extra::new(),
        };
        let n = self.store.queue(&message, self.settings().durability)?;
        // First on disk, then a messenger, then the interruption: the message is sent even if the interruption fails.
        self.start_messenger(&send.session);
        let interrupted = interrupts && self.turns().interrupt_for(&send.session, n).unwrap_or(false);
        Ok(Sent { n, interrupted, in_turn })
    }

    /// Refuses a message of an endless chain; returns the count that it carries.
    fn check_chain(&self, seen: &SeenSession, depth: u32) -> Result<Option<ChainCount>, SendError> {
        let now = self.ports.clock.stamp();
        let newest = seen.facts.messages.iter().rev().find_map(|(_, message)| message.message.present());
        let count = newest.and_then(|newest| newest.chain.clone());
        let count = count.filter(|count| Duration::from_millis(count.since.age_ms(&now)) < RATE_WINDOW);
        if depth == 0 {
            return Ok(count);
        }
        let most = self.settings().max_depth;
        if depth > most {
            return Err(SendError::TooDeep { depth, most });
        }
        let (since, sent) = count.map_or((now, 0), |count| (count.since, count.sent));
        let most = self.settings().max_rate;
        if usize::try_from(sent).unwrap_or(usize::MAX) >= most {
            return Err(SendError::TooFast { session: seen.session.clone(), most });
        }
        Ok(Some(ChainCount { since, sent: sent + 1 }))
    }

    /// Where a message goes, and where its agent runs.
    fn route(&self, seen: &SeenSession, chosen: Option<&str>) -> Result<(String, Option<OsText>), SendError> {
        let turns = seen.facts.turns.iter().rev().filter_map(|(_, turn)| turn.begin.present());
        let last = turns.clone().find_map(|begin| begin.sink.as_deref());
        let name = chosen.or(last).or(self.settings().default_sink.as_deref());
        let name = name.ok_or_else(|| SendError::NoRoute(seen.session.clone()))?;
        if !self.registry.knows(name) {
            return Err(self.registry.missing(name).into());
        }
        let cwd = turns.clone().find_map(|begin| begin.cwd.clone());
        let here = || std::env::current_dir().ok().map(|cwd| hearback_platform::from_os(cwd.as_os_str()));
        Ok((name.to_owned(), cwd.or_else(here)))
    }

    /// Wakes the monitor to deliver the messages of a session, or starts a messenger process if no monitor runs. Best
    /// effort: the next message or the next monitor delivers what is left waiting.
    fn start_messenger(&self, session: &Session) {
        // A host that attends the session hears of the message by itself.
        if matches!(self.message_due(session), Ok(Due::Never)) {
            return;
        }
        if self.is_monitored() {
            if let Err(error) = self.store.wake_host() {
                warn!(%session, %error, "monitor not woken");
            }
            if self.is_taken_soon(session) {
                return;
            }
            // It hangs, or is overloaded. The lock of the turn keeps the two apart.
            warn!(%session, "monitor does not answer");
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

    /// Waits, for a bounded time, until no message of a session that is not in a turn is due; returns whether that is
    /// so. A monitor that answers begins a turn within milliseconds.
    fn is_taken_soon(&self, session: &Session) -> bool {
        let deadline = self.ports.clock.awake().saturating_add(TAKEN_WITHIN);
        loop {
            let is_due = matches!(self.message_due(session), Ok(Due::Now(_) | Due::Expired));
            let is_free = self.ports.turn_lock(session).is_ok_and(|lock| lock == LockState::Free);
            if !(is_due && is_free) || self.is_stopping() {
                return true;
            }
            if self.ports.clock.awake() >= deadline {
                return false;
            }
            std::thread::sleep(TAKEN_LOOK);
        }
    }

    /// Whether the monitor is about to end, and takes no further turn.
    fn is_stopping(&self) -> bool {
        self.store.host().is_ok_and(|host| host.stopping(LockState::Held).is_some())
    }

    /// Delivers the messages of a session; see [`Inbox::deliver_until_empty`].
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub(crate) fn deliver_messages(&self, session: &Session) -> Result<(), StoreError> {
        self.inbox().deliver_until_empty(session)
    }

    fn message_due(&self, session: &Session) -> Result<Due, StoreError> {
        Ok(self.inbox().due(&self.store.session(session)?))
    }

    /// Discards a message that waits or is a dead letter; returns whether there was one.
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
        // The message behind it may be due now.
        self.start_messenger(session);
        Ok(dropped == Publish::New)
    }

    /// Makes a dead letter due again, with all of its attempts, and starts a process that delivers it; returns whether
    /// there was one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn retry_message(&self, session: &Session, n: u32) -> Result<bool, Guarded<StoreError>> {
        self.permissions().check(Capability::Send)?;
        self.release_message(session, n).map_err(Guarded::Failed)
    }

    fn release_message(&self, session: &Session, n: u32) -> Result<bool, StoreError> {
        let facts = self.store.session(session)?;
        let Some(message) = facts.message(n).filter(|message| message.is_dead_letter()) else {
            return Ok(false);
        };
        let last = message.results.iter().map(|(attempt, _)| *attempt).max().unwrap_or(0);
        let release = MessageFact::released(last + 1, self.ports.clock.stamp());
        let released = self.store.publish_message(session, n, &release, self.settings().durability)?;
        self.start_messenger(session);
        Ok(released == Publish::New)
    }

    /// The names of the sessions that had a turn or a message, as far as they can be read.
    pub fn session_names(&self) -> Vec<Session> {
        self.store.sessions().unwrap_or_default()
    }

    /// How many jobs each session owns that have not been settled, or are among the newest 1,000 of history.
    fn owners(&self) -> Result<BTreeMap<Session, usize>, StoreError> {
        let mut owners = BTreeMap::new();
        let mut ids = self.store.open_jobs()?;
        ids.extend(self.store.past_jobs(OWNERS_SEARCHED)?);
        ids.small_sort();
        ids.dedup();
        for id in ids {
            // `list` names a job that cannot be read.
            let Ok(Some(seen)) = self.store.observe(&id) else { continue };
            if let Some(session) = seen.facts.spec.present().and_then(|spec| spec.session.clone()) {
                *owners.entry(session).or_default() += 1;
            }
        }
        Ok(owners)
    }

    /// Every session of a scope of which anything is recorded, by name: a turn, a message or a job.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn sessions(&self, scope: &Scope) -> Result<SessionListing, StoreError> {
        let mut owners = self.owners()?;
        owners.retain(|session, _| scope.sees(Some(session)));
        let mut sessions = self.store.sessions()?;
        sessions.extend(owners.keys().cloned());
        sessions.retain(|session| scope.sees(Some(session)));
        sessions.small_sort();
        sessions.dedup();
        let (mut seen, mut problems) = (Vec::new(), Vec::new());
        for session in &sessions {
            match self.see_session(session) {
                Ok(it) => seen.push(it),
                Err(error) => problems.push((session.as_str().to_owned(), error)),
            }
        }
        // It cannot be known whose they are.
        problems.extend(self.store.unreadable_sessions()?);
        // The messenger of a session may have died. Not at once: a monitor may just be taking over.
        let now = self.ports.clock.stamp();
        for SeenSession { session, facts, lock } in &seen {
            let since = facts.waiting().next().and_then(|(_, message)| {
                let tried = message.last_result().map(|result| &result.at);
                tried.or_else(|| message.message.present().map(|message| &message.at))
            });
            let needs_messenger =
                since.is_some_and(|at| Duration::from_millis(at.age_ms(&now)) >= MESSENGER_LOST_AFTER);
            let is_overdue = || message_overdue(facts, &now, &self.settings().retry) >= OVERDUE_AFTER;
            let is_left_alone = || !self.is_monitored() || (lock == &LockState::Free && is_overdue());
            if needs_messenger && is_left_alone() {
                self.start_messenger(session);
            }
        }
        Ok(SessionListing { sessions: seen, owners, problems })
    }

    /// Whether a host runs a turn of a session now.
    pub(crate) fn is_hosted(&self, session: &Session) -> bool {
        let Ok(facts) = self.store.session(session) else { return false };
        let Some((_, last)) = facts.turns.last() else { return false };
        let is_hosts = last.begin.present().is_some_and(|begin| begin.sink.as_deref() == Some(HOST_SINK));
        is_hosts
            && last.end.is_absent()
            && self.ports.turn_lock(session).is_ok_and(|it| it == LockState::Held)
    }

    /// One session as it is recorded.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn see_session(&self, session: &Session) -> Result<SeenSession, StoreError> {
        // The lock first: if a turn ends in between, its end is read below.
        let lock = self.ports.turn_lock(session)?;
        Ok(SeenSession { session: session.clone(), facts: self.store.session(session)?, lock })
    }
}

/// The sessions that were found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SessionListing {
    /// Sorted by name.
    pub sessions: Vec<SeenSession>,
    /// How many jobs each of them owns, among the open ones and the newest of history.
    pub owners: BTreeMap<Session, usize>,
    /// What could not be read: the name of the session, or that of its folder, and why.
    pub problems: Vec<(String, StoreError)>,
}

impl SeenSession {
    /// The messages that wait, and the dead letters.
    pub fn open_messages(&self) -> impl Iterator<Item = (u32, &MessageFacts)> {
        let open = self.facts.messages.iter().filter(|(_, message)| message.receipt.is_absent());
        open.map(|(n, message)| (*n, message))
    }

    /// Whether its next message waits for a host that attends it.
    pub fn waits_for_host(&self) -> bool {
        let next = self.facts.waiting().next().and_then(|(_, message)| message.message.present());
        self.lock == LockState::Free && next.is_some_and(|message| message.sink == HOST_SINK)
    }

    /// Its state, folded from its facts.
    pub fn state(&self) -> SessionState<'_> {
        fold_session(&self.facts, self.lock)
    }
}
