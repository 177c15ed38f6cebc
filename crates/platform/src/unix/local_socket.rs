//! Sockets of this machine that have a path.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub(crate) fn send(path: &Path, bytes: &[u8], within: Duration) -> io::Result<()> {
    let mut socket = UnixStream::connect(path)?;
    socket.set_write_timeout(Some(within))?;
    socket.set_read_timeout(Some(within))?;
    socket.write_all(bytes)?;
    socket.shutdown(Shutdown::Write)?;
    // The other side hangs up when it has read everything. What it says is not part of any promise.
    let mut rest = [0; 1024];
    while socket.read(&mut rest)? > 0 {}
    Ok(())
}
