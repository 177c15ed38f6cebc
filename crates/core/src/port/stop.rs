//! Requests to terminate this process as a port: signals on Unix, console events on Windows.

use std::io;
use std::time::Duration;

/// Where requests to terminate this process come from.
pub trait StopSignals: Send + Sync {
    /// Listens from now on. While the listener lives, a request does not terminate this process by itself; once it is
    /// dropped, the next one does.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn listen(&self) -> io::Result<Box<dyn StopListener>>;
}

/// Listens for requests to terminate this process.
pub trait StopListener: Send {
    /// Sleeps until there is a request, but not longer than `within`; tells whether there was one.
    fn wait(&self, within: Duration) -> bool;
}
