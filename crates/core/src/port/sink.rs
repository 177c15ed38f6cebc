//! Where follow-ups go.

use serde::{Deserialize, Serialize};

use crate::{JobView, Session};

/// One follow-up on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its identity, `<job>.end`: the same in every attempt, so that a repeat is recognisable.
    pub id: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whom it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// What it is about.
    pub job: JobView,
    /// The same in words, with output framed as data.
    pub text: String,
}

/// What a sink did with a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// The owner has it.
    Delivered,
    /// The session is in a turn: come back, and no attempt is spent.
    Busy,
    /// Not now.
    RetryAfter {
        /// When to try again.
        millis: u64,
    },
    /// The session no longer exists: try the next sink of the chain.
    Gone {
        /// Why.
        reason: String,
    },
    /// An answer of a newer protocol, to be treated as a failed attempt.
    #[serde(other)]
    Unknown,
}

/// Why a sink gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// It could not be reached, or said nothing that could be understood.
    #[error("the sink failed: {0}")]
    Failed(String),
    /// It took longer than it may.
    #[error("the sink did not answer in time")]
    TimedOut,
}

/// A program that accepts a delivery.
pub trait FollowUpSink: Send + Sync {
    /// Hands over one delivery. Safe to repeat: the identity stays the same.
    fn deliver(&self, delivery: &Delivery) -> Result<Answer, SinkError>;
}
