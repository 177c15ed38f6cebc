//! The machine that this process runs on: every port, handed to `sys`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hearback_core::port::clock::Clock;
use hearback_core::port::executor::{Executor, Running, Script, StartRequest};
use hearback_core::port::process::{
    BoundedRun, BoundedRunReport, DetachedRequest, InputPipe, Presence, ProcessControl, ProcessIdentity,
    SupervisorLink, SupervisorRequest, SweepReport,
};
use hearback_core::port::surroundings::{Surround, SurroundRequest, Surroundings};
use hearback_core::{BootId, Exit, Here, JobId, OsText, StartError, TargetHandle, Timestamp, TreeUsage};
use tracing::{debug, info, warn};

use crate::mark::Names;
use crate::sys;

/// How a file gets a name that must not replace another file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Naming {
    /// As the file system does it best, with the fall-back where it must.
    #[default]
    Best,
    /// By a second link, as on a file system that cannot rename without replacing. For tests of the fall-back.
    #[cfg(test)]
    Link,
}

/// The operating system underneath.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native {
    pub(crate) naming: Naming,
    names: Names,
}

impl Native {
    /// The operating system, with names of the caller's own for marks and for the command of a supervisor.
    pub fn with_names(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// Lets this process have as many open files as the system allows it. Programs that it starts through this crate
    /// get the limit from before.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn raise_descriptor_limit() -> io::Result<()> {
        sys::descriptors::raise_limit()
    }

    /// Finds a program on the PATH.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        crate::program::find(name.as_ref(), Path::new("/")).ok()
    }

    /// Sends bytes to a socket of this machine that has a path, and waits until the other side has hung up, each step
    /// within a time.
    ///
    /// # Errors
    ///
    /// When no process listens there, it does not take everything in time, or the system has no such sockets.
    pub fn send_to_socket(&self, path: &Path, bytes: &[u8], within: Duration) -> io::Result<()> {
        sys::local_socket::send(path, bytes, within)
    }

    /// Runs a program in front of us, with our streams, until it ends. Its processes carry `mark`, as in a
    /// bounded run.
    /// What a person breaks at the terminal is for it, and not for us.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    #[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
    pub fn run_in_front(
        &self,
        argv: &[OsString],
        env: &[(OsString, Option<OsString>)],
        mark: &JobId,
    ) -> io::Result<Exit> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = std::process::Command::new(sys::bounded_run::named_in_front(program));
        command.args(arguments).env(self.names.bounded_run, mark.as_str());
        for (name, value) in env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        sys::bounded_run::run_in_front(command)
    }

    /// Lets this process hear how its children end, although its parent ignores SIGCHLD and it inherited that. For a
    /// program, not for a library: it changes the whole process.
    pub fn hear_of_children(&self) {
        sys::detach::hear_of_children();
    }

    /// Lets a write beyond a file-size limit fail in this process, so that it can be reported, instead of ending it.
    pub fn survive_size_limits(&self) {
        sys::detach::survive_size_limits();
    }
}

impl Clock for Native {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that all other code takes")]
    fn wall(&self) -> Timestamp {
        let now = std::time::SystemTime::now();
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(match now.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        })
    }

    fn awake(&self) -> Duration {
        sys::clock::awake()
    }

    fn since_boot(&self) -> Duration {
        sys::clock::since_boot()
    }

    fn boot(&self) -> Option<BootId> {
        sys::clock::boot()
    }
}

impl ProcessControl for Native {
    fn here(&self) -> Here {
        Here { boot: sys::identity::boot(), machine: sys::identity::machine() }
    }

    fn path_text(&self, path: &Path) -> OsText {
        sys::text::from_os(path.as_os_str())
    }

    fn me(&self) -> io::Result<ProcessIdentity> {
        self.identify(std::process::id())?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn identify(&self, pid: u32) -> io::Result<Option<ProcessIdentity>> {
        sys::identity::identify(pid)
    }

    fn presence(&self, who: &ProcessIdentity) -> Presence {
        let differs =
            |ours: &Option<BootId>| matches!((&who.boot, ours), (Some(then), Some(now)) if then != now);
        if differs(&sys::identity::boot()) {
            return Presence::Gone;
        }
        // Seen from another space of pids, the number names another process.
        if who.scope != sys::identity::scope() {
            return Presence::Unproved;
        }
        match sys::identity::identify(who.pid) {
            Ok(Some(found)) if found.started == who.started => Presence::Same,
            Ok(_) => Presence::Gone,
            Err(_) => Presence::Unproved,
        }
    }

    fn lives_on(&self, who: &ProcessIdentity) -> bool {
        self.presence(who) == Presence::Same && sys::tree::lives_on(who)
    }

    fn await_end(&self, who: &ProcessIdentity, within: Duration) -> bool {
        let deadline = self.awake().saturating_add(within);
        loop {
            let left = deadline.saturating_sub(self.awake());
            match self.presence(who) {
                Presence::Gone => return true,
                _ if left.is_zero() => return false,
                Presence::Same => sys::tree::await_end(who, left),
                Presence::Unproved => std::thread::sleep(left),
            }
        }
    }

    fn is_stopped(&self, who: &ProcessIdentity) -> bool {
        self.presence(who) == Presence::Same && sys::identity::is_stopped(who.pid)
    }

    fn usage(&self, who: &ProcessIdentity) -> Option<TreeUsage> {
        if self.presence(who) != Presence::Same {
            return None;
        }
        sys::usage::of_tree(who.pid)
    }

    fn spawn_supervisor(&self, request: &SupervisorRequest) -> io::Result<Box<dyn SupervisorLink>> {
        let link = sys::detach::spawn_supervisor(&self.names, request)?;
        debug!(job = %request.job, "supervisor spawned");
        Ok(link)
    }

    fn spawn_detached(&self, request: &DetachedRequest) -> io::Result<()> {
        sys::detach::spawn_detached(&self.names, request)
    }

    fn run_bounded(&self, bounded_run: &BoundedRun) -> Result<BoundedRunReport, StartError> {
        let ran = sys::bounded_run::run(&self.names, bounded_run);
        match &ran {
            Ok(BoundedRunReport { exit: Some(exit), .. }) => {
                debug!(mark = %bounded_run.mark, %exit, "program ended")
            }
            Ok(_) => {
                info!(mark = %bounded_run.mark, within = ?bounded_run.within, "program out of time, killed")
            }
            // Its message may quote the command.
            Err(error) => debug!(mark = %bounded_run.mark, kind = ?error.kind, "program not started"),
        }
        ran
    }

    fn ring(&self, bell: &Path) -> io::Result<bool> {
        sys::bell::ring(bell)
    }

    fn open_input(&self, input: &Path) -> io::Result<Box<dyn InputPipe>> {
        sys::input::open_input(input)
    }

    fn end_by_force(&self, who: &ProcessIdentity) -> io::Result<()> {
        match self.presence(who) {
            Presence::Same => sys::tree::end_by_force(who),
            Presence::Gone | Presence::Unproved => Ok(()),
        }
    }

    fn sweep_marked(&self, mark: &JobId, grace: Duration, within: Duration) -> io::Result<SweepReport> {
        swept(mark, sys::tree::sweep(&self.names.membership(mark), None, grace, within))
    }

    fn end_unbegun(&self) -> io::Result<usize> {
        sys::tree::end_unbegun(&self.names)
    }
}

impl Surround for Native {
    fn surround(&self, request: &SurroundRequest<'_>) -> io::Result<Box<dyn Surroundings>> {
        sys::surroundings::surround(request)
    }
}

/// The executor `local`. It cannot attach: a target whose supervisor is gone has ended, or is about to.
impl Executor for Native {
    fn script(&self, text: &str, program: Option<&str>, cwd: &OsText) -> Result<Script, StartError> {
        sys::shell::script(text, program, Path::new(&sys::text::to_os(cwd)))
    }

    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
        sys::executor::start(&self.names, request)
    }

    /// Finds the job's processes by the mark in their environment, and the target's group if the identity of its leader
    /// still matches. A process that cannot be proved to belong to the job is not signalled.
    fn sweep(&self, job: &JobId, handle: Option<&TargetHandle>, within: Duration) -> io::Result<SweepReport> {
        let target = handle.and_then(TargetHandle::process);
        swept(job, sys::tree::sweep(&self.names.membership(job), target.as_ref(), Duration::ZERO, within))
    }
}

/// Says what a sweep came to.
fn swept(mark: &JobId, report: io::Result<SweepReport>) -> io::Result<SweepReport> {
    match &report {
        Ok(report) if report.survivors.is_empty() => debug!(%mark, ended = report.ended, "processes swept"),
        Ok(report) => {
            let survivors: Vec<_> = report.survivors.iter().map(|who| who.pid).collect();
            warn!(%mark, ended = report.ended, ?survivors, "processes survived a sweep");
        }
        Err(error) => warn!(%mark, %error, "processes cannot be looked for"),
    }
    report
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use hearback_core::testing::suite;

    #[test]
    fn native_passes_the_suites_of_its_ports() {
        suite::clock(&Native::default());
        suite::process(&Native::default());
        let dir = tempfile::tempdir().unwrap();
        suite::disk(&Native::default(), &dir.path().join("new").join("home"));
    }

    /// How long anything may take here.
    const LONG: Duration = Duration::from_secs(60);

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let deadline = sys::clock::awake() + LONG;
        while !done() {
            assert!(sys::clock::awake() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// This program, as one of the two below. They are tests like others where the folder that they run in is not
    /// made for them.
    fn played(part: &str) -> [OsString; 3] {
        let me = std::env::current_exe().unwrap();
        [me.into(), "--exact".into(), format!("native::tests::{part}").into()]
    }

    /// Starts a detached program, and stays.
    #[test]
    fn caller() {
        if !Path::new("stage").exists() {
            return;
        }
        let [program, args @ ..] = played("detached");
        let (program, home) = (program.into(), std::env::current_dir().unwrap());
        let request = DetachedRequest { program, args: args.into(), home, env: Vec::new() };
        Native::default().spawn_detached(&request).unwrap();
        std::thread::sleep(LONG);
    }

    /// Writes down its pid and whether it has a mark, and stays until it may go.
    #[test]
    fn detached() {
        if !Path::new("stage").exists() {
            return;
        }
        let marks =
            [Names::HEARBACK.job, Names::HEARBACK.bounded_run].map(|name| std::env::var_os(name).is_some());
        let me = std::process::id();
        fs_err::write("pid.new", format!("{me} {} {}", marks[0], marks[1])).unwrap();
        fs_err::rename("pid.new", "pid").unwrap();
        until("it is not released", || Path::new("go").exists());
    }

    /// The program that was detached on that stage.
    fn detached_on(stage: &Path) -> ProcessIdentity {
        until("nothing was detached", || stage.join("pid").exists());
        let written = fs_err::read_to_string(stage.join("pid")).unwrap();
        let pid = written.strip_suffix(" false false").unwrap_or_else(|| panic!("it has a mark: {written}"));
        Native::default().identify(pid.parse().unwrap()).unwrap().expect("it waits for us")
    }

    fn let_go(stage: &Path, who: &ProcessIdentity) {
        let native = Native::default();
        assert_eq!(native.presence(who), Presence::Same, "it lives on");
        fs_err::write(stage.join("go"), "").unwrap();
        until("it does not go", || native.presence(who) == Presence::Gone);
    }

    fn stage() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("stage"), "").unwrap();
        dir
    }

    /// A mark that no other test has at the same time, in this process or in another.
    fn own_id() -> JobId {
        static MINTED: AtomicU64 = AtomicU64::new(0);
        let bits = u64::from(std::process::id()) * 4 + MINTED.fetch_add(1, Ordering::Relaxed);
        JobId::mint(Native::default().wall().as_millis().unsigned_abs(), bits)
    }

    #[test]
    fn a_detached_program_outlives_the_job_that_started_it() {
        let (native, stage, job) = (Native::default(), stage(), own_id());
        let argv = played("caller").iter().map(|word| sys::text::from_os(word)).collect();
        let path = |name: &str| stage.path().join(name);
        let surroundings = native.surround(&SurroundRequest {
            bell: &path("bell"),
            log: &path("log"),
            log_tail: &path("log.tail"),
            log_cap: None,
        });
        let mut running = native
            .start(&StartRequest {
                job: &job,
                command: &hearback_core::CommandLine::Argv(argv),
                script: None,
                cwd: &sys::text::from_os(stage.path().as_os_str()),
                withhold: &[],
                answer: None,
                input: None,
                output: &surroundings.unwrap().log(),
                samples: &path("samples"),
            })
            .unwrap();
        let detached = detached_on(stage.path());
        assert!(!running.members().contains(&detached), "it does not belong to the tree");
        assert_eq!(running.kill(LONG), []);
        assert_eq!(running.members(), []);
        assert_eq!(native.sweep(&job, Some(running.handle()), LONG).unwrap().survivors, []);
        let_go(stage.path(), &detached);
    }

    #[test]
    fn a_detached_program_outlives_the_bounded_run_that_started_it() {
        let (native, stage, mark) = (Native::default(), stage(), own_id());
        let bounded_run = BoundedRun {
            argv: played("caller").iter().map(|word| sys::text::from_os(word)).collect(),
            cwd: Some(stage.path().to_owned()),
            env: Vec::new(),
            stdin: Vec::new(),
            speaks_first: false,
            within: LONG,
            output_max: 0,
            mark: mark.clone(),
            unless: Vec::new(),
        };
        let sent = std::thread::spawn(move || native.run_bounded(&bounded_run));
        let detached = detached_on(stage.path());
        let swept = native.sweep_marked(&mark, Duration::ZERO, LONG).unwrap();
        assert_eq!((swept.ended, swept.survivors), (1, Vec::new()), "the caller, and no other process");
        assert_ne!(sent.join().unwrap().unwrap().exit, Some(Exit::Exited { code: 0 }));
        let_go(stage.path(), &detached);
    }

    #[test]
    fn the_fall_back_for_naming_keeps_the_same_promises() {
        let dir = tempfile::tempdir().unwrap();
        suite::disk(&Native { naming: Naming::Link, ..Native::default() }, &dir.path().join("home"));
    }
}
