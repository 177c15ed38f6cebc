//! Hearing that this process is to end, so that it can put things in order first.

use std::io;
use std::time::Duration;

use hearback_core::port::stop::{StopListener, StopSignals};

use crate::{Native, sys};

/// Hears requests to end this process: signals on Unix, the console's events on Windows. One at a time.
///
/// While it lives, such a request does not end this process by itself. Dropped, the next one does.
pub struct StopWatch(sys::stop::StopWatch);

impl StopWatch {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// When the system would not.
    pub fn new() -> io::Result<Self> {
        Ok(Self(sys::stop::StopWatch::new()?))
    }

    /// Whether there was such a request since the last call.
    pub fn was_asked(&self) -> bool {
        self.0.was_asked()
    }

    /// Sleeps until there is such a request, but not longer than `within`; tells whether there was one.
    pub fn wait(&self, within: Duration) -> bool {
        self.0.wait(within)
    }
}

/// Stops this process and the others of its group until a person continues them, as Ctrl-Z does. Returns when that has
/// happened.
///
/// # Errors
///
/// When the system cannot: Windows has no such stop.
pub fn suspend() -> io::Result<()> {
    sys::stop::suspend()
}

impl StopListener for StopWatch {
    fn wait(&self, within: Duration) -> bool {
        Self::wait(self, within)
    }
}

impl StopSignals for Native {
    fn listen(&self) -> io::Result<Box<dyn StopListener>> {
        Ok(Box::new(StopWatch::new()?))
    }
}
