//! The standard streams of this process.

use std::io;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Whether another process, a terminal or a file still takes what is written to standard output; nothing where that
/// cannot be told.
pub fn stdout_is_connected() -> Option<bool> {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).ok()?;
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    Some(!fds[0].revents()?.intersects(gone))
}
