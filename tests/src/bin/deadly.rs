//! `deadly ARG…`: hearback (`REAL`), except that its caller is to be killed before or after one of the calls.
//!
//! Calls are counted in the file `CALLS`. At the one whose number is `BEFORE` or `AFTER` it makes the file `STRIKE` and
//! ends when that is gone: the test has killed the caller by then.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::path::PathBuf;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

fn main() {
    let file = |name: &str| PathBuf::from(env::var_os(name).expect("it is told where"));
    let number = |text: String| text.trim().parse::<u32>().ok();
    let call = fs_err::read_to_string(file("CALLS")).ok().and_then(number).unwrap_or(0) + 1;
    fs_err::write(file("CALLS"), call.to_string()).expect("it can count");
    let strike_at = |when: &str| {
        if env::var(when).ok().and_then(number) != Some(call) {
            return;
        }
        fs_err::write(file("STRIKE"), "").expect("it can tell");
        let deadline = Instant::now() + WAIT_MAX;
        while file("STRIKE").exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        process::exit(9);
    };
    strike_at("BEFORE");
    let status = Command::new(file("REAL")).args(env::args_os().skip(1)).status();
    strike_at("AFTER");
    process::exit(status.expect("hearback can be started").code().unwrap_or(1));
}
