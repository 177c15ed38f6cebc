//! Names for files that are not finished.

use std::path::{Path, PathBuf};

use hearback_core::port::clock::Clock;

use crate::Native;

/// A name beside `path` that nobody else picks. It begins with `tmp.` and the time, so that what a crash leaves
/// behind can be told from a fact and from a write under way.
pub(crate) fn beside(path: &Path, nonce: u64) -> PathBuf {
    let now = Native::default().wall().as_millis();
    path.with_file_name(format!("tmp.{now}.{:x}.{nonce:016x}", std::process::id()))
}
