//! Targets on this machine: started in a Job Object that ends with us.

use std::ffi::OsStr;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::executor::{Detachment, RunEvent, Running, StartRequest};
use hearback_core::port::surroundings::{Ready, Sources};
use hearback_core::{Exit, ProcessIdentity, StartError, StartErrorKind, TargetHandle, Usage};
use windows_sys::Win32::Foundation::{ERROR_BAD_EXE_FORMAT, ERROR_DIRECTORY, ERROR_ELEVATION_REQUIRED};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, GetExitCodeProcess};

use super::input::Input;
use super::job::Job;
use super::process::{Created, Creation, Streams, plain};
use super::pump::Pump;
use super::surroundings::source;
use super::tree::Tree;
use super::{call, command_line, detach, environment, identity, system, text};
use crate::mark::Names;
use crate::program::{self, Invocation};

/// A job does not tell reliably that it has become empty, so one that is ending is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn start(names: &Names, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
    let cwd = PathBuf::from(text::to_os(request.cwd));
    program::check_directory(&cwd)?;
    let invocation = program::resolve(request.command, &cwd, request.script)?;
    let (program, line) = told(&invocation).map_err(|error| cannot_execute(&invocation.program, &error))?;
    let cannot = |error: io::Error| StartError {
        kind: StartErrorKind::Other,
        message: format!("cannot prepare to run: {error}"),
    };
    detach::print_unicode();
    let job = Job::new().map_err(cannot)?;
    let (pump, writer) = Pump::new(Arc::clone(request.output)).map_err(cannot)?;
    let (input, stdin) = request.input.map(Input::new).transpose().map_err(cannot)?.unzip();
    let stdin = stdin.map_or_else(detach::null, Ok).map_err(cannot)?;
    // The last process that can write to the pipe closes it, and that must not be us: ours goes as soon as the target
    // has its own.
    let streams = Streams { input: stdin, output: writer, error: None };
    let answer = request.answer.map(plain);
    let owner = detach::owned_by_me();
    let owner = owner.iter().map(|value| (names.owner.as_ref(), Some(value.as_os_str())));
    let changes = changes(names, request, answer.as_deref()).into_iter().chain(owner);
    let created = create(&program, &line, &cwd, changes, streams, &job)
        .map_err(|error| cannot_execute(&invocation.program, &error))?;
    let unknown =
        ProcessIdentity { pid: created.pid, started: 0, boot: identity::boot(), scope: identity::scope() };
    let process = identity::identity(&created.process, created.pid).unwrap_or(unknown);
    Ok(Box::new(LocalRunning {
        handle: TargetHandle::of_process(&process),
        tree: Tree::new(names.membership(request.job), process, created.process, job),
        input,
        pump,
        stage: Stage::Accepted,
        detachment: detach::detachment(),
    }))
}

pub(super) fn cannot_execute(program: &Path, error: &io::Error) -> StartError {
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

/// The file to execute, and its command line. A batch file is no program: `cmd` runs it.
pub(super) fn told(what: &Invocation) -> io::Result<(PathBuf, Vec<u16>)> {
    if command_line::is_batch_file(&what.program) {
        Ok((system::cmd(), command_line::batch_line(&plain(&what.program), &what.arguments)?))
    } else {
        Ok((what.program.clone(), command_line::command_line(&what.name, &what.arguments)?))
    }
}

/// How the environment of a target differs from ours.
fn changes<'a>(
    names: &'a Names,
    request: &StartRequest<'a>,
    answer: Option<&'a Path>,
) -> Vec<(&'a OsStr, Option<&'a OsStr>)> {
    let job = Some(request.job.as_str().as_ref());
    let marks = [(names.job.as_ref(), job), (names.supervisor.as_ref(), None)];
    let withheld = request.withhold.iter().map(|name| (name.as_ref(), None));
    let answer = answer.map(|path| (names.answer.as_ref(), Some(path.as_os_str())));
    marks.into_iter().chain(withheld).chain(answer).collect()
}

/// Creates the target, in its job: nothing of it is ever outside, not even if we are killed just then.
pub(super) fn create<'a>(
    program: &Path,
    line: &[u16],
    cwd: &Path,
    changes: impl IntoIterator<Item = (&'a OsStr, Option<&'a OsStr>)>,
    streams: Streams,
    job: &Job,
) -> io::Result<Created> {
    system::show_no_dialogs();
    let environment = environment::block(changes)?;
    let creation =
        Creation { program, line, environment: &environment, cwd, streams, job: Some(job), terminal: None };
    // On our console, which is not shown, a target can be terminated. Without one, it gets its own.
    let console = if detach::has_console() { 0 } else { CREATE_NO_WINDOW };
    creation.create(CREATE_NEW_PROCESS_GROUP | console)
}

/// How a process that has ended did so.
pub(super) fn exit_code(process: &OwnedHandle) -> Option<Exit> {
    let mut code = 0;
    // SAFETY: the handle is ours and has the right for this, and the pointer is to a number of ours.
    let told = unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) };
    (told != 0).then_some(Exit::Exited { code })
}

/// How far a target is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It runs, which has not been reported.
    Accepted,
    Alive,
    /// Its exit has been reported.
    Exited,
    /// That nothing is left has been reported.
    Empty,
}

struct LocalRunning {
    handle: TargetHandle,
    tree: Tree,
    input: Option<Input>,
    pump: Pump,
    stage: Stage,
    detachment: Detachment,
}

impl Running for LocalRunning {
    fn handle(&self) -> &TargetHandle {
        &self.handle
    }

    fn detachment(&self) -> Detachment {
        self.detachment.clone()
    }

    fn sources(&self) -> Sources<'_> {
        match self.stage {
            Stage::Accepted | Stage::Alive => {
                Sources { list: vec![source(self.tree.leader())], poll_within: None }
            }
            Stage::Exited => Sources { list: Vec::new(), poll_within: Some(LOOK_EVERY) },
            Stage::Empty => Sources::default(),
        }
    }

    fn poll(&mut self, _ready: Ready) -> Option<RunEvent> {
        match self.stage {
            Stage::Accepted => {
                self.stage = Stage::Alive;
                Some(RunEvent::Started)
            }
            Stage::Alive => {
                let exit = self.exit()?;
                self.stage = Stage::Exited;
                Some(RunEvent::Exited { exit, usage: self.usage().ok() })
            }
            // Those outside are looked for by their mark when none is left inside.
            Stage::Exited if self.tree.inside().is_empty() && self.tree.members().is_empty() => {
                self.stage = Stage::Empty;
                Some(RunEvent::Emptied)
            }
            Stage::Exited | Stage::Empty => None,
        }
    }

    fn terminate(&mut self) {
        self.tree.terminate();
    }

    fn kill(&mut self, within: Duration) -> Vec<ProcessIdentity> {
        self.tree.kill(within)
    }

    fn members(&mut self) -> Vec<ProcessIdentity> {
        self.tree.members()
    }

    /// Windows ends no process for lack of memory.
    fn suspicion(&self) -> Option<String> {
        None
    }

    fn drain(&mut self) {
        self.pump.drain();
    }

    fn check_input(&mut self) {
        if let Some(input) = &mut self.input {
            input.check();
        }
    }
}

impl Drop for LocalRunning {
    fn drop(&mut self) {
        // What is left after the exit was reported has been left on purpose, and may live. Before that, closing the
        // job ends the tree, as our death would.
        if matches!(self.stage, Stage::Exited | Stage::Empty) {
            self.tree.release();
        }
    }
}

impl LocalRunning {
    /// How the main process ended; nothing while it runs.
    fn exit(&self) -> Option<Exit> {
        let leader = self.tree.leader();
        if !identity::has_ended(leader, Some(Duration::ZERO)).unwrap_or(false) {
            return None;
        }
        exit_code(leader)
    }

    /// What the whole tree used. Where the job keeps no account, what the main process did.
    fn usage(&self) -> io::Result<Usage> {
        let leader = self.tree.leader();
        let times = identity::times(leader)?;
        let mut memory = PROCESS_MEMORY_COUNTERS::default();
        let size = size_of_val(&memory) as u32;
        // SAFETY: the handle is ours, and the pointer is to as many bytes as are said.
        call::done(unsafe { K32GetProcessMemoryInfo(leader.as_raw_handle(), &raw mut memory, size) })?;
        let account = self.tree.job().account().unwrap_or_default();
        let peak = account.peak_memory.max(memory.PeakWorkingSetSize as u64);
        // No process runs without memory: a system that says so has forgotten.
        if peak == 0 {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(Usage {
            user_ms: millis(account.user.max(times.user)),
            system_ms: millis(account.system.max(times.system)),
            peak_memory_bytes: peak,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::{EXIT_KILLED, LETS_GO};
    use super::super::tree::{self, BETWEEN_LOOKS};
    use super::super::{clock, surroundings};
    use super::*;
    use hearback_core::port::executor::BOUND_TO_CALLER;
    use hearback_core::port::process::{
        Presence, ProcessControl, SupervisorReply, SupervisorRequest, SweepReport,
    };
    use hearback_core::port::surroundings::{Happened, SurroundRequest, Surroundings, next_event};
    use hearback_core::testing::{sample, suite};
    use hearback_core::{CommandLine, JobId, OsText, Output};
    use windows_sys::Win32::System::JobObjects::JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;

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
        std::env::var_os(Names::HEARBACK.job).is_some()
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
        // It holds the pipe by its errors, and prints nothing, so that it does not notice when the pipe has no reader.
        let silent = std::process::Stdio::null();
        std::process::Command::new(argv.next().unwrap()).args(argv).stdout(silent).spawn().unwrap();
    }

    #[test]
    fn owner_of_a_sleeper() {
        if !is_target() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut target = run(&helper("sleeper"), dir.path());
        target.next(None);
    }

    #[test]
    fn knows_that_it_is_in_a_job() {
        if !is_target() {
            return;
        }
        assert_eq!(detach::detachment().survives, ["process_group", BOUND_TO_CALLER]);
    }

    /// An id that no other test has: processes that carry its mark may be ended.
    fn id(dir: &Path) -> JobId {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(dir, &mut hasher);
        JobId::mint(1_763_000_000_000, std::hash::Hasher::finish(&hasher))
    }

    /// A target and what surrounds it.
    struct Target {
        running: Box<dyn Running>,
        around: Box<dyn Surroundings>,
    }

    impl Target {
        fn next(&mut self, deadline: Option<Duration>) -> Happened {
            next_event(&mut *self.around, Some(&mut *self.running), deadline)
        }

        fn drain(&mut self) -> Output {
            self.running.drain();
            self.around.finish_log()
        }

        fn process(&self) -> ProcessIdentity {
            self.running.handle().process().unwrap()
        }
    }

    /// A target that has reported its start.
    fn run(command: &CommandLine, dir: &Path) -> Target {
        let (job, cwd) = (id(dir), text::from_os(dir.as_os_str()));
        let around = surroundings::surround(&SurroundRequest {
            bell: &dir.join("bell"),
            log: &dir.join("log"),
            log_tail: &dir.join("tail"),
            log_cap: None,
        })
        .unwrap();
        let request = StartRequest {
            job: &job,
            withhold: &[],
            command,
            cwd: &cwd,
            answer: None,
            script: None,
            input: None,
            output: &around.log(),
            samples: &dir.join("samples"),
        };
        let mut target = Target { running: start(&Names::HEARBACK, &request).unwrap(), around };
        assert_eq!(target.next(None), Happened::Target(RunEvent::Started));
        target
    }

    fn deadline() -> Option<Duration> {
        Some(clock::awake() + LONG)
    }

    fn code(event: Happened) -> u32 {
        match event {
            Happened::Target(RunEvent::Exited { exit: Exit::Exited { code }, .. }) => code,
            other => panic!("expected an exit, got {other:?}"),
        }
    }

    #[test]
    fn this_machine_passes_the_suite_of_executors() {
        let dir = tempfile::tempdir().unwrap();
        let commands = suite::Commands {
            hello_then_3: cmd("echo hello& exit 3"),
            sleeper: helper("sleeper"),
            sleeper_hears: false,
            missing: CommandLine::Argv(vec!["no such program".into()]),
            cwd: text::from_os(dir.path().as_os_str()),
            no_such_dir: text::from_os(dir.path().join("none").as_os_str()),
        };
        let native = crate::Native::default();
        suite::executor(&native, &native, &commands, dir.path());
        // What comes after it is the head of a test's report, which a sleeper prints.
        assert!(fs_err::read(dir.path().join("log")).unwrap().starts_with(b"hello\r\n"));
    }

    #[test]
    fn codes_keep_all_their_bits_and_targets_carry_the_mark() {
        let dir = tempfile::tempdir().unwrap();
        for (text, expected) in [("exit 0", 0), ("exit 259", 259), ("exit -1", u32::MAX)] {
            let mut target = run(&cmd(text), dir.path());
            assert_eq!(code(target.next(deadline())), expected, "{text}");
            assert_eq!(target.next(deadline()), Happened::Target(RunEvent::Emptied));
            assert_eq!(target.next(Some(clock::awake())), Happened::Deadline);
        }
        let mut target = run(&cmd("echo %HEARBACK_JOB%-%HEARBACK_SUPERVISOR%-"), dir.path());
        code(target.next(deadline()));
        target.drain();
        let printed = fs_err::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(printed.trim_end(), format!("{}-%HEARBACK_SUPERVISOR%-", id(dir.path())));
    }

    #[test]
    fn a_tree_is_ended_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = run(&helper("sleeper"), dir.path());
        assert_eq!(target.next(Some(clock::awake() + Duration::from_millis(20))), Happened::Deadline);
        let deadline_of_the_console = clock::awake() + LONG;
        // The helper that gives it its console is known for what it is once it has begun to run.
        while target.running.members() != [target.process()] {
            assert!(clock::awake() < deadline_of_the_console, "{:?}", target.running.members());
            std::thread::sleep(BETWEEN_LOOKS);
        }
        target.running.terminate();
        assert_eq!(target.running.kill(LONG), []);
        // What the test did not wait for, it may have heard: Ctrl-Break has a code of its own.
        assert_ne!(code(target.next(deadline())), 0);
        assert_eq!(target.next(deadline()), Happened::Target(RunEvent::Emptied));
    }

    #[test]
    fn what_is_left_after_the_exit_can_be_kept_or_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = run(&helper("parent_of_a_sleeper"), dir.path());
        assert_eq!(code(target.next(deadline())), 0);
        let left = target.running.members();
        assert_eq!(left.len(), 1);
        assert_eq!(target.next(Some(clock::awake() + Duration::from_millis(20))), Happened::Deadline);
        let before = clock::awake();
        assert!(target.drain().bytes > 0);
        assert!(clock::awake() - before < LONG, "a drain does not wait for processes that are left");
        drop(target);
        let native = crate::Native::default();
        assert_eq!(native.presence(&left[0]), Presence::Same, "left on purpose");

        let other = ProcessIdentity { started: left[0].started + 1, ..left[0].clone() };
        let stranger = sample::id(2);
        let sweep = |job, who| tree::sweep(&Names::HEARBACK.membership(job), who, LONG, LONG).unwrap();
        assert_eq!(sweep(&stranger, Some(&other)), SweepReport::default(), "another process is not touched");
        assert_eq!(native.presence(&left[0]), Presence::Same);
        let mine = id(dir.path());
        assert_eq!(
            sweep(&mine, None),
            SweepReport { ended: 1, ..Default::default() },
            "it is known by its mark, and none can be terminated"
        );
        assert_eq!(sweep(&mine, Some(&left[0])), SweepReport::default());
    }

    #[test]
    fn a_target_does_not_outlive_who_lets_go_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = run(&helper("sleeper"), dir.path());
        let process = target.process();
        drop(target);
        let deadline = clock::awake() + LONG;
        while crate::Native::default().presence(&process) != Presence::Gone {
            assert!(clock::awake() < deadline, "the job was closed and its process lives");
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    #[test]
    fn a_target_ends_with_its_supervisor() {
        let dir = tempfile::tempdir().unwrap();
        let mut outer = run(&helper("owner_of_a_sleeper"), dir.path());
        let deadline = clock::awake() + LONG;
        while outer.running.members().len() < 2 {
            assert_eq!(outer.next(Some(clock::awake() + BETWEEN_LOOKS)), Happened::Deadline);
            assert!(clock::awake() < deadline, "there is no sleeper");
        }
        let owner = outer.process();
        tree::end_by_force(&owner).unwrap();
        assert_eq!(code(outer.next(Some(deadline))), EXIT_KILLED);
        assert_eq!(
            outer.next(Some(deadline)),
            Happened::Target(RunEvent::Emptied),
            "only its own Job Object ended the sleeper"
        );
    }

    #[test]
    fn what_a_job_survives_depends_on_where_its_supervisor_is() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = run(&helper("knows_that_it_is_in_a_job"), dir.path());
        assert_eq!(code(target.next(deadline())), 0);
    }

    /// What `spawn_supervisor` starts runs the tests whose names have its command in them, and so this one: it tells
    /// how far it is detached.
    #[test]
    #[expect(non_snake_case, reason = "the name of the command")]
    fn becomes__supervise() {
        if std::env::var_os(Names::HEARBACK.supervisor).is_some()
            && let Some(told) = std::env::var_os("TOLD")
        {
            fs_err::write(told, detach::detachment().survives.join(",")).unwrap();
        }
    }

    #[test]
    fn launcher() {
        let Some(told) = std::env::var_os("TOLD").filter(|_| is_target()) else { return };
        let request = SupervisorRequest {
            job: sample::id(1),
            program: std::env::current_exe().unwrap(),
            home: Path::new(&told).parent().unwrap().to_owned(),
            env: vec![("TOLD".into(), Some(told))],
        };
        let mut link = detach::spawn_supervisor(&Names::HEARBACK, &request).unwrap();
        assert_eq!(link.hear(LONG), SupervisorReply::Gone);
    }

    /// What a supervisor survives whose launcher is in a Job Object with these limits.
    fn survives_launched_from(limits: u32) -> String {
        let dir = tempfile::tempdir().unwrap();
        let told = dir.path().join("told");
        let CommandLine::Argv(argv) = helper("launcher") else { unreachable!() };
        let argv: Vec<_> = argv.iter().map(text::to_os).collect();
        let environment = environment::block([
            (Names::HEARBACK.job.as_ref(), Some(id(dir.path()).as_str().as_ref())),
            ("TOLD".as_ref(), Some(told.as_os_str())),
        ])
        .unwrap();
        let job = Job::new().unwrap();
        job.limit(limits).unwrap();
        let creation = Creation {
            program: Path::new(&argv[0]),
            line: &command_line::command_line(&argv[0], &argv[1..]).unwrap(),
            environment: &environment,
            cwd: dir.path(),
            streams: Streams { input: detach::null().unwrap(), output: detach::null().unwrap(), error: None },
            job: Some(&job),
            terminal: None,
        };
        let created = creation.create(CREATE_NO_WINDOW).unwrap();
        assert!(identity::has_ended(&created.process, Some(LONG)).unwrap());
        let deadline = clock::awake() + LONG;
        while !told.exists() || fs_err::read(&told).unwrap().is_empty() {
            assert!(clock::awake() < deadline, "nothing was written");
            std::thread::sleep(BETWEEN_LOOKS);
        }
        fs_err::read_to_string(told).unwrap()
    }

    #[test]
    fn a_supervisor_leaves_the_job_of_its_launcher_where_it_may_and_says_so_where_not() {
        assert_eq!(survives_launched_from(LETS_GO), "parent,terminal,process_group");
        let refused = survives_launched_from(JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE);
        assert_eq!(refused, format!("process_group,{BOUND_TO_CALLER}"));
    }
}
