//! `exit-with CODE [--print TEXT] [--eprint TEXT] [--witness FILE] [--signal N] [--after MS] [--clock FILE]`: ends in
//! the given way.
//!
//! With `--after` it first sleeps. Texts are printed with a newline. The witness gets `start <pid>` and `end <code>`,
//! one line each. With `--signal` it raises that signal on itself instead of exiting; `CODE` is used if it survives.
//! Windows has no signals: there it gives up for 6 (`abort`), and runs out of stack for 11. The last thing it does is
//! to write the time to the file of `--clock`, in nanoseconds since 1970.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::path::PathBuf;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use hearback_tests::witness;

fn main() {
    let mut code = None;
    let mut witness_file = None;
    let (mut signal, mut clock) = (None, None);
    let (mut printed, mut eprinted) = (None, None);
    let mut args = env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| usage("an option lacks its value"));
        match arg.to_str() {
            Some("--print") => printed = Some(value()),
            Some("--eprint") => eprinted = Some(value()),
            Some("--witness") => witness_file = Some(PathBuf::from(value())),
            Some("--after") => {
                let millis = value().to_str().and_then(|number| number.parse().ok());
                std::thread::sleep(std::time::Duration::from_millis(millis.unwrap_or(0)));
            }
            Some("--clock") => clock = Some(PathBuf::from(value())),
            Some("--signal") => signal = value().to_str().and_then(|number| number.parse::<i32>().ok()),
            Some(text) if code.is_none() => code = text.parse::<u32>().ok(),
            _ => usage("too many arguments"),
        }
    }
    let Some(code) = code.filter(|code| cfg!(windows) || *code <= 255) else {
        usage("CODE is a number up to 255")
    };

    if let Some(file) = &witness_file {
        witness(file, format_args!("start {}", process::id()));
    }
    if let Some(text) = printed {
        println!("{}", text.display());
    }
    if let Some(text) = eprinted {
        eprintln!("{}", text.display());
    }
    if let Some(file) = &witness_file {
        witness(file, format_args!("end {code}"));
    }
    if let Some(file) = clock {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        witness(file, now.as_nanos());
    }
    if let Some(signal) = signal {
        raise(signal);
    }
    // Windows codes have all 32 bits; the cast keeps them.
    process::exit(code as i32)
}

#[cfg(unix)]
fn raise(signal: i32) {
    let Ok(signal) = nix::sys::signal::Signal::try_from(signal) else { usage("no such signal") };
    let _ = nix::sys::signal::raise(signal);
}

#[cfg(not(unix))]
fn raise(signal: i32) {
    match signal {
        6 => process::abort(),
        11 => process::exit(deeper(0) as i32),
        _ => usage("there is nothing like it here"),
    }
}

/// Calls itself until there is no more stack.
#[cfg(not(unix))]
#[expect(unconditional_recursion, reason = "that is the point")]
fn deeper(level: u64) -> u64 {
    std::hint::black_box(deeper(std::hint::black_box(level + 1))) + level
}

fn usage(problem: &str) -> ! {
    eprintln!("exit-with: {problem}");
    process::exit(2)
}
