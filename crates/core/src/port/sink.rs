//! The port for sinks, which accept follow-ups, messages and notices.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::delivery::Delivery;
use crate::{JobId, ProcessIdentity, SinkPayload};

/// What a sink did with a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SinkReply {
    /// The owner has it.
    Delivered,
    /// The agent keeps it in a queue of its own, from which its session takes it. When is not known.
    Queued,
    /// The session is in a turn: retry later; this does not count as an attempt.
    Busy {
        /// Why, if there is more to say.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// The process in which the session is open, if it is known: the sink is tried again when that has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<ProcessIdentity>,
        /// When to try again, if the sink knows; otherwise the pause grows each time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The session is open where it cannot be reached: the next sink of the chain is told, and this one is tried
    /// again. This does not count as an attempt.
    Unreachable {
        /// Why.
        #[serde(default)]
        reason: String,
        /// The process in which the session is open, if it is known: the sink is tried again when that has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<ProcessIdentity>,
    },
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
    /// It could not be delivered, and the attempt is spent.
    Failed {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Several deliveries in one turn, and a reply for each.
    #[serde(skip)]
    Each {
        /// The replies, by the ids of the deliveries.
        replies: Vec<(String, SinkReply)>,
        /// Why the turn failed, if it did.
        error: Option<String>,
    },
    /// An answer of a newer protocol, to be treated as a failed attempt.
    #[serde(other)]
    Unknown,
}

impl SinkReply {
    /// The session is in a turn.
    pub fn busy() -> Self {
        Self::Busy { reason: String::new(), process: None, retry_after_ms: None }
    }
}

/// Why a sink gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// There is no sink of this name.
    #[error("there is no sink `{0}`")]
    Missing(String),
    /// Another process has it.
    #[error("only a host that attends the session has the sink `{0}`")]
    Elsewhere(String),
    /// It could not be run or reached, or its reply was invalid.
    #[error("the sink failed: {0}")]
    Failed(String),
    /// A receipt of what is delivered appeared before anything was handed over.
    #[error("it was closed before it was handed over")]
    Closed,
    /// It exceeded its time limit.
    #[error("the sink did not answer in time{}", still_running(survivors))]
    TimedOut {
        /// The pids of its processes that could not be killed.
        survivors: Vec<u32>,
    },
}

fn still_running(survivors: &[u32]) -> String {
    let pids: Vec<_> = survivors.iter().map(u32::to_string).collect();
    match pids.is_empty() {
        true => String::new(),
        false => format!("; processes that could not be killed: {}", pids.join(", ")),
    }
}

/// The context of one delivery to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryContext {
    /// The mark of all its processes, and of no others.
    pub mark: JobId,
    /// The turn of the payload's session in which the sink runs.
    pub turn: Option<u32>,
    /// The receipts of what is delivered: once one of these files exists, there is nothing to deliver any more. A sink
    /// that runs a program looks for them right before the program begins.
    pub receipts: Vec<PathBuf>,
}

/// A sink.
pub trait FollowUpSink: Send + Sync {
    /// Delivers one payload. Safe to repeat: the id stays the same.
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError>;

    /// Whether it starts a turn of the session; a session has one turn at a time.
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

/// The sink of the host that attends a session: only the process of that host has it.
pub const HOST_SINK: &str = "host";

/// The known sinks.
pub trait Sinks: Send + Sync {
    /// Finds a sink by its name.
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError>;

    /// Whether the sink of this name is left to another process, which has it: nothing is due there from here.
    fn is_elsewhere(&self, _name: &str) -> bool {
        false
    }

    /// The sink that gets the follow-ups which name none, if there is one: otherwise their owner fetches them.
    fn of_unrouted(&self) -> Option<&str> {
        None
    }
}
