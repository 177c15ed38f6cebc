//! `hears SESSION WITNESS [OPTION…]`: a program that embeds hearback and is told of the follow-ups of a session in a
//! closure. It reads no settings file.
//!
//! For each follow-up that it gets, it appends one line to WITNESS: its identity, the number of the attempt, and how
//! the job ended. With `--refuse N` it gives the first N back. With `--until N` it leaves after it has taken so many,
//! with `--within MS` after that time, and with `--stop FILE` as soon as that file exists: another thread cancels its
//! wait. With `--hold FILE` it keeps each follow-up until that file exists.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hearback::core::Session;
use hearback::{CancelWait, Hearback, Options, Settings, WaitLimit};

const HOLD_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    hearback::supervise_if_asked();
    let mut args = std::env::args_os().skip(1);
    let session = args.next().and_then(|name| name.into_string().ok()).ok_or("the session is missing")?;
    let witness = PathBuf::from(args.next().ok_or("the witness is missing")?);
    let (mut refuse, mut until, mut within) = (0, u64::MAX, None);
    let (mut stop, mut hold) = (None, None);
    while let Some(option) = args.next() {
        let value = args.next().ok_or("an option lacks its value")?;
        let number = || value.to_str().and_then(|value| value.parse::<u64>().ok()).ok_or("not a number");
        match option.to_str() {
            Some("--refuse") => refuse = number()?,
            Some("--until") => until = number()?,
            Some("--within") => within = Some(Duration::from_millis(number()?)),
            Some("--stop") => stop = Some(PathBuf::from(&value)),
            Some("--hold") => hold = Some(PathBuf::from(&value)),
            _ => return Err("an option is not known".into()),
        }
    }

    let mut settings = Settings::default();
    settings.retry.first = Duration::from_millis(10);
    let hearback = Hearback::open(Options::default().settings(settings))?;
    let cancel = CancelWait::new();
    if let Some(stop) = stop {
        let cancel = cancel.clone();
        thread::spawn(move || {
            await_file(&stop);
            cancel.cancel();
        });
    }
    let limit = WaitLimit::from(within).or_cancelled(&cancel);
    let mut taken = 0;
    hearback.on_follow_up(&Session::parse(&session)?.into(), limit, |delivery| {
        let outcome = delivery.job.outcome.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut file = OpenOptions::new().create(true).append(true).open(&witness)?;
        file.write_all(format!("{} {} {outcome}\n", delivery.id, delivery.attempt).as_bytes())?;
        if let Some(hold) = &hold {
            await_file(hold);
        }
        if refuse > 0 {
            refuse -= 1;
            return Err(std::io::Error::other("not now"));
        }
        taken += 1;
        if taken >= until {
            cancel.cancel();
        }
        Ok(())
    })?;
    Ok(())
}

fn await_file(file: &Path) {
    let deadline = Instant::now() + HOLD_MAX;
    while !file.exists() && Instant::now() < deadline {
        thread::sleep(POLL);
    }
}
