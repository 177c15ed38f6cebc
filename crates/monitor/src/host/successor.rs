//! The monitor before this one: a monitor can begin when its predecessor has ended.

use std::time::Duration;

use hearback_core::ProcessIdentity;
use hearback_core::port::record::StoreError;

use crate::Ports;

/// How often to look whether a predecessor has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A process that has to end first. A pid alone may belong to another process by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecessor {
    /// Its number.
    pub pid: u32,
    /// When the kernel says it was started.
    pub started: u64,
}

impl From<&ProcessIdentity> for Predecessor {
    fn from(process: &ProcessIdentity) -> Self {
        Self { pid: process.pid, started: process.started }
    }
}

/// Sleeps until this process has ended, by its identity. Another monitor may be the host by then.
///
/// # Errors
///
/// When the processes cannot be seen.
pub fn await_end_of(ports: &Ports, before: &Predecessor) -> Result<(), StoreError> {
    while ports.processes.identify(before.pid)?.is_some_and(|found| Predecessor::from(&found) == *before) {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
