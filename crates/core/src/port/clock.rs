//! The port for clocks, so that tests control time.

use std::time::Duration;

use crate::{BootId, Stamp, Timestamp};

/// The three clocks that hearback uses.
pub trait Clock: Send + Sync {
    /// The wall clock. It jumps, and is only shown.
    fn wall(&self) -> Timestamp;

    /// Monotonic time that stops while the machine sleeps. Limits use it.
    fn awake(&self) -> Duration;

    /// Time since boot, sleep included. Never goes back within one boot.
    fn since_boot(&self) -> Duration;

    /// A name that no other boot has, where the system has one. Windows may give a boot several, one after the other.
    fn boot(&self) -> Option<BootId>;

    /// The current moment, on all clocks.
    fn stamp(&self) -> Stamp {
        Stamp {
            wall_ms: self.wall(),
            boot: self.boot(),
            since_boot_ms: u64::try_from(self.since_boot().as_millis()).unwrap_or(u64::MAX),
        }
    }
}
