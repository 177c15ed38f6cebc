//! Hearing that this process is to end, so that it can put things in order first.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::clock;
use super::signals::{self, SignalWatch};

/// Hears requests to end this process. Dropped, it lets them mean the process again.
pub(crate) struct StopWatch(SignalWatch);

impl StopWatch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(SignalWatch::stops()?))
    }

    pub(crate) fn was_asked(&self) -> bool {
        self.0.take_stop()
    }

    pub(crate) fn wait(&self, within: Duration) -> bool {
        let deadline = clock::awake().saturating_add(within);
        loop {
            if self.was_asked() {
                return true;
            }
            let left = deadline.saturating_sub(clock::awake());
            if left.is_zero() {
                return false;
            }
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            // Interrupted: the next look tells.
            if poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], timeout).is_ok() {
                self.0.acknowledge();
            }
        }
    }
}

pub(crate) fn suspend() -> io::Result<()> {
    Ok(signals::stop_group()?)
}
