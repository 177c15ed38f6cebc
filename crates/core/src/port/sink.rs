//! Where follow-ups go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::delivery::Delivery;
use crate::{JobId, SinkPayload};

/// What a sink did with a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SinkReply {
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
        #[serde(default)]
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
    /// There is no sink of this name.
    #[error("there is no sink `{0}`")]
    Missing(String),
    /// It could not be reached, or said nothing that could be understood.
    #[error("the sink failed: {0}")]
    Failed(String),
    /// It took longer than it may.
    #[error("the sink did not answer in time")]
    TimedOut,
}

/// What accompanies one hand-over to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryContext {
    /// The mark of all its processes, and of no others.
    pub mark: JobId,
    /// The turn that it is, of the session that the payload is for.
    pub turn: Option<u32>,
}

/// A program that accepts what it is handed.
pub trait FollowUpSink: Send + Sync {
    /// Hands over one payload. Safe to repeat: the identity stays the same.
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError>;

    /// Whether it starts a turn of the session, of which there is one at a time.
    fn starts_turn(&self) -> bool {
        false
    }

    /// How long it may take.
    fn within(&self) -> Duration {
        Duration::from_secs(60)
    }
}

impl<T: FollowUpSink + ?Sized> FollowUpSink for &T {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        (**self).deliver(payload, context)
    }
    fn starts_turn(&self) -> bool {
        (**self).starts_turn()
    }
    fn within(&self) -> Duration {
        (**self).within()
    }
}

/// The sinks that there are.
pub trait Sinks: Send + Sync {
    /// Finds a sink by its name.
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError>;
}
