//! The sessions of a store that has none: for those who keep jobs alone.

use super::disk::{Lock, LockMode, Publish, Wait};
use super::record::StoreError;
use super::session::{SessionLock, SessionStore};
use crate::session::{Message, MessageFact, SessionFacts, TurnFact};
use crate::{Durability, HostFact, HostFacts, JobId, Session, Timestamp};

/// No sessions, and no host. What reads finds nothing, and what writes is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSessions;

fn refused<T>() -> Result<T, StoreError> {
    Err(StoreError::unsupported("sessions"))
}

impl SessionStore for NoSessions {
    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        Ok(Vec::new())
    }

    fn session(&self, _: &Session) -> Result<SessionFacts, StoreError> {
        Ok(SessionFacts::default())
    }

    fn publish_turn(&self, _: &Session, _: u32, _: &TurnFact, _: Durability) -> Result<Publish, StoreError> {
        refused()
    }

    fn queue(&self, _: &Message, _: Durability) -> Result<u32, StoreError> {
        refused()
    }

    fn publish_message(
        &self,
        _: &Session,
        _: u32,
        _: &MessageFact,
        _: Durability,
    ) -> Result<Publish, StoreError> {
        refused()
    }

    fn forget(&self, _: &Session, _: usize) -> Result<(), StoreError> {
        Ok(())
    }

    /// There is no turn whose processes could be named.
    fn mint(&self, now: Timestamp) -> JobId {
        JobId::mint(now.as_millis().unsigned_abs(), u64::from(std::process::id()))
    }

    fn lock_session(
        &self,
        _: &Session,
        _: SessionLock,
        _: LockMode,
        _: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        refused()
    }

    fn host(&self) -> Result<HostFacts, StoreError> {
        Ok(HostFacts::default())
    }

    fn publish_host(&self, _: u32, _: &HostFact, _: Durability) -> Result<Publish, StoreError> {
        refused()
    }

    fn forget_host(&self, _: usize) -> Result<(), StoreError> {
        Ok(())
    }

    /// No host ever holds it, so that it can be shared; to be the host is refused.
    fn lock_monitor(&self, mode: LockMode, _: Wait) -> Result<Option<Lock>, StoreError> {
        match mode {
            LockMode::Shared => Ok(Some(Lock::new(()))),
            LockMode::Exclusive => refused(),
        }
    }

    fn lock_deliverer(&self, _: LockMode, _: Wait) -> Result<Option<Lock>, StoreError> {
        Ok(Some(Lock::new(())))
    }

    fn wake_host(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
