//! Targets on this machine: started in a Job Object that ends with us.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::port::executor::{Detachment, RunEvent, Running, StartRequest};
use hearback_core::{Exit, JobId, Output, ProcessIdentity, StartError, StartErrorKind, Usage};
use windows_sys::Win32::Foundation::{ERROR_BAD_EXE_FORMAT, ERROR_DIRECTORY, ERROR_ELEVATION_REQUIRED};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED, GetExitCodeProcess, ResumeThread,
    TerminateProcess,
};

use super::job::{EXIT_FORCED, Job};
use super::process::{Created, Creation, Streams};
use super::pump::Pump;
use super::{call, clock, detach, environment, identity, text};
use crate::program::{self, Invocation};
use crate::{JOB_MARK, SUPERVISOR_MARK};

/// A job does not tell reliably that it has become empty, so one that is ending is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long to wait before looking whether the forced are gone.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

pub(crate) fn start(request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
    let cwd = PathBuf::from(text::to_os(request.cwd));
    program::check_directory(&cwd)?;
    let invocation = program::resolve(request.command, &cwd, request.script)?;
    refuse_batch_files(&invocation.program)?;
    let cannot = |error: io::Error| StartError {
        kind: StartErrorKind::Other,
        message: format!("cannot prepare to run: {error}"),
    };
    let job = Job::new().map_err(cannot)?;
    let (pump, writer) = Pump::new(request.log, request.log_tail, request.log_cap).map_err(cannot)?;
    let input = detach::null().map_err(cannot)?;
    // Whoever writes last to the pipe closes it, and that must not be us: ours goes as soon as the target has its own.
    let streams = Streams { input, output: writer, error: None };
    let created = create(&invocation, &cwd, request.job, streams)
        .map_err(|error| cannot_execute(&invocation.program, &error))?;
    if let Err(error) = begin(&job, &created) {
        // SAFETY: the handle is ours and borrowed for the call.
        unsafe { TerminateProcess(created.process.as_raw_handle(), EXIT_FORCED) };
        return Err(cannot_execute(&invocation.program, &error));
    }
    let unknown =
        ProcessIdentity { pid: created.pid, started: 0, boot: identity::boot(), scope: identity::scope() };
    let process = identity::identity(&created.process, created.pid).unwrap_or(unknown);
    Ok(Box::new(LocalRunning {
        process,
        handle: created.process,
        job,
        pump,
        stage: Stage::Alive,
        detachment: detach::detachment(),
    }))
}

/// Windows hands a batch file to `cmd`, which reads arguments by rules of its own: what was quoted for the file may
/// become a command. Until they are written for `cmd`, they are not run.
fn refuse_batch_files(program: &Path) -> Result<(), StartError> {
    let name = program.to_string_lossy().to_lowercase();
    // The system ignores these at the end of a name.
    let name = name.trim_end_matches(['.', ' ']);
    if name.ends_with(".bat") || name.ends_with(".cmd") {
        let message = format!(
            "`{}` is a batch file, which is not run directly yet; run it through `cmd /c`",
            program.display()
        );
        return Err(StartError { kind: StartErrorKind::NotExecutable, message });
    }
    Ok(())
}

fn cannot_execute(program: &Path, error: &io::Error) -> StartError {
    let kind = match error.kind() {
        _ if call::is(error, ERROR_BAD_EXE_FORMAT) => StartErrorKind::NotExecutable,
        _ if call::is(error, ERROR_ELEVATION_REQUIRED) => StartErrorKind::NotExecutable,
        _ if call::is(error, ERROR_DIRECTORY) => StartErrorKind::BadDirectory,
        io::ErrorKind::NotFound => StartErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => StartErrorKind::NotExecutable,
        _ => StartErrorKind::Other,
    };
    StartError { kind, message: format!("cannot execute `{}`: {error}", program.display()) }
}

/// Creates the target, held before its first instruction.
fn create(what: &Invocation, cwd: &Path, job: &JobId, streams: Streams) -> io::Result<Created> {
    let environment = environment::block([
        (JOB_MARK.as_ref(), Some(job.as_str().as_ref())),
        (SUPERVISOR_MARK.as_ref(), None),
    ])?;
    let creation = Creation {
        program: &what.program,
        name: &what.name,
        arguments: &what.arguments,
        environment: &environment,
        cwd,
        streams,
    };
    creation.create(CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP)
}

/// Puts the target into its job and lets it run. In this order, so that nothing it starts is ever outside.
fn begin(job: &Job, created: &Created) -> io::Result<()> {
    job.adopt(&created.process)?;
    // SAFETY: the handle is ours and borrowed for the call.
    match unsafe { ResumeThread(created.thread.as_raw_handle()) } {
        u32::MAX => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// How far a target is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Alive,
    /// Its exit has been told.
    Exited,
    /// That nothing is left has been told.
    Empty,
}

struct LocalRunning {
    process: ProcessIdentity,
    handle: OwnedHandle,
    job: Job,
    pump: Pump,
    stage: Stage,
    detachment: Detachment,
}

impl Running for LocalRunning {
    fn process(&self) -> &ProcessIdentity {
        &self.process
    }

    fn detachment(&self) -> Detachment {
        self.detachment.clone()
    }

    fn next(&mut self, deadline: Option<Duration>) -> RunEvent {
        loop {
            match self.stage {
                Stage::Alive => {
                    if let Some(exit) = self.exit() {
                        self.stage = Stage::Exited;
                        return RunEvent::Exited { exit, usage: usage(&self.handle).ok() };
                    }
                }
                Stage::Exited => {
                    if self.members().is_empty() {
                        self.stage = Stage::Empty;
                        return RunEvent::Emptied;
                    }
                }
                Stage::Empty => {}
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::awake()));
            if left == Some(Duration::ZERO) {
                return RunEvent::Deadline;
            }
            self.sleep(left);
        }
    }

    /// Sends Ctrl-Break to the target's group, for what that is worth: Windows passes it on within one console, and
    /// a target has a hidden one of its own. Who does not hear it is forced when the grace is over.
    fn ask(&mut self) {
        if self.exit().is_none() {
            // SAFETY: takes numbers. The target is the head of its group, and cannot be gone while we hold its
            // handle, so the number is nobody else's.
            unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, self.process.pid) };
        }
    }

    fn force(&mut self, within: Duration) -> Vec<ProcessIdentity> {
        let deadline = clock::awake() + within;
        loop {
            // Refused or not, who is left tells.
            let _ = self.job.terminate();
            let left = self.members();
            if left.is_empty() || clock::awake() >= deadline {
                return left;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn members(&mut self) -> Vec<ProcessIdentity> {
        self.job.members().unwrap_or_else(|_| vec![self.process.clone()])
    }

    fn last_output(&self) -> Duration {
        self.pump.last_output()
    }

    /// Nobody is ended for lack of memory here.
    fn suspicion(&self) -> Option<String> {
        None
    }

    fn drain(&mut self) -> Output {
        self.pump.drain()
    }
}

impl Drop for LocalRunning {
    fn drop(&mut self) {
        // What is left after the exit was told has been left on purpose, and may live. Before that, closing the job
        // ends the tree, as our death would.
        if self.stage != Stage::Alive {
            let _ = self.job.release();
        }
    }
}

impl LocalRunning {
    /// How the main process ended; nothing while it runs.
    fn exit(&self) -> Option<Exit> {
        if !identity::has_ended(&self.handle, Some(Duration::ZERO)).unwrap_or(false) {
            return None;
        }
        let mut code = 0;
        // SAFETY: the handle is ours and may be asked for this, and the pointer is to a number of ours.
        let told = unsafe { GetExitCodeProcess(self.handle.as_raw_handle(), &raw mut code) };
        (told != 0).then_some(Exit::Exited { code })
    }

    /// Waits for a change, or the end of `left`.
    fn sleep(&self, left: Option<Duration>) {
        let at_most = |most: Duration| left.map_or(most, |left| left.min(most));
        match self.stage {
            // Never refused for a handle that is ours; if it were, we would look again and again.
            Stage::Alive if identity::has_ended(&self.handle, left).is_ok() => {}
            Stage::Alive | Stage::Exited => std::thread::sleep(at_most(LOOK_EVERY)),
            // Nothing more can happen but the deadline.
            Stage::Empty => std::thread::sleep(at_most(Duration::from_secs(60 * 60))),
        }
    }
}

/// What the main process used. What its children used is not in it.
fn usage(process: &OwnedHandle) -> io::Result<Usage> {
    let times = identity::times(process)?;
    let mut memory = PROCESS_MEMORY_COUNTERS::default();
    let size = size_of_val(&memory) as u32;
    // SAFETY: the handle is ours, and the pointer is to as many bytes as are said.
    call::done(unsafe { K32GetProcessMemoryInfo(process.as_raw_handle(), &raw mut memory, size) })?;
    // Nobody runs without memory: a system that says so has forgotten.
    if memory.PeakWorkingSetSize == 0 {
        return Err(io::Error::from(io::ErrorKind::NotFound));
    }
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Ok(Usage {
        user_ms: millis(times.user),
        system_ms: millis(times.system),
        peak_memory_bytes: memory.PeakWorkingSetSize as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::tree;
    use hearback_core::port::process::{Presence, ProcessControl, SweepReport};
    use hearback_core::testing::{sample, suite};
    use hearback_core::{CommandLine, OsText};

    const LONG: Duration = Duration::from_secs(60);

    fn cmd(text: &str) -> CommandLine {
        CommandLine::Argv(["cmd", "/d", "/c", text].map(OsText::from).to_vec())
    }

    /// This very program, as one of the programs below.
    fn helper(name: &str) -> CommandLine {
        let me = text::from_os(std::env::current_exe().unwrap().as_os_str());
        let name = OsText::Text(format!("sys::executor::tests::{name}"));
        CommandLine::Argv(vec![me, OsText::from("--exact"), name])
    }

    /// Whether this process is a target, and so one of the programs below and not the tests themselves.
    fn is_target() -> bool {
        std::env::var_os(crate::JOB_MARK).is_some()
    }

    #[test]
    fn sleeper() {
        if !is_target() {
            return;
        }
        std::thread::sleep(LONG);
    }

    #[test]
    #[expect(clippy::disallowed_methods, clippy::zombie_processes, reason = "a target does as it likes")]
    fn parent_of_a_sleeper() {
        if !is_target() {
            return;
        }
        let CommandLine::Argv(argv) = helper("sleeper") else { unreachable!() };
        let mut argv = argv.iter().map(text::to_os);
        // It holds the pipe by its errors, and says nothing, so that it does not notice when nobody listens.
        let silent = std::process::Stdio::null();
        std::process::Command::new(argv.next().unwrap()).args(argv).stdout(silent).spawn().unwrap();
    }

    #[test]
    fn owner_of_a_sleeper() {
        if !is_target() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut running = run(&helper("sleeper"), dir.path());
        running.next(None);
    }

    #[test]
    fn knows_that_it_is_in_a_job() {
        if !is_target() {
            return;
        }
        assert_eq!(detach::detachment().survives, ["process_group"]);
    }

    fn run(command: &CommandLine, dir: &Path) -> Box<dyn Running> {
        let (job, cwd, log) = (sample::id(1), text::from_os(dir.as_os_str()), dir.join("log"));
        let request = StartRequest { job: &job, command, cwd: &cwd, log: &log, script: None, bell: &log };
        start(&request).unwrap()
    }

    fn deadline() -> Option<Duration> {
        Some(clock::awake() + LONG)
    }

    fn code(event: RunEvent) -> u32 {
        match event {
            RunEvent::Exited { exit: Exit::Exited { code }, .. } => code,
            other => panic!("expected an exit, got {other:?}"),
        }
    }

    #[test]
    fn this_machine_passes_the_suite_of_executors() {
        let dir = tempfile::tempdir().unwrap();
        let commands = suite::Commands {
            hello_then_3: cmd("echo hello& exit 3"),
            missing: CommandLine::Argv(vec!["no such program".into()]),
            cwd: text::from_os(dir.path().as_os_str()),
            no_such_dir: text::from_os(dir.path().join("none").as_os_str()),
        };
        let log = dir.path().join("log");
        suite::executor(&crate::Native::default(), &commands, &log);
        assert_eq!(fs_err::read(&log).unwrap(), b"hello\r\n");
    }

    #[test]
    fn codes_keep_all_their_bits_and_targets_carry_the_mark() {
        let dir = tempfile::tempdir().unwrap();
        for (text, expected) in [("exit 0", 0), ("exit 259", 259), ("exit -1", u32::MAX)] {
            let mut running = run(&cmd(text), dir.path());
            assert_eq!(code(running.next(deadline())), expected, "{text}");
            assert_eq!(running.next(deadline()), RunEvent::Emptied);
            assert_eq!(running.next(Some(clock::awake())), RunEvent::Deadline);
        }
        let mut running = run(&cmd("echo %HEARBACK_JOB%-%HEARBACK_SUPERVISOR%-"), dir.path());
        code(running.next(deadline()));
        running.drain();
        let printed = fs_err::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(printed.trim_end(), format!("{}-%HEARBACK_SUPERVISOR%-", sample::id(1)));
    }

    #[test]
    fn a_tree_is_ended_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let mut running = run(&helper("sleeper"), dir.path());
        assert_eq!(running.next(Some(clock::awake() + Duration::from_millis(20))), RunEvent::Deadline);
        assert_eq!(running.members(), [running.process().clone()]);
        running.ask();
        assert_eq!(running.force(LONG), []);
        // What the test did not wait for, it may have heard: Ctrl-Break has a code of its own.
        assert_ne!(code(running.next(deadline())), 0);
        assert_eq!(running.next(deadline()), RunEvent::Emptied);
    }

    #[test]
    fn what_is_left_after_the_exit_can_be_kept_or_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut running = run(&helper("parent_of_a_sleeper"), dir.path());
        assert_eq!(code(running.next(deadline())), 0);
        let left = running.members();
        assert_eq!(left.len(), 1);
        assert_eq!(running.next(Some(clock::awake() + Duration::from_millis(20))), RunEvent::Deadline);
        let before = clock::awake();
        assert!(running.drain().bytes > 0);
        assert!(clock::awake() - before < LONG, "a drain does not wait for who is left");
        drop(running);
        let native = crate::Native::default();
        assert_eq!(native.presence(&left[0]), Presence::Same, "left on purpose");

        let other = ProcessIdentity { started: left[0].started + 1, ..left[0].clone() };
        let sweep = |who| tree::sweep(&sample::id(1), Some(who), LONG).unwrap();
        assert_eq!(sweep(&other), SweepReport::default(), "somebody else is not touched");
        assert_eq!(native.presence(&left[0]), Presence::Same);
        assert_eq!(sweep(&left[0]), SweepReport { ended: 1, survivors: vec![] });
        assert_eq!(sweep(&left[0]), SweepReport::default());
    }

    #[test]
    fn a_target_does_not_outlive_who_lets_go_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let running = run(&helper("sleeper"), dir.path());
        let target = running.process().clone();
        drop(running);
        let deadline = clock::awake() + LONG;
        while crate::Native::default().presence(&target) != Presence::Gone {
            assert!(clock::awake() < deadline, "the job was closed and its process lives");
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    #[test]
    fn a_target_ends_with_its_supervisor() {
        let dir = tempfile::tempdir().unwrap();
        let mut outer = run(&helper("owner_of_a_sleeper"), dir.path());
        let deadline = clock::awake() + LONG;
        while outer.members().len() < 2 {
            assert_eq!(outer.next(Some(clock::awake() + BETWEEN_LOOKS)), RunEvent::Deadline);
            assert!(clock::awake() < deadline, "there is no sleeper");
        }
        let owner = outer.process().clone();
        tree::sweep(&sample::id(1), Some(&owner), LONG).unwrap();
        assert_eq!(code(outer.next(Some(deadline))), EXIT_FORCED);
        assert_eq!(outer.next(Some(deadline)), RunEvent::Emptied, "nobody ended the sleeper but its own job");
    }

    #[test]
    fn what_a_job_survives_depends_on_where_its_supervisor_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut running = run(&helper("knows_that_it_is_in_a_job"), dir.path());
        assert_eq!(code(running.next(deadline())), 0);
    }

    #[test]
    fn batch_files_are_refused_however_they_are_spelled() {
        for name in ["a.bat", "b.CMD", "c.cmd. ."] {
            let error = refuse_batch_files(Path::new(name)).unwrap_err();
            assert_eq!(error.kind, StartErrorKind::NotExecutable, "{name}");
        }
        assert!(refuse_batch_files(Path::new("cmd.exe")).is_ok());
    }
}
