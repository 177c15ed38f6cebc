//! The launcher and the job of a trial by `doctor`: this program, executed again.

use std::error::Error;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::port::disk::{Disk, LockMode, Wait};
use hearback_core::{CommandLine, JobId};
use hearback_platform::Native;

use crate::{Hearback, Options, Request};

/// The argument that makes this program the launcher or the job of a trial.
pub(crate) const COMMAND: &str = "__doctor";
const LAUNCHER: &str = "launch";
const JOB: &str = "hold";
const LAUNCHED: &str = "launched ";
const FAILED: &str = "failed ";
/// The timeout of a job of a trial, which normally lasts for moments.
const LONGEST: Duration = Duration::from_secs(60);

/// The paths that the processes of a trial share.
pub(crate) struct TrialPaths {
    /// The store that the job is launched in.
    pub(crate) store: PathBuf,
    /// The lock that the launcher holds while it lives.
    pub(crate) lock: PathBuf,
    /// The lock that the job waits for. While doctor holds it, the job runs; if doctor dies, the lock is free.
    pub(crate) keep_alive: PathBuf,
}

impl TrialPaths {
    /// The command line of the launcher.
    pub(crate) fn launcher(&self) -> Vec<OsString> {
        let paths = [&self.store, &self.lock, &self.keep_alive];
        [COMMAND, LAUNCHER].into_iter().map(OsString::from).chain(paths.map(OsString::from)).collect()
    }
}

/// Reads the line that the launcher printed.
pub(crate) fn parse_report(line: &str) -> Result<JobId, String> {
    match (line.strip_prefix(LAUNCHED), line.strip_prefix(FAILED)) {
        (Some(id), _) => JobId::parse(id).map_err(|error| error.to_string()),
        (None, Some(why)) => Err(why.to_owned()),
        (None, None) => Err(format!("the launcher says `{line}`")),
    }
}

/// An error with its causes, on one line.
pub(crate) fn explain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let why = inner.to_string();
        // A transparent wrapper repeats the text of its cause.
        if !text.ends_with(&why) {
            text = format!("{text}: {why}");
        }
        cause = inner.source();
    }
    text
}

/// Becomes the launcher or the job, as the rest of the command line says; returns the exit code.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    let role = arguments.next();
    let given: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    match (role.as_deref().and_then(|role| role.to_str()), &given[..]) {
        (Some(LAUNCHER), [store, lock, keep_alive]) => {
            launch(&TrialPaths { store: store.clone(), lock: lock.clone(), keep_alive: keep_alive.clone() })
        }
        (Some(JOB), [keep_alive]) => hold(keep_alive),
        _ => 2,
    }
}

/// Launches a job, reports it, and stays until it is killed, or until doctor has died.
fn launch(paths: &TrialPaths) -> i32 {
    hearback_platform::probe::look_at_terminal();
    let held = Native::default().lock(&paths.lock, LockMode::Exclusive, Wait::Try);
    let line = match launched(paths) {
        Ok(id) => format!("{LAUNCHED}{id}\n"),
        Err(error) => format!("{FAILED}{}\n", explain(&*error).replace('\n', " ")),
    };
    let written = std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush());
    // Returns when doctor closes the pipe, or dies.
    let _ = std::io::stdin().read(&mut [0]);
    drop(held);
    i32::from(written.is_err())
}

fn launched(paths: &TrialPaths) -> Result<JobId, Box<dyn Error>> {
    let hearback = Hearback::open(Options::default().home(&paths.store).unrestricted())?;
    let program = std::env::current_exe()?;
    let words = [program.as_os_str(), COMMAND.as_ref(), JOB.as_ref(), paths.keep_alive.as_os_str()];
    let command = CommandLine::Argv(words.map(hearback_platform::from_os).into());
    let request =
        Request::new(command, hearback_platform::from_os(hearback.home().as_os_str())).timeout(Some(LONGEST));
    Ok(hearback.launch(&request)?.id().clone())
}

/// Sleeps until doctor releases the lock.
fn hold(keep_alive: &Path) -> i32 {
    i32::from(Native::default().lock(keep_alive, LockMode::Shared, Wait::Block).is_err())
}
