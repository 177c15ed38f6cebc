//! The port for the index of events: the order in which readers have found what happened. It holds keys of facts and
//! nothing else, so it cannot disagree with them.

use std::fmt;

use super::disk::{Lock, Wait};
use super::record::StoreError;
use crate::event::EventKey;

/// A place in the index: everything before it was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventCursor {
    /// The name of a part of the index.
    pub part: String,
    /// How many bytes of it were read.
    pub bytes: u64,
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.part, self.bytes)
    }
}

impl EventCursor {
    /// Reads what was displayed; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (part, bytes) = text.split_once(':')?;
        let is_name =
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        Some(Self { part: part.to_owned(), bytes: bytes.parse().ok().filter(|_| is_name)? })
    }
}

/// The index of events.
pub trait EventIndex: Send + Sync {
    /// Takes its lock, under which keys are added; none if another process has it and `wait` is [`Wait::Try`].
    fn lock_events(&self, wait: Wait) -> Result<Option<Lock>, StoreError>;

    /// Reads keys from a place on, each with the place behind it; from the beginning if there is no such place, or none
    /// is given. Returns one part at a time, so that a reader need not hold them all, and nothing only at the end.
    /// Lines that are no keys are left out.
    fn read_events(&self, after: Option<&EventCursor>) -> Result<Vec<(EventKey, EventCursor)>, StoreError>;

    /// The place behind everything; none if there is nothing.
    fn last_event(&self) -> Result<Option<EventCursor>, StoreError>;

    /// Adds keys, which are on disk when this returns. The caller holds the lock, or its holder is paused: then a key
    /// may be added a second time, and readers leave out the second.
    fn append_events(&self, keys: &[EventKey]) -> Result<(), StoreError>;
}
