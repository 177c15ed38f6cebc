//! `embedder [--forget] [OPTION…] -- PROG ARG…`: a program that launches a job through the library, without the
//! command line of hearback.
//!
//! Prints the id of the job and, with `--wait MS`, how it ended within that time, or `still running`. With
//! `--forget`, which comes first, it does not offer to supervise; with `--supervisor PATH` another program does
//! it. `--long BYTES` adds one argument of that size, `--many COUNT` so many of 1000 bytes. With `--stay FILE`
//! it stays until that file exists, but not longer than two minutes. With `--doctor`, which comes last, it
//! launches nothing and prints what is found of this machine.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use hearback::{Hearback, Options};

const STAY_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

fn main() {
    if env::args_os().nth(1).is_none_or(|first| first != "--forget") {
        hearback::supervise_if_asked();
    }
    if let Err(error) = embed() {
        eprintln!("embedder: {error}");
        let mut cause = error.source();
        while let Some(inner) = cause {
            eprintln!("  cause: {inner}");
            cause = inner.source();
        }
        process::exit(1);
    }
}

fn embed() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let (mut wait, mut stay, mut added) = (None, None, Vec::new());
    let mut args = env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or("an option lacks its value");
        let number = |value: OsString| value.to_str().and_then(|value| value.parse::<usize>().ok());
        match arg.to_str() {
            Some("--forget") => {}
            Some("--supervisor") => options = options.supervisor(value()?),
            Some("--wait") => wait = number(value()?),
            Some("--stay") => stay = Some(PathBuf::from(value()?)),
            Some("--long") => added.push("x".repeat(number(value()?).ok_or("not a number")?)),
            Some("--many") => added = vec!["x".repeat(1000); number(value()?).ok_or("not a number")?],
            Some("--doctor") => {
                for check in Hearback::doctor(&options)?.checks {
                    println!("{:?} {}: {}", check.level, check.name, check.message);
                }
                return Ok(());
            }
            Some("--") => break,
            _ => return Err("an argument is not known".into()),
        }
    }
    let hearback = Hearback::open(options)?;
    let request = hearback::argv(args.chain(added.into_iter().map(OsString::from)))?;
    let id = hearback.launch(&request)?.id().clone();
    println!("{id}");
    if let Some(millis) = wait {
        match hearback.wait_timeout(&id, Duration::from_millis(millis as u64))? {
            Some(job) => println!("{}", job.view.outcome.ok_or("it ended without an outcome")?),
            None => println!("still running"),
        }
    }
    if let Some(file) = stay {
        let deadline = Instant::now() + STAY_MAX;
        while !file.exists() && Instant::now() < deadline {
            thread::sleep(POLL);
        }
    }
    Ok(())
}
