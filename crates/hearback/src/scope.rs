//! Whose jobs and sessions a caller sees.

use hearback_core::Session;

use crate::session::{SessionError, current_session};

/// Whose jobs and sessions a caller sees. Every look-up takes one, so that all doors into hearback obey the same rule:
/// an agent sees what belongs to its own session, and a person without one sees everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All jobs and sessions, with an owner or without.
    #[default]
    All,
    /// Only those of one session. The rest is not found.
    Session(Session),
}

impl Scope {
    /// The scope of this process: the session that its environment names, else all.
    ///
    /// # Errors
    ///
    /// When the environment names an invalid session.
    pub fn current() -> Result<Self, SessionError> {
        Ok(current_session()?.map_or(Self::All, Self::Session))
    }

    /// The session, if it is limited to one.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::All => None,
            Self::Session(session) => Some(session),
        }
    }

    /// Whether what belongs to `owner` is seen.
    pub fn sees(&self, owner: Option<&Session>) -> bool {
        self.session().is_none_or(|session| owner == Some(session))
    }
}

impl From<Session> for Scope {
    fn from(session: Session) -> Self {
        Self::Session(session)
    }
}
