//! What a turn of a host holds: follow-ups and messages, each with a token.

use std::time::Duration;

use hearback_core::SinkPayload;
use hearback_core::port::sink::SinkReply;
use hearback_monitor::delivery::{SteeredFollowUp, SteeredMessage};

/// A follow-up or a message that a host holds.
#[derive(Debug, Clone, PartialEq)]
pub struct HostItem {
    /// Names the claim.
    pub token: String,
    /// What is delivered, without secrets.
    pub payload: SinkPayload,
}

/// Why a host gives an item back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Not now. No attempt is spent.
    Busy {
        /// Why.
        reason: String,
        /// When to offer it again; otherwise after a pause that grows.
        retry_after: Option<Duration>,
    },
    /// The agent could not take it. An attempt is spent.
    Failed {
        /// Why.
        reason: String,
        /// When to offer it again; otherwise after a pause that grows.
        retry_after: Option<Duration>,
    },
    /// The session no longer exists here: the next sink of the chain gets it.
    Gone {
        /// Why.
        reason: String,
    },
}

impl From<Release> for SinkReply {
    fn from(release: Release) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        match release {
            Release::Busy { reason, retry_after } => {
                Self::Busy { reason, process: None, retry_after_ms: retry_after.map(millis) }
            }
            Release::Failed { retry_after: Some(pause), .. } => Self::RetryAfter { millis: millis(pause) },
            Release::Failed { reason, retry_after: None } => Self::Failed { reason },
            Release::Gone { reason } => Self::Gone { reason },
        }
    }
}

/// An item of a turn, and who holds its claim.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) token: String,
    /// The id of its delivery.
    pub(super) id: String,
    pub(super) claim: Claim,
    /// What the host has said about it, if it has.
    pub(super) said: Option<SinkReply>,
}

/// What keeps other processes away from an item.
#[derive(Debug)]
pub(super) enum Claim {
    /// The thread that delivers it.
    Deliverer(Delivered),
    /// The turn has taken it while it ran.
    FollowUp(Box<SteeredFollowUp>),
    Message(Box<SteeredMessage>),
    /// It is closed.
    Closed,
}

/// What a thread delivers.
#[derive(Debug, Clone)]
pub(super) enum Delivered {
    FollowUp(hearback_core::JobId),
    /// The number of a message.
    Message(u32),
}
