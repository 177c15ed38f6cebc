//! `hold FILE [--witness W] [--code N] [--print TEXT] [--asked N]`: ends when a file appears.
//!
//! Prints the text if there is one, appends `start <pid>` to the witness, waits until `FILE` exists and exits
//! with `N` (default 0). With `--asked` it exits with that code when it is terminated. Gives up
//! after 120 s with code 99, so that a broken test leaves nothing behind.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use hearback_platform::StopWatch;
use hearback_tests::witness;

const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);
const GAVE_UP: i32 = 99;

fn main() {
    let (mut file, mut witness_file, mut printed) = (None, None, None);
    let (mut code, mut asked) = (0, None);
    let mut args = env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage("an option lacks its value"));
        match arg.to_str() {
            Some("--witness") => witness_file = Some(PathBuf::from(value())),
            Some("--print") => printed = Some(value()),
            Some("--code") => code = number(&value()),
            Some("--asked") => {
                // From here on, so before anything is printed.
                let stop = StopWatch::new().expect("listening needs no rights");
                asked = Some((stop, number(&value())));
            }
            _ if file.is_none() => file = Some(PathBuf::from(arg)),
            _ => usage("too many arguments"),
        }
    }
    let Some(file) = file else { usage("FILE is missing") };

    if let Some(text) = printed {
        println!("{}", text.display());
    }
    if let Some(witness_file) = witness_file {
        witness(witness_file, format_args!("start {}", process::id()));
    }
    let deadline = Instant::now() + WAIT_MAX;
    while !file.exists() {
        if let Some((_, code)) = asked.as_ref().filter(|(stop, _)| stop.was_asked()) {
            process::exit(*code);
        }
        if Instant::now() >= deadline {
            process::exit(GAVE_UP);
        }
        thread::sleep(POLL);
    }
    process::exit(code)
}

fn number(text: &OsStr) -> i32 {
    let number = text.to_str().and_then(|number| number.parse::<u32>().ok());
    // Windows codes have all 32 bits; the cast keeps them.
    number.unwrap_or_else(|| usage("a code is a number")) as i32
}

fn usage(problem: &str) -> ! {
    eprintln!("hold: {problem}");
    process::exit(2)
}
