//! What every executor does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::port::executor::{
    AttachError, AttachRequest, Attached, Executor, RunEvent, Running, StartRequest,
};
use crate::port::process::SweepReport;
use crate::port::surroundings::{
    Happened, OutputLog, Ready, Surround, SurroundRequest, Surroundings, next_event,
};
use crate::{CommandLine, Exit, JobId, OsText, StartError, StartErrorKind};

/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);
/// How long a target is watched that must not end by itself.
const MOMENT: Duration = Duration::from_millis(20);

/// Commands that an executor under test can run.
#[derive(Debug)]
pub struct Commands {
    /// Prints `hello` and a line end, then exits with 3.
    pub hello_then_3: CommandLine,
    /// Runs for longer than any test, and ends when it hears a request to terminate.
    pub sleeper: CommandLine,
    /// Whether it hears one from its first moment on. On Windows only a process that has set up its console does.
    pub sleeper_hears: bool,
    /// A program that is not there.
    pub missing: CommandLine,
    /// Where to run them.
    pub cwd: OsText,
    /// A directory that is not there.
    pub no_such_dir: OsText,
}

/// An executor under test, with the surroundings of its targets.
struct Bench<'a> {
    executor: &'a dyn Executor,
    commands: &'a Commands,
    around: Box<dyn Surroundings>,
    output: Arc<dyn OutputLog>,
    /// When the log was opened, on the awake clock.
    opened: Duration,
    samples: &'a Path,
}

impl Bench<'_> {
    fn try_to_start(
        &self,
        job: &JobId,
        command: &CommandLine,
        cwd: &OsText,
    ) -> Result<Box<dyn Running>, StartError> {
        self.executor.start(&StartRequest {
            job,
            command,
            cwd,
            withhold: &[],
            answer: None,
            script: None,
            input: None,
            output: &self.output,
            samples: self.samples,
        })
    }

    /// A target that has reported its start.
    fn start(&mut self, job: &JobId, command: &CommandLine) -> Box<dyn Running> {
        let mut running = self.try_to_start(job, command, &self.commands.cwd).unwrap();
        assert_eq!(self.next(&mut *running), Happened::Target(RunEvent::Started));
        running
    }

    fn next(&mut self, running: &mut (dyn Running + 'static)) -> Happened {
        next_event(&mut *self.around, Some(running), Some(self.opened + LONG))
    }

    fn exit(&mut self, running: &mut (dyn Running + 'static)) -> Exit {
        match self.next(running) {
            Happened::Target(RunEvent::Exited { exit, .. }) => exit,
            other => panic!("expected an exit, got {other:?}"),
        }
    }
}

/// Holds an executor to its promises. The surroundings of its targets are made in `folder`.
///
/// Afterwards the file `log` there holds `hello`, a line end, and the output of the sleepers. The ids of the jobs
/// come from the folder's name, so that other tests have others.
pub fn executor(executor: &dyn Executor, surround: &dyn Surround, commands: &Commands, folder: &Path) {
    let (bell, log, log_tail) = (folder.join("bell"), folder.join("log"), folder.join("tail"));
    let request = SurroundRequest { bell: &bell, log: &log, log_tail: &log_tail, log_cap: None };
    let around = surround.surround(&request).unwrap();
    let (output, opened) = (around.log(), around.last_output());
    let samples = &folder.join("samples");
    let mut bench = Bench { executor, commands, around, output, opened, samples };
    let id = |n: u64| {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&(folder, n), &mut hasher);
        JobId::mint(1_763_000_000_000, std::hash::Hasher::finish(&hasher))
    };
    what_cannot_be_started_is_refused(&bench, &id(0));
    a_target_reports_its_life(&mut bench, &id(1));
    a_tree_is_terminated(&mut bench, &id(2));
    a_tree_is_killed(&mut bench, &id(3));
    a_target_is_found_again_or_cannot_be(&mut bench, &id(4));
    what_is_left_is_swept(&mut bench, &id(5));
}

fn what_cannot_be_started_is_refused(bench: &Bench<'_>, job: &JobId) {
    let commands = bench.commands;
    let refused = |command, cwd| bench.try_to_start(job, command, cwd).err().expect("nothing to run").kind;
    assert_eq!(refused(&commands.missing, &commands.cwd), StartErrorKind::NotFound);
    assert_eq!(refused(&commands.hello_then_3, &commands.no_such_dir), StartErrorKind::BadDirectory);
}

fn a_target_reports_its_life(bench: &mut Bench<'_>, job: &JobId) {
    let mut running = bench.start(job, &bench.commands.hello_then_3);
    assert!(!running.detachment().survives.is_empty(), "what a job survives is reported");
    assert_eq!(bench.exit(&mut *running), Exit::Exited { code: 3 });
    assert_eq!(bench.next(&mut *running), Happened::Target(RunEvent::Emptied));
    assert_eq!(running.members(), [], "nothing is left");
    assert_eq!(running.poll(Ready::NONE), None, "every event is reported once");
    running.drain();
    assert!(bench.around.finish_log().bytes >= 5, "all output reaches the log");
    let swept = bench.executor.sweep(job, Some(running.handle()), LONG).unwrap();
    assert_eq!(swept, SweepReport::default(), "there is nothing to sweep");
}

/// A sleeper that is watched for a moment.
fn sleeper(bench: &mut Bench<'_>, job: &JobId) -> Box<dyn Running> {
    let mut running = bench.start(job, &bench.commands.sleeper);
    let soon = bench.around.last_output().max(bench.opened) + MOMENT;
    assert_eq!(next_event(&mut *bench.around, Some(&mut *running), Some(soon)), Happened::Deadline);
    assert!(!running.members().is_empty(), "it runs");
    running
}

fn a_tree_is_terminated(bench: &mut Bench<'_>, job: &JobId) {
    let mut running = sleeper(bench, job);
    running.terminate();
    if !bench.commands.sleeper_hears {
        assert_eq!(running.kill(LONG), [], "what does not hear is killed");
    }
    assert_ne!(bench.exit(&mut *running), Exit::Exited { code: 0 });
    assert_eq!(bench.next(&mut *running), Happened::Target(RunEvent::Emptied));
}

fn a_tree_is_killed(bench: &mut Bench<'_>, job: &JobId) {
    let mut running = sleeper(bench, job);
    assert_eq!(running.kill(LONG), [], "nothing survives");
    let killed = running.poll(Ready::NONE);
    assert!(matches!(killed, Some(RunEvent::Exited { .. })), "the exit is known at once: {killed:?}");
    assert_eq!(bench.next(&mut *running), Happened::Target(RunEvent::Emptied));
    assert_eq!(running.kill(LONG), [], "killing nothing is no failure");
}

fn a_target_is_found_again_or_cannot_be(bench: &mut Bench<'_>, job: &JobId) {
    let mut running = sleeper(bench, job);
    let handle = running.handle().clone();
    let output = Arc::clone(&bench.output);
    match bench.executor.attach(&AttachRequest { job, handle: Some(&handle), output: &output }) {
        Ok(Attached::Found(mut again)) => {
            assert_eq!(*again.handle(), handle);
            assert_eq!(bench.next(&mut *again), Happened::Target(RunEvent::Started));
            assert_eq!(again.kill(LONG), []);
        }
        Ok(Attached::NeverStarted) => panic!("it was started"),
        // Its targets end with their supervisor: killing it shows that the attempt has not disturbed it.
        Err(AttachError::Unsupported) => assert_eq!(running.kill(LONG), []),
        Err(error) => panic!("{error}"),
    }
    assert!(matches!(bench.next(&mut *running), Happened::Target(RunEvent::Exited { .. })));
}

fn what_is_left_is_swept(bench: &mut Bench<'_>, job: &JobId) {
    let running = sleeper(bench, job);
    let handle = running.handle().clone();
    drop(running);
    let swept = bench.executor.sweep(job, Some(&handle), LONG).unwrap();
    assert_eq!(swept.survivors, [], "nothing survives a sweep");
    let again = bench.executor.sweep(job, None, LONG).unwrap();
    assert_eq!(again, SweepReport::default(), "nothing is left, and the job alone is enough to look");
}
