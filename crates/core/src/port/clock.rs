//! Time as a port, so that tests own it.

use std::time::Duration;

use crate::{BootId, Stamp, Timestamp};

/// The three clocks that hearback tells apart.
pub trait Clock: Send + Sync {
    /// What the wall says. It jumps; it is for showing.
    fn wall(&self) -> Timestamp;

    /// Time awake since some fixed moment: stands still while the machine sleeps, never goes back. Limits count it.
    fn awake(&self) -> Duration;

    /// Time since boot, sleep included. Never goes back within one boot.
    fn since_boot(&self) -> Duration;

    /// A name that no other boot has, where the system has one. Windows may give a boot several, one after the other.
    fn boot(&self) -> Option<BootId>;

    /// This moment, on all of them.
    fn stamp(&self) -> Stamp {
        Stamp {
            wall_ms: self.wall(),
            boot: self.boot(),
            since_boot_ms: u64::try_from(self.since_boot().as_millis()).unwrap_or(u64::MAX),
        }
    }
}
