//! The parts that this program plays in a trial of how far jobs are detached: the launcher, and the job.

use std::error::Error;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use hearback_core::port::disk::{Disk, LockMode, Wait};
use hearback_core::{CommandLine, JobId, Limits};
use hearback_platform::Native;

use crate::{Hearback, Options, Request};

/// The argument that makes this program play a part.
pub(crate) const COMMAND: &str = "__doctor";
const LAUNCHER: &str = "launch";
const JOB: &str = "hold";
const LAUNCHED: &str = "launched ";
const FAILED: &str = "failed ";
/// A job of a trial lasts for moments. If all else fails, it ends after this.
const LONGEST_MS: u64 = 60_000;

/// What everybody in a trial has to know.
pub(crate) struct Scene {
    /// The store that the job is launched in.
    pub(crate) store: PathBuf,
    /// What the launcher holds while it lives.
    pub(crate) lock: PathBuf,
    /// What the job waits for. Whoever holds it keeps the job alive, and lets go of it by dying.
    pub(crate) curtain: PathBuf,
}

impl Scene {
    /// The command line of the launcher.
    pub(crate) fn launcher(&self) -> Vec<OsString> {
        let paths = [&self.store, &self.lock, &self.curtain];
        [COMMAND, LAUNCHER].into_iter().map(OsString::from).chain(paths.map(OsString::from)).collect()
    }
}

/// Understands what the launcher said.
pub(crate) fn understand(line: &str) -> Result<JobId, String> {
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
        // A transparent wrapper repeats what was said.
        if !text.ends_with(&why) {
            text = format!("{text}: {why}");
        }
        cause = inner.source();
    }
    text
}

/// Plays the part that the rest of the command line asks for, and tells with which code to exit.
pub(crate) fn play(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    let part = arguments.next();
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    match (part.as_deref().and_then(|part| part.to_str()), &paths[..]) {
        (Some(LAUNCHER), [store, lock, curtain]) => {
            launch(&Scene { store: store.clone(), lock: lock.clone(), curtain: curtain.clone() })
        }
        (Some(JOB), [curtain]) => hold(curtain),
        _ => 2,
    }
}

/// Launches a job, says so, and stays until it is ended, or the process that watches is gone.
fn launch(scene: &Scene) -> i32 {
    hearback_platform::probe::look_at_terminal();
    let held = Native::default().lock(&scene.lock, LockMode::Exclusive, Wait::Try);
    let line = match launched(scene) {
        Ok(id) => format!("{LAUNCHED}{id}\n"),
        Err(error) => format!("{FAILED}{}\n", explain(&*error).replace('\n', " ")),
    };
    let told = std::io::stdout().write_all(line.as_bytes()).and_then(|()| std::io::stdout().flush());
    // There is nothing to read but the end.
    let _ = std::io::stdin().read(&mut [0]);
    drop(held);
    i32::from(told.is_err())
}

fn launched(scene: &Scene) -> Result<JobId, Box<dyn Error>> {
    let hearback = Hearback::open(Options::default().home(&scene.store).unrestricted())?;
    let program = std::env::current_exe()?;
    let words = [program.as_os_str(), COMMAND.as_ref(), JOB.as_ref(), scene.curtain.as_os_str()];
    let command = CommandLine::Argv(words.map(hearback_platform::from_os).into());
    let mut request = Request::new(command, hearback_platform::from_os(hearback.home().as_os_str()));
    request.limits = Limits { timeout_ms: Some(LONGEST_MS), ..request.limits };
    Ok(hearback.launch(&request)?.id().clone())
}

/// Sleeps until the curtain falls.
fn hold(curtain: &Path) -> i32 {
    i32::from(Native::default().lock(curtain, LockMode::Shared, Wait::Block).is_err())
}
