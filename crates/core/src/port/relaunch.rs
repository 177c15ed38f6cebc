//! Starting hearback again as a port: work that has to outlive the process that finds it.

use std::io;

use super::process::ProcessIdentity;

/// Starts hearback again, as detached processes.
pub trait Relaunch: Send + Sync {
    /// Starts a monitor of the same store that begins when the process `after` has ended.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    fn start_successor(&self, after: &ProcessIdentity) -> io::Result<()>;

    /// Starts a process that delivers the follow-ups which no other process delivers, with retries. Only one of them
    /// works, however many are started.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    fn start_deliverer(&self) -> io::Result<()>;
}
