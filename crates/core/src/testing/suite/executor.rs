//! What every executor does.

use std::path::Path;

use crate::port::executor::{Executor, RunEvent, StartRequest};
use crate::testing::sample;
use crate::{CommandLine, Exit, OsText, StartErrorKind};

/// Commands that an executor under test can run.
#[derive(Debug)]
pub struct Commands {
    /// Prints `hello` and a line end, then exits with 3.
    pub hello_then_3: CommandLine,
    /// A program that is not there.
    pub missing: CommandLine,
    /// Where to run them.
    pub cwd: OsText,
    /// A directory that is not there.
    pub no_such_dir: OsText,
}

/// Holds an executor to its promises; `log` is where output goes, and is read by the caller afterwards.
pub fn executor(executor: &dyn Executor, commands: &Commands, log: &Path) {
    let (job, bell) = (sample::id(1), log.with_file_name("bell"));
    let tail = log.with_extension("tail");
    let request = |command, cwd| StartRequest {
        job: &job,
        command,
        cwd,
        withhold: &[],
        answer: None,
        log,
        log_tail: &tail,
        log_cap: None,
        script: None,
        bell: &bell,
    };

    let error = executor.start(&request(&commands.missing, &commands.cwd)).err().expect("nothing to run");
    assert_eq!(error.kind, StartErrorKind::NotFound, "{error}");
    let error = executor.start(&request(&commands.hello_then_3, &commands.no_such_dir)).err();
    assert_eq!(error.expect("nowhere to run").kind, StartErrorKind::BadDirectory);

    let mut running = executor.start(&request(&commands.hello_then_3, &commands.cwd)).unwrap();
    assert!(running.process().pid > 0);
    assert!(!running.detachment().survives.is_empty(), "what a job lives through is said");
    match running.next(None) {
        RunEvent::Exited { exit, .. } => assert_eq!(exit, Exit::Exited { code: 3 }),
        other => panic!("expected an exit, got {other:?}"),
    }
    assert_eq!(running.members(), [], "nothing is left");
    assert!(running.drain().bytes >= 5, "everything printed is counted");
}
