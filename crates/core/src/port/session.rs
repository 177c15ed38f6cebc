//! Sessions and their host as a port: publish a fact, see what there is, be the only one.

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
    /// Each of them.
    pub const ALL: [Self; 2] = [Self::Turn, Self::Messenger];
}

/// The records of all sessions, and of the monitor.
pub trait SessionStore: Send + Sync {
    /// Every session of which anything is recorded, in no order. One whose records cannot be read is left out.
    fn sessions(&self) -> Result<Vec<Session>, StoreError>;

    /// Sees one session. One that is not there has no facts.
    fn session(&self, session: &Session) -> Result<SessionFacts, StoreError>;

    /// Publishes a fact of a turn, unless there is one of its name.
    fn publish_turn(
        &self,
        session: &Session,
        n: u32,
        fact: &TurnFact,
        durability: Durability,
    ) -> Result<Publish, StoreError>;

    /// Puts a message behind all others, and tells its number. When this returns it is there to stay.
    fn queue(&self, message: &Message, durability: Durability) -> Result<u32, StoreError>;

    /// Publishes what became of a message, unless that has been said.
    fn publish_message(
        &self,
        session: &Session,
        n: u32,
        fact: &MessageFact,
        durability: Durability,
    ) -> Result<Publish, StoreError>;

    /// Removes turns but for the newest `keep`, and messages of which nothing more is to be said. The newest message
    /// stays, so that no number is given twice; unless nothing is to be kept.
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

    /// Sees the host, and what it was asked.
    fn host(&self) -> Result<HostFacts, StoreError>;

    /// Publishes a fact about the host, unless there is one of its name.
    fn publish_host(&self, n: u32, fact: &HostFact, durability: Durability) -> Result<Publish, StoreError>;

    /// Takes the lock of the monitor.
    fn lock_monitor(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError>;

    /// Wakes the monitor. Best effort: it also looks from time to time.
    fn wake_host(&self) -> Result<(), StoreError>;

    /// Adds a line to what the host has to say about itself.
    fn note_host(&self, line: &str) -> Result<(), StoreError>;
}
