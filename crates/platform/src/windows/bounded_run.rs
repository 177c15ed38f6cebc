//! Running a program to its end: input goes in, output comes out, and it has a time limit.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read, Write};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hearback_core::port::process::{BoundedRun, BoundedRunReport};
use hearback_core::{CommandLine, Exit, ProcessIdentity, StartError, StartErrorKind};
use tracing::debug;

use super::executor::{cannot_execute, create, exit_code, told};
use super::job::Job;
use super::process::Streams;
use super::{clock, detach, identity, tree};
use crate::mark::Names;
use crate::program;

/// How long a tree that is out of time may take to die.
const KILL_WITHIN: Duration = Duration::from_secs(2);
/// How long the last output may take to arrive.
const REST_WITHIN: Duration = Duration::from_millis(200);

pub(crate) fn run(names: &Names, bounded_run: &BoundedRun) -> Result<BoundedRunReport, StartError> {
    let cwd = bounded_run.cwd.clone().unwrap_or_else(std::env::temp_dir);
    program::check_directory(&cwd)?;
    let invocation = program::resolve(&CommandLine::Argv(bounded_run.argv.clone()), &cwd, None)?;
    let refused = |error: io::Error| cannot_execute(&invocation.program, &error);
    let (program, line) = told(&invocation).map_err(refused)?;
    let cannot = |error: io::Error| StartError {
        kind: StartErrorKind::Other,
        message: format!("cannot run `{}`: {error}", invocation.program.display()),
    };
    let (input, mut tells) = io::pipe().map_err(cannot)?;
    let (said, output) = io::pipe().map_err(cannot)?;
    let (complained, error) = io::pipe().map_err(cannot)?;
    let streams = Streams { input: input.into(), output: output.into(), error: Some(error.into()) };
    let job = Job::new().map_err(cannot)?;
    let owner = detach::owned_by_me();
    let owner = owner.iter().map(|value| (names.owner.as_ref(), Some(value.as_os_str())));
    let changes = changes(names, bounded_run).into_iter().chain(owner);
    if bounded_run.unless.iter().any(|path| fs_err::symlink_metadata(path).is_ok()) {
        let message = format!("`{}` was not run: it is not wanted any more", invocation.program.display());
        return Err(StartError { kind: StartErrorKind::Other, message });
    }
    let created = create(&program, &line, &cwd, changes, streams, &job).map_err(refused)?;
    let stdin = bounded_run.stdin.clone();
    // One that ends, or closes its input, without reading all of it is none of our business.
    let tell = move || drop(std::thread::spawn(move || drop(tells.write_all(&stdin))));
    let (out, err) = if bounded_run.speaks_first {
        (
            listen(said, bounded_run.output_max, Some(tell)),
            listen(complained, bounded_run.output_max, None::<fn()>),
        )
    } else {
        tell();
        (
            listen(said, bounded_run.output_max, None::<fn()>),
            listen(complained, bounded_run.output_max, None::<fn()>),
        )
    };
    let in_time = identity::has_ended(&created.process, Some(bounded_run.within)).map_err(cannot)?;
    let exit = in_time.then(|| exit_code(&created.process)).flatten();
    let survivors = if in_time {
        // What it left behind was left on purpose.
        let _ = job.release();
        Vec::new()
    } else {
        end(names, bounded_run, &job)
    };
    Ok(BoundedRunReport { exit, survivors, stdout: all(&out), stderr: all(&err) })
}

/// Kills a run that is out of time, and returns what survives that.
fn end(names: &Names, bounded_run: &BoundedRun, job: &Job) -> Vec<ProcessIdentity> {
    if let Err(error) = job.terminate() {
        debug!(mark = %bounded_run.mark, %error, "job object not terminated");
    }
    let mut survivors = match tree::end_marked(&names.membership(&bounded_run.mark), KILL_WITHIN) {
        Ok(report) => report.survivors,
        Err(error) => {
            debug!(mark = %bounded_run.mark, %error, "processes cannot be looked for");
            Vec::new()
        }
    };
    let inside = job.members().unwrap_or_default();
    survivors.extend(inside.into_iter().filter(tree::lives_on));
    survivors.sort_by_key(|who| who.pid);
    survivors.dedup();
    survivors
}

fn changes<'a>(names: &'a Names, bounded_run: &'a BoundedRun) -> Vec<(&'a OsStr, Option<&'a OsStr>)> {
    // What is woken belongs to no job, and what it launches is its own.
    let marks = [
        (names.answer.as_ref(), None),
        (names.job.as_ref(), None),
        (names.supervisor.as_ref(), None),
        (names.bounded_run.as_ref(), Some(bounded_run.mark.as_str().as_ref())),
    ];
    marks.into_iter().chain(bounded_run.env.iter().map(|(name, value)| (&**name, value.as_deref()))).collect()
}

/// Reads a stream to its end in a thread, and keeps the beginning of it. `after_a_line` is called once there is one.
fn listen<F: FnOnce() + Send + 'static>(
    mut pipe: PipeReader,
    most: usize,
    mut after_a_line: Option<F>,
) -> Receiver<Vec<u8>> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        let mut left = most;
        while let Ok(n @ 1..) = pipe.read(&mut chunk) {
            if chunk[..n].contains(&b'\n')
                && let Some(call) = after_a_line.take()
            {
                call();
            }
            let kept = n.min(left);
            left -= kept;
            // The caller has what it wants: a process that holds the pipe open keeps only this thread.
            if sender.send(chunk[..kept].to_vec()).is_err() {
                return;
            }
        }
    });
    heard
}

/// The output so far, without waiting for a process that holds the pipe open, however much that one prints.
fn all(heard: &Receiver<Vec<u8>>) -> Vec<u8> {
    let deadline = clock::awake() + REST_WITHIN;
    let mut said = Vec::new();
    while let Ok(piece) = heard.recv_timeout(deadline.saturating_sub(clock::awake())) {
        said.extend(piece);
        // What is there is taken without waiting, so the time alone would not end it.
        if clock::awake() >= deadline {
            break;
        }
    }
    said
}

/// How a program is called that is run in front of us: by its file, since `claude` may well be a `claude.cmd`, and the
/// standard library looks for programs that end in `.exe` alone.
pub(crate) fn named_in_front(program: &OsStr) -> OsString {
    let here = std::env::current_dir().unwrap_or_default();
    program::find(program, &here).map_or_else(|_| program.into(), OsString::from)
}

/// Runs a program in front of us, with our streams and our console, until it ends.
pub(crate) fn run_in_front(mut command: Command) -> io::Result<Exit> {
    // A process that listens is not ended by a break, which the program hears as well.
    super::stop::listen()?;
    command.status().map(exit_of)
}

fn exit_of(status: ExitStatus) -> Exit {
    Exit::Exited { code: status.code().unwrap_or(1).cast_unsigned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::OsText;
    use hearback_core::testing::sample;
    use std::sync::atomic::{AtomicU64, Ordering};

    static MADE: AtomicU64 = AtomicU64::new(0);

    fn cmd(script: &str) -> BoundedRun {
        BoundedRun {
            argv: ["cmd", "/d", "/c", script].map(OsText::from).to_vec(),
            cwd: None,
            env: Vec::new(),
            stdin: b"hello\n".to_vec(),
            within: Duration::from_secs(20),
            output_max: 1000,
            speaks_first: false,
            // A run that is out of time is ended by its mark, so no two have the same.
            mark: sample::id(u64::from(std::process::id()) * 4 + MADE.fetch_add(1, Ordering::Relaxed)),
            unless: Vec::new(),
        }
    }

    #[test]
    fn a_program_has_its_say_and_its_code() {
        let report = run(&Names::HEARBACK, &cmd("echo yes& exit 3")).unwrap();
        assert_eq!(report.exit, Some(Exit::Exited { code: 3 }));
        assert_eq!(String::from_utf8_lossy(&report.stdout).trim(), "yes");
        let missing = BoundedRun { argv: vec!["no-such-program".into()], ..cmd("") };
        assert_eq!(run(&Names::HEARBACK, &missing).unwrap_err().kind, StartErrorKind::NotFound);
    }

    #[test]
    fn out_of_time_it_is_ended() {
        let endless = BoundedRun { within: Duration::from_millis(500), ..cmd("ping -n 60 127.0.0.1") };
        let report = run(&Names::HEARBACK, &endless).unwrap();
        assert_eq!(report.exit, None);
        assert!(
            super::super::snapshot::marked(&Names::HEARBACK.membership(&endless.mark)).unwrap().is_empty(),
            "a process is left"
        );
    }
}
