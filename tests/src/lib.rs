//! What the end-to-end tests stand on: a private world for hearback to run in, and ways to wait and to look.
//!
//! The programs that the tests run as jobs are in `src/bin`; what hearback promises is in `tests`.
#![allow(
    clippy::disallowed_methods,
    reason = "the harness starts ordinary programs and waits by the real clock"
)]

pub mod python;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;

mod outbox;

pub use outbox::{Call, Outbox};

/// Variables through which the tests' own surroundings could choose a session or change what is printed.
const STRAY_VARIABLES: [&str; 9] = [
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "QWEN_CODE_SESSION_ID",
    "GEMINI_SESSION_ID",
    "AGENT_SESSION_ID",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    // Where it is set, even a dumb terminal is taken to show colours.
    "CI",
];

/// From the list of errors of Windows; no other system has one of this number.
const ERROR_INTERNAL_ERROR: i32 = 1359;
const RUN_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// A private place with its own `HEARBACK_HOME`, removed at the end together with every process started in
/// it.
///
/// On Linux, dropping it kills whatever still carries this world's home, or the mark of one of its jobs, in
/// its environment; on Windows the supervisors that its records name, and with them their trees. Elsewhere a
/// test has to end its own jobs.
#[derive(Debug)]
pub struct World {
    home: PathBuf,
    scratch: PathBuf,
    /// Removed after the processes have been ended.
    _folder: TempDir,
}

impl World {
    /// Makes the place; its home does not exist until hearback makes it.
    #[expect(clippy::new_without_default, reason = "it makes folders, which a default should not")]
    pub fn new() -> World {
        let mut builder = tempfile::Builder::new();
        builder.prefix("hearback-test-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir().expect("the temporary folder can be written");
        // Canonical, so that a path printed by a job can be compared with one of ours (macOS: /var is a
        // link).
        let root =
            if cfg!(windows) { folder.path().to_owned() } else { fs::canonicalize(folder.path()).unwrap() };
        let scratch = root.join("scratch");
        fs::create_dir(&scratch).unwrap();
        World { home: root.join("home"), scratch, _folder: folder }
    }

    /// What `HEARBACK_HOME` is set to.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A path for a test's own file; nothing is made there.
    pub fn scratch(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.join(name)
    }

    /// hearback with these arguments, in this world and without a session.
    pub fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(bin("hearback"));
        self.settle(&mut command);
        command.args(args);
        command
    }

    /// Puts another program's command into this world, as `command` does it for hearback.
    pub fn settle(&self, command: &mut Command) {
        let ours = env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.to_string_lossy().starts_with("HEARBACK_"));
        for name in ours.chain(STRAY_VARIABLES.map(OsString::from)) {
            command.env_remove(name);
        }
        command.env("HEARBACK_HOME", &self.home).stdin(Stdio::null());
    }

    /// Runs hearback until it has ended and its output is closed.
    #[track_caller]
    pub fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        run(self.command(args))
    }

    /// Runs hearback, which has to succeed and to print one JSON value. `--json` is not added.
    #[track_caller]
    pub fn json(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
        let stdout = self.run(args).ok();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{stdout}"))
    }

    /// Runs `launch` with these arguments and returns the job's id.
    #[track_caller]
    pub fn launch(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.run([OsString::from("launch")].into_iter().chain(args)).ok()
    }

    /// What `show JOB --json` says.
    #[track_caller]
    pub fn show(&self, id: &str) -> Value {
        self.json(["show", id, "--json"])
    }

    /// The job's folder, wherever it is now.
    #[track_caller]
    pub fn job_dir(&self, id: &str) -> PathBuf {
        let open = self.home.join("jobs").join(id);
        let settled = self.home.join("history").join(id.get(..5).unwrap_or(id)).join(id);
        // Looked up twice: the job may move from one to the other between two looks.
        let found = [&open, &settled, &open, &settled].into_iter().find(|dir| dir.is_dir());
        found.unwrap_or_else(|| panic!("no folder of job `{id}` in `{}`", self.home.display())).clone()
    }

    /// Which process supervises an open job, or did.
    #[track_caller]
    pub fn supervisor(&self, id: &str) -> u32 {
        let begin = fs::read(self.job_dir(id).join("begin.json")).unwrap();
        let begin: Value = serde_json::from_slice(&begin).unwrap();
        let pid = begin["by"]["supervisor"]["pid"].as_u64().and_then(|pid| pid.try_into().ok());
        pid.unwrap_or_else(|| panic!("nobody supervises job `{id}`: {begin}"))
    }

    /// Ends the supervisor of a job at once, if it is still there.
    #[track_caller]
    pub fn end_supervisor(&self, id: &str) {
        #[cfg(unix)]
        let _ = kill_if_there(self.supervisor(id));
        // Pids are soon somebody else's there.
        #[cfg(windows)]
        windows::end_supervisor(&self.job_dir(id));
    }

    /// Waits until an open job has ended and its supervisor is gone, so that nobody else touches its records.
    #[track_caller]
    pub fn leave_alone(&self, id: &str) {
        let supervisor = self.supervisor(id);
        self.run(["wait", id]);
        eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
    }
}

impl World {
    /// Waits until nobody works in this world any more: a supervisor whose launcher was killed may still be finding
    /// that out.
    #[track_caller]
    pub fn settle_down(&self) {
        eventually("everybody has left", || (!self.is_busy()).then_some(()));
    }

    #[cfg(target_os = "linux")]
    fn is_busy(&self) -> bool {
        !carrying(&format!("HEARBACK_HOME={}", self.home.display())).is_empty()
    }

    /// Only supervisors are known by their records; whoever else is at work here is a child of the test.
    #[cfg(windows)]
    fn is_busy(&self) -> bool {
        use hearback_core::port::process::{Presence, ProcessControl};
        let native = hearback_platform::Native::default();
        windows::supervisors(&self.home).iter().any(|who| native.presence(who) == Presence::Same)
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn is_busy(&self) -> bool {
        false
    }
}

impl Drop for World {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        linux::end_processes_of(&self.home);
        #[cfg(windows)]
        windows::end_processes_of(&self.home);
    }
}

/// What a program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// What it printed as diagnostics.
    pub stderr: String,
}

impl Ran {
    /// Asserts that it succeeded, and returns its output without the surrounding white space.
    #[track_caller]
    pub fn ok(&self) -> String {
        assert_eq!(self.code, Some(0), "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self.stdout.trim().to_owned()
    }
}

/// Runs a program until it has ended and its output is closed, at most a minute.
///
/// # Panics
///
/// If it cannot be started, or if somebody still holds its output after that minute.
#[track_caller]
pub fn run(mut command: Command) -> Ran {
    let shown = format!("{command:?}");
    let child = spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut child = KillOnDrop(child.unwrap_or_else(|error| panic!("cannot start {shown}: {error}")));
    let stdout = collect(child.0.stdout.take().expect("stdout is piped"));
    let stderr = collect(child.0.stderr.take().expect("stderr is piped"));
    let deadline = Instant::now() + RUN_MAX;
    let text = |end: Receiver<Vec<u8>>| {
        let bytes = end.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let (Some(stdout), Some(stderr)) = (text(stdout), text(stderr)) else {
        panic!("the output of {shown} was not closed within {RUN_MAX:?}")
    };
    let code = child.0.wait().expect("nobody else waits for this child").code();
    Ran { code, stdout, stderr }
}

/// Starts a program. Wine loses one in some thousands before it is there, and calls that an internal error; hearback
/// tries again as well when it starts anybody.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut tried = 1;
    loop {
        match command.spawn() {
            Err(error) if error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) && tried < 5 => {
                eprintln!("started again: {error}");
                tried += 1;
            }
            other => return other,
        }
    }
}

// Both streams are read at once, or a program that fills one of them would block for ever.
fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error still helps to understand a failure.
        let _ = stream.read_to_end(&mut bytes);
        sender.send(bytes)
    });
    receiver
}

/// A child that is killed and reaped when the test is done with it, however the test ends.
#[derive(Debug)]
pub struct KillOnDrop(pub Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // As long as it is not reaped its pid cannot be reused, so this reaches nobody else.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path of hearback, or of a fixture program, next to the running test.
#[track_caller]
pub fn bin(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    // Tests are in `deps`, the programs one folder up.
    let folder = test.parent().and_then(Path::parent).expect("a test is in the target folder");
    let path = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "build the programs first: cargo build --workspace --bins");
    path
}

/// Looks until there is something to return, every 5 ms for at most 20 s; under Wine, for a minute.
///
/// # Panics
///
/// With `what`, when the time is over.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let most = Duration::from_secs(scaled(20, 60));
    let deadline = Instant::now() + most;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {most:?}: {what}");
        thread::sleep(POLL);
    }
}

/// The complete lines of a file; none if there is no file.
#[track_caller]
pub fn lines(path: impl AsRef<Path>) -> Vec<String> {
    match fs::read(path.as_ref()) {
        // What comes after the last newline is still being written.
        Ok(bytes) => bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_suffix(b"\n"))
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// Appends one line to a witness file, which many processes may share.
///
/// # Panics
///
/// If the line cannot be written: a witness that says nothing would prove the wrong thing.
pub fn witness(path: impl AsRef<Path>, line: impl Display) {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path.as_ref()).unwrap();
    // One write, so that lines of different processes never mix.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Whether a process runs or could run: a zombie does not count.
pub fn alive(pid: u32) -> bool {
    #[cfg(target_os = "linux")]
    return linux::state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X' | 'x'));
    #[cfg(all(unix, not(target_os = "linux")))]
    return {
        use nix::{errno::Errno, sys::signal::kill, unistd::Pid};
        i32::try_from(pid)
            .is_ok_and(|pid| matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM)))
    };
    #[cfg(windows)]
    return {
        use hearback_core::port::process::ProcessControl;
        hearback_platform::Native::default().identify(pid).is_ok_and(|found| found.is_some())
    };
}

/// Ends a process at once and without its knowing, whoever started it.
///
/// # Panics
///
/// If there is none.
#[track_caller]
pub fn kill_hard(pid: u32) {
    kill_if_there(pid).unwrap();
}

/// Does what [`kill_hard`] does. That there is nobody is an error that says little: it may have ended by itself.
///
/// # Errors
///
/// When nobody was ended.
pub fn kill_if_there(pid: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use nix::sys::signal::{Signal, kill};
        let pid = nix::unistd::Pid::from_raw(pid.try_into().map_err(io::Error::other)?);
        Ok(kill(pid, Signal::SIGKILL)?)
    }
    #[cfg(windows)]
    {
        use hearback_core::port::process::ProcessControl;
        let native = hearback_platform::Native::default();
        let who = native.identify(pid)?.ok_or(io::ErrorKind::NotFound)?;
        native.end_by_force(&who)
    }
}

/// Lets everybody write a folder.
#[track_caller]
pub fn open_to_others(folder: &Path) {
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    #[cfg(windows)]
    {
        let mut open = Command::new(if is_real_windows() { "icacls" } else { "start" });
        match is_real_windows() {
            true => open.arg(folder).args(["/grant", "*S-1-1-0:(OI)(CI)M"]),
            // Wine makes the modes of its host into access rights.
            false => open.args(["/wait", "/unix", "/bin/chmod", "0777", &unix_path(folder)]),
        };
        run(open);
    }
}

/// A path as the host of Wine has it.
#[cfg(windows)]
#[track_caller]
pub fn unix_path(path: &Path) -> String {
    let mut command = Command::new("winepath");
    command.arg("-u").arg(path);
    run(command).ok()
}

/// What is seen of a process that was asked to end, and had nothing against it.
pub fn asked() -> Value {
    match () {
        () if cfg!(unix) => serde_json::json!({"kind": "signaled", "signal": 15, "core": false}),
        // How a program ends by Ctrl-Break.
        () if is_real_windows() => serde_json::json!({"kind": "exited", "code": 0xc000_013a_u32}),
        // Wine passes no such request on, so it was forced when the grace was over.
        () => forced(),
    }
}

/// What is seen of a process that was forced to end.
pub fn forced() -> Value {
    match () {
        () if cfg!(unix) => serde_json::json!({"kind": "signaled", "signal": 9, "core": false}),
        () => serde_json::json!({"kind": "exited", "code": 1}),
    }
}

/// Whether this is a Windows program under Wine, which does less well than Windows.
pub fn is_wine() -> bool {
    cfg!(windows) && !is_real_windows()
}

/// Whether this is Windows itself, and not Wine: some things only the one can show.
pub fn is_real_windows() -> bool {
    #[cfg(windows)]
    return !hearback_platform::is_wine();
    #[cfg(not(windows))]
    return false;
}

/// A number for where a process costs little, and one for Wine, where it costs a fifth of a second.
pub fn scaled<T>(usual: T, under_wine: T) -> T {
    if is_wine() { under_wine } else { usual }
}

/// Chance that can be had again.
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// That of `HEARBACK_TEST_SEED`, else a new one. Prints how to have it again.
    pub fn new(campaign: &str) -> Chance {
        let seed = env::var("HEARBACK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || std::time::UNIX_EPOCH.elapsed().expect("it is later than 1970").as_nanos() as u64;
        let seed = seed.unwrap_or_else(now);
        eprintln!("{campaign}: HEARBACK_TEST_SEED={seed}");
        Chance::from_seed(seed)
    }

    /// The same for the same number.
    pub fn from_seed(seed: u64) -> Chance {
        // Nothing comes of zero.
        Chance(seed | 1)
    }

    /// A number that is less than this.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// From the documentation of `CreateProcess`: no console, a group of its own, out of the Job Object.
#[cfg(windows)]
pub const DETACHED_PROCESS: u32 = 0x8;
#[cfg(windows)]
#[expect(missing_docs, reason = "see above")]
pub const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
#[cfg(windows)]
#[expect(missing_docs, reason = "see above")]
pub const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;

/// Every file and folder below a folder, as it was at one moment: kind, permissions, times and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, (String, Vec<u8>)>);

impl Snapshot {
    /// Looks at everything below `folder`; nothing is followed and nothing but regular files is opened.
    ///
    /// A job that is just ending moves and removes files under the walk. What vanished between being listed and
    /// being looked at is somewhere else, so the walk begins again until it has seen one state of the folder.
    #[track_caller]
    pub fn of(folder: impl AsRef<Path>) -> Snapshot {
        let folder = folder.as_ref();
        eventually("the folder holds still for one look", || match Snapshot::look(folder) {
            Ok(snapshot) => Some(snapshot),
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.exists() => None,
            Err(error) => panic!("{error}"),
        })
    }

    fn look(folder: &Path) -> io::Result<Snapshot> {
        let mut seen = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let found = fs::symlink_metadata(&path)?;
                let (kind, bytes) = match found.file_type() {
                    kind if kind.is_dir() => {
                        folders.push(path.clone());
                        ("folder", Vec::new())
                    }
                    kind if kind.is_symlink() => {
                        ("link", fs::read_link(&path)?.into_os_string().into_encoded_bytes())
                    }
                    // Who holds a lock may keep others from reading it, and there is nothing in it.
                    _ if path.extension().is_some_and(|extension| extension == "lock") => {
                        ("lock", Vec::new())
                    }
                    kind if kind.is_file() => ("file", fs::read(&path)?),
                    _ => ("special", Vec::new()),
                };
                let about = format!("{kind} {:?} {:?}", found.permissions(), found.modified().ok());
                seen.insert(path, (about, bytes));
            }
        }
        Ok(Snapshot(seen))
    }

    /// The paths that were added, removed or changed in any way since then.
    #[track_caller]
    pub fn changes(&self, now: &Snapshot) -> Vec<PathBuf> {
        let paths = self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path)));
        paths.filter(|path| self.0.get(*path) != now.0.get(*path)).cloned().collect()
    }

    /// The paths, for what is not about their content.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The files that hold these bytes, or have them in their name.
    pub fn holding(&self, bytes: &[u8]) -> Vec<&Path> {
        let within = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        let found = self
            .0
            .iter()
            .filter(|(path, (_, content))| within(content) || within(path.as_os_str().as_encoded_bytes()));
        found.map(|(path, _)| path.as_path()).collect()
    }
}

/// Runs the body of a test where it may mount what it likes: in a process of its own whose mounts nobody else
/// sees and which are gone with it, however it ends.
///
/// `test` is the name of the calling test, which is run a second time in there. Says so and skips the body
/// where mounting is not permitted.
///
/// # Panics
///
/// If the test fails in there.
#[cfg(target_os = "linux")]
#[track_caller]
pub fn with_private_mounts(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "HEARBACK_TESTS_PRIVATE_MOUNTS";
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let private = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--"]).arg(program).stdin(Stdio::null());
        command
    };
    let permitted = private(Path::new("true")).output();
    if !permitted.is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped `{test}`: no private mounts here (it takes root and unshare)");
        return;
    }
    let mut again = private(&env::current_exe().expect("a test knows its own path"));
    again.args([test, "--exact", "--nocapture"]).env(INSIDE, "yes");
    let ran = run(again);
    assert!(
        ran.code == Some(0) && ran.stdout.contains(" 1 passed"),
        "`{test}` with private mounts:\n{}\n{}",
        ran.stdout,
        ran.stderr
    );
}

/// The processes that have `NAME=value` in their environment; one that has ended has none.
#[cfg(any(target_os = "linux", windows))]
pub fn carrying(entry: &str) -> Vec<u32> {
    #[cfg(target_os = "linux")]
    return linux::carrying(entry);
    #[cfg(windows)]
    return hearback_platform::carrying(entry).expect("processes can be listed");
}

/// When a process was started, in ticks of the system: with this, a pid names one process and no other. Nothing if
/// there is no such process; one that has ended or is about to is none.
#[cfg(any(target_os = "linux", windows))]
pub fn start_ticks(pid: u32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return linux::start_ticks(pid);
    #[cfg(windows)]
    return {
        use hearback_core::port::process::ProcessControl;
        let found = hearback_platform::Native::default().identify(pid);
        found.ok().flatten().map(|who| who.started)
    };
}

/// A terminal with a shell in it, such as a window that a person can close.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Terminal {
    shell: KillOnDrop,
    screen: std::fs::File,
}

#[cfg(target_os = "linux")]
impl Terminal {
    /// Runs a script with `sh` as the leader of a session whose terminal this is. `$1` and so on are `args`,
    /// and `$HEARBACK` is hearback.
    #[track_caller]
    pub fn run(world: &World, script: &str, args: &[&OsStr], variables: &[(&str, &str)]) -> Terminal {
        use nix::fcntl::OFlag;
        use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
        use std::os::unix::fs::OpenOptionsExt;

        // Whoever inherited our end would keep the window open.
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
        let slave = options.open(ptsname_r(&master).unwrap()).unwrap();
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        world.settle(&mut command);
        // It leads no group yet, so it does not fork: its own process becomes the shell.
        command.args(["--ctty", "sh", "-c", script, "sh"]).args(args);
        command.env("HEARBACK", bin("hearback")).env("TERM", "xterm").env_remove("CLICOLOR_FORCE");
        command.envs(variables.iter().copied());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let shell = KillOnDrop(command.spawn().expect("setsid is part of every Linux"));
        Terminal { shell, screen: std::os::fd::OwnedFd::from(master).into() }
    }

    /// Types a line, whether or not anybody has asked for it yet.
    pub fn type_line(&mut self, line: &str) {
        writeln!(self.screen, "{line}").expect("the terminal is open");
    }

    /// Waits until nobody has the terminal open any more, and returns what was printed there.
    #[track_caller]
    pub fn finish(mut self) -> Ran {
        let printed = collect(self.screen).recv_timeout(RUN_MAX).expect("the terminal is let go in time");
        let code = self.shell.0.wait().expect("nobody else waits for this child").code();
        Ran { code, stdout: String::from_utf8_lossy(&printed).into_owned(), stderr: String::new() }
    }

    /// Closes the window: the shell and whatever is in its foreground are told to hang up.
    pub fn close(mut self) {
        drop(self.screen);
        self.shell.0.wait().expect("nobody else waits for this child");
    }
}

/// Something mounted, until the test is done with it. For tests [`with_private_mounts`].
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct Mount(PathBuf);

#[cfg(target_os = "linux")]
impl Mount {
    /// Mounts what `mount ARGS PATH` does, where there is a folder.
    #[track_caller]
    pub fn new(args: &[&str], path: impl Into<PathBuf>) -> Mount {
        let mounted = Mount(path.into());
        mounted.change(args);
        mounted
    }

    /// Takes note that a folder above it was moved, and it with it.
    pub fn moved(&mut self, to: impl Into<PathBuf>) {
        self.0 = to.into();
    }

    /// Changes how it is mounted.
    #[track_caller]
    pub fn change(&self, args: &[&str]) {
        let mut command = Command::new("mount");
        command.args(args).arg(&self.0).stdin(Stdio::null());
        run(command).ok();
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mount {
    fn drop(&mut self) {
        // Whoever is still in there keeps it, and nobody else sees it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[cfg(target_os = "linux")]
mod linux {
    //! What `/proc` tells.

    use std::collections::HashSet;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::{Duration, Instant, POLL, Path, fs, thread};

    /// The letter of a process's state; none if there is no such process.
    pub(super) fn state(pid: u32) -> Option<char> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name before it stands in parentheses and may contain any of them itself.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        stat.get(end + 2).copied().map(char::from)
    }

    pub(super) fn start_ticks(pid: u32) -> Option<u64> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        // proc(5) counts from 1 and two fields lie before the bracket: field n is at n - 3.
        let fields: Vec<_> = stat.get(end + 2..)?.split(|byte| *byte == b' ').collect();
        let number = |n: usize| str::from_utf8(fields.get(n - 3)?).ok()?.parse::<u64>().ok();
        // PF_EXITING: from then on no code of the process runs.
        let dead = matches!(*fields.first()?, b"Z" | b"X" | b"x") || number(9)? & 4 != 0;
        number(22).filter(|_| !dead)
    }

    /// Kills every process that carries this home, or the mark of a job in it, until there is none.
    pub(super) fn end_processes_of(home: &Path) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            let marks = marks_of(home);
            let found: Vec<Pid> = others().filter(|pid| carries(*pid, &marks)).collect();
            if found.is_empty() {
                return;
            }
            for pid in found {
                // Only what was just seen to carry a name that nobody but this world has.
                let _ = kill(pid, Signal::SIGKILL);
            }
            thread::sleep(POLL);
        }
    }

    pub(super) fn carrying(entry: &str) -> Vec<u32> {
        let marks = HashSet::from([entry.as_bytes().to_vec()]);
        others().filter(|pid| carries(*pid, &marks)).map(|pid| pid.as_raw().unsigned_abs()).collect()
    }

    fn others() -> impl Iterator<Item = Pid> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
        pids.filter(|pid| *pid != Pid::this())
    }

    /// The environment entries that only processes of this world have: the home is a fresh random path, and
    /// a job's id is random too.
    fn marks_of(home: &Path) -> HashSet<Vec<u8>> {
        let mut marks = HashSet::from([[b"HEARBACK_HOME=", home.as_os_str().as_encoded_bytes()].concat()]);
        let history = folders_in(&home.join("history"));
        for folder in [home.join("jobs")].iter().chain(&history) {
            for job in folders_in(folder) {
                let id = job.file_name().expect("a listed folder has a name").as_encoded_bytes();
                marks.insert([b"HEARBACK_JOB=", id].concat());
                marks.insert([b"HEARBACK_SUPERVISOR=", id].concat());
            }
        }
        marks
    }

    fn folders_in(folder: &Path) -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    // A zombie has an empty environment, so it is not found again.
    fn carries(pid: Pid, marks: &HashSet<Vec<u8>>) -> bool {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| marks.contains(entry))
    }
}

#[cfg(windows)]
mod windows {
    //! What the records of a world tell about its processes.

    use hearback_core::ProcessIdentity;
    use hearback_core::port::process::ProcessControl;
    use hearback_platform::Native;

    use super::{Path, Value, fs};

    /// Ends every supervisor, and with it its tree, and what was kept of a tree.
    pub(super) fn end_processes_of(home: &Path) {
        for who in supervisors(home).iter().chain(&named(home, "target.json", "/process")) {
            // Only what is still exactly the process that was recorded.
            let _ = Native::default().end_by_force(who);
        }
    }

    pub(super) fn end_supervisor(job: &Path) {
        let who = fact(job, "begin.json", "/by/supervisor").expect("somebody supervises it");
        let _ = Native::default().end_by_force(&who);
    }

    pub(super) fn supervisors(home: &Path) -> Vec<ProcessIdentity> {
        named(home, "begin.json", "/by/supervisor")
    }

    fn named(home: &Path, fact: &str, place: &str) -> Vec<ProcessIdentity> {
        let mut places = folders_in(&home.join("history"));
        places.push(home.join("jobs"));
        let jobs = places.iter().flat_map(|folder| folders_in(folder));
        jobs.filter_map(|job| self::fact(&job, fact, place)).collect()
    }

    /// Who stands at this place of a fact.
    fn fact(job: &Path, fact: &str, place: &str) -> Option<ProcessIdentity> {
        let value: Value = serde_json::from_slice(&fs::read(job.join(fact)).ok()?).ok()?;
        serde_json::from_value(value.pointer(place)?.clone()).ok()
    }

    fn folders_in(folder: &Path) -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
}
