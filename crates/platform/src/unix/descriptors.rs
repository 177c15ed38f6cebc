//! How many descriptors this process may have. Programs that it starts get the limit that it was started with.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit before it was raised.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as this process may.
pub(crate) fn raise_limit() -> io::Result<()> {
    let now = getrlimit(Resource::Nofile);
    if now.current == now.maximum {
        return Ok(());
    }
    let before = BEFORE.get_or_init(|| now);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: before.maximum })?)
}

/// Sets the limit back, between fork and exec: many programs cannot handle numbers above 1,023, and some close every
/// number up to the limit.
pub(crate) fn restore_limit() {
    if let Some(before) = BEFORE.get() {
        // A limit that was lowered meanwhile is lower than that, and stays.
        let now = getrlimit(Resource::Nofile);
        if now.current.unwrap_or(u64::MAX) > before.current.unwrap_or(u64::MAX) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: before.current, maximum: now.maximum });
        }
    }
}
