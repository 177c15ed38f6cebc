//! Names for files that are not finished.

use hearback_core::port::clock::Clock;

use crate::Native;

/// A name that no other process picks. It begins with `tmp.` and the time, so that what a crash leaves behind can be
/// told from a fact and from a write under way.
pub(crate) fn name(nonce: u64) -> String {
    let now = Native::default().wall().as_millis();
    format!("tmp.{now}.{:x}.{nonce:016x}", std::process::id())
}
