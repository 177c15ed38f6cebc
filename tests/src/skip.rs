//! Saying what was not tried here.

use std::env;
use std::fmt::Display;
use std::thread;

use crate::witness;

/// Names the file in which `cargo xtask` collects what was skipped.
const LIST: &str = "HEARBACK_TESTS_SKIPPED";

/// Says that the calling test, or a part of it, is not tried here, and why. `cargo xtask` lists what was said.
///
/// A test that merely returned would be counted among those that passed, and nothing would show that it was not.
pub fn skipped(why: impl Display) {
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    eprintln!("skipped: {test}: {why}");
    if let Some(list) = env::var_os(LIST) {
        witness(list, format_args!("{test}: {why}"));
    }
}
