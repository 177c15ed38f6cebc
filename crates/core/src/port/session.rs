//! The port for the records of sessions and of the monitor: publish facts, read them, take locks.

use std::path::PathBuf;

use super::disk::{Lock, LockMode, Publish, Wait};
use super::record::StoreError;
use crate::session::{Message, MessageFact, SessionFacts, TurnFact};
use crate::{Durability, HostFact, HostFacts, JobId, Session, Timestamp};

/// The locks of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionLock {
    /// Held by the process that runs a turn; there is one turn at a time.
    Turn,
    /// Held by the process that delivers the messages; it sleeps between attempts.
    Messenger,
}

impl SessionLock {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Turn, Self::Messenger];
}

/// The records of all sessions, and of the monitor.
pub trait SessionStore: Send + Sync {
    /// Every recorded session, in no order, except those whose records cannot be read.
    fn sessions(&self) -> Result<Vec<Session>, StoreError>;

    /// The folders of sessions whose records cannot be read, each with the reason. By default there are none.
    fn unreadable_sessions(&self) -> Result<Vec<(String, StoreError)>, StoreError> {
        Ok(Vec::new())
    }

    /// Reads one session. An unknown session has no facts.
    fn session(&self, session: &Session) -> Result<SessionFacts, StoreError>;

    /// Publishes a fact of a turn, unless that fact exists.
    fn publish_turn(
        &self,
        session: &Session,
        n: u32,
        fact: &TurnFact,
        durability: Durability,
    ) -> Result<Publish, StoreError>;

    /// Adds a message after all others, and returns its number. When this returns, the message is durable.
    fn queue(&self, message: &Message, durability: Durability) -> Result<u32, StoreError>;

    /// Publishes the result of a message, unless there is one.
    fn publish_message(
        &self,
        session: &Session,
        n: u32,
        fact: &MessageFact,
        durability: Durability,
    ) -> Result<Publish, StoreError>;

    /// The file that exists once a message is closed; none if receipts are no files.
    fn message_receipt_path(&self, _session: &Session, _n: u32) -> Option<PathBuf> {
        None
    }

    /// Removes all turns except the newest `keep`, and all settled messages. The newest message stays, so that no
    /// number is used twice, unless `keep` is zero.
    fn forget(&self, session: &Session, keep: usize) -> Result<(), StoreError>;

    /// Makes a unique name, for the processes of a turn.
    fn mint(&self, now: Timestamp) -> JobId;

    /// Takes a lock of a session; `None` when another process holds it and `wait` is [`Wait::Try`].
    fn lock_session(
        &self,
        session: &Session,
        lock: SessionLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError>;

    /// Reads the facts of the host, and the requests to it.
    fn host(&self) -> Result<HostFacts, StoreError>;

    /// Publishes a fact of the host, unless that fact exists.
    fn publish_host(&self, n: u32, fact: &HostFact, durability: Durability) -> Result<Publish, StoreError>;

    /// Removes what is known of hosts, and of requests to them, but for the newest `keep` of each.
    fn forget_host(&self, keep: usize) -> Result<(), StoreError>;

    /// Takes the lock of the monitor.
    fn lock_monitor(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError>;

    /// Takes the lock of the process that delivers the follow-ups which no other process delivers.
    fn lock_deliverer(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError>;

    /// Wakes the monitor. Best effort: it also looks from time to time.
    fn wake_host(&self) -> Result<(), StoreError>;
}
