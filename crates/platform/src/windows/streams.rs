//! The standard streams of this process.

/// Whether another process, a terminal or a file still takes what is written to standard output: Windows does not tell
/// the writer of a pipe before it writes.
pub fn stdout_is_connected() -> Option<bool> {
    None
}
