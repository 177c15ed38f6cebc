//! The bell is not there yet: a supervisor is not woken, and who rings is told that nobody heard it.

use std::io;
use std::path::Path;

/// Rings a bell; tells whether anybody was there to hear it.
pub(crate) fn ring(_path: &Path) -> io::Result<bool> {
    Ok(false)
}
