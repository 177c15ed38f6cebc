//! Targets on this machine: started in a session of their own, reaped by their only parent.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hearback_core::port::executor::{ANSWER_VARIABLE, Detachment, RunEvent, Running, StartRequest};
use hearback_core::{Exit, JobId, Output, ProcessIdentity, StartError, StartErrorKind, Usage};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::bell::Bell;
#[cfg(target_os = "linux")]
use super::oom::Counter;
use super::pump::Pump;
use super::signals::{self, SignalWatch};
use super::{clock, identity, text, tree, unit};
use crate::program::{self, Invocation};
use crate::{JOB_MARK, SUPERVISOR_MARK};

/// A machine out of processes may have one again in a moment.
const FORK_TRIES: u32 = 5;
/// Where orphans do not come back to us, a tree that is ending is looked at this often.
#[cfg(not(target_os = "linux"))]
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn start(request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
    let cwd = PathBuf::from(text::to_os(request.cwd));
    program::check_directory(&cwd)?;
    if let Err(error) = nix::unistd::access(&cwd, nix::unistd::AccessFlags::X_OK) {
        let message = format!("cannot enter the working directory `{}`: {}", cwd.display(), error.desc());
        return Err(StartError { kind: StartErrorKind::BadDirectory, message });
    }
    let invocation = program::resolve(request.command, &cwd, request.script)?;
    let prepared = prepare(request).map_err(|error| other("cannot prepare to run", &error))?;
    let Prepared { pump, writer, watch, bell } = prepared;
    #[cfg(target_os = "linux")]
    let oom = Counter::new();
    let pid = spawn(&invocation, &cwd, request, &writer)?;
    // From here on only the target and its children hold the writing end.
    drop(writer);
    let process = identity::identify_child(pid).unwrap_or(ProcessIdentity {
        pid,
        started: 0,
        boot: identity::boot(),
        scope: identity::scope(),
    });
    Ok(Box::new(LocalRunning {
        job: request.job.clone(),
        process,
        #[cfg(target_os = "linux")]
        leader: handle_of(pid),
        #[cfg(target_os = "linux")]
        oom,
        pump,
        watch,
        bell,
        rung: false,
        exit: None,
        stage: Stage::Alive,
        childless: false,
        look: true,
        settled_down: false,
    }))
}

/// A handle on a child that nobody has reaped yet.
#[cfg(target_os = "linux")]
fn handle_of(child: u32) -> Option<std::os::fd::OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(i32::try_from(child).ok()?)?, PidfdFlags::empty()).ok()
}

fn other(what: &str, error: &io::Error) -> StartError {
    StartError { kind: StartErrorKind::Other, message: format!("{what}: {error}") }
}

/// What has to be there before the target is.
struct Prepared {
    pump: Pump,
    writer: io::PipeWriter,
    watch: SignalWatch,
    bell: Bell,
}

fn prepare(request: &StartRequest<'_>) -> io::Result<Prepared> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    let (pump, writer) = Pump::new(request.log, request.log_tail, request.log_cap)?;
    Ok(Prepared { pump, writer, watch: SignalWatch::new()?, bell: Bell::hang(request.bell)? })
}

#[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
fn spawn(
    what: &Invocation,
    cwd: &Path,
    request: &StartRequest<'_>,
    output: &io::PipeWriter,
) -> Result<u32, StartError> {
    let cannot = |error: &io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => StartErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => StartErrorKind::NotExecutable,
            _ if error.raw_os_error() == Some(libc::ENOEXEC) => StartErrorKind::NotExecutable,
            _ => StartErrorKind::Other,
        };
        StartError { kind, message: format!("cannot execute `{}`: {error}", what.program.display()) }
    };
    let stream = || output.try_clone().map(Stdio::from).map_err(|error| cannot(&error));
    let mut command = Command::new(&what.program);
    command.arg0(&what.name).args(&what.arguments).current_dir(cwd);
    command.env(JOB_MARK, request.job.as_str()).env_remove(SUPERVISOR_MARK);
    for name in request.withhold {
        command.env_remove(name);
    }
    if let Some(answer) = request.answer {
        command.env(ANSWER_VARIABLE, answer);
    }
    command.stdin(Stdio::null()).stdout(stream()?).stderr(stream()?);
    let supervisor = std::process::id();
    // SAFETY: `prepare_target` makes async-signal-safe calls only.
    unsafe { command.pre_exec(move || prepare_target(supervisor)) };
    let mut tried = 1;
    loop {
        match command.spawn() {
            Ok(child) => return Ok(child.id()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tried < FORK_TRIES => {
                std::thread::sleep(Duration::from_millis(10) * 2_u32.pow(tried));
                tried += 1;
            }
            Err(error) => return Err(cannot(&error)),
        }
    }
}

/// Runs in the forked child.
fn prepare_target(supervisor: u32) -> io::Result<()> {
    // A session of its own: a signal to its group can never reach the supervisor.
    nix::unistd::setsid()?;
    signals::reset();
    #[cfg(target_os = "linux")]
    {
        super::oom::go_first();
        // A target without a supervisor has no limit and no exit code, so it ends with it.
        nix::sys::prctl::set_pdeathsig(Some(nix::sys::signal::Signal::SIGKILL))?;
    }
    // The supervisor may have died before the line above took effect.
    if nix::unistd::getppid().as_raw().unsigned_abs() != supervisor {
        return Err(io::Error::from(io::ErrorKind::Interrupted));
    }
    Ok(())
}

/// How far a target is.
#[derive(PartialEq, Eq)]
enum Stage {
    Alive,
    /// Its exit has been told.
    Exited,
    /// That nothing is left has been told.
    Empty,
}

struct LocalRunning {
    job: JobId,
    process: ProcessIdentity,
    /// The target, which leads its group; a handle is not reused as a pid is.
    #[cfg(target_os = "linux")]
    leader: Option<std::os::fd::OwnedFd>,
    #[cfg(target_os = "linux")]
    oom: Option<Counter>,
    pump: Pump,
    watch: SignalWatch,
    bell: Bell,
    /// The bell was rung since the last time it was told.
    rung: bool,
    exit: Option<(Exit, Usage)>,
    stage: Stage,
    /// No child is left to wait for; where orphans come back to us, that means the whole tree.
    childless: bool,
    /// Something may have changed since the tree was last looked at.
    look: bool,
    /// What the start needed has been given back.
    settled_down: bool,
}

/// Starting a job takes more memory than watching one. Hundreds of supervisors may sleep side by side.
fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: returns free pages of the allocator to the system, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0)
    };
}

impl Running for LocalRunning {
    fn process(&self) -> &ProcessIdentity {
        &self.process
    }

    fn detachment(&self) -> Detachment {
        let mut units = unit::around_us();
        let survives = unit::survives(&units).iter().map(|what| (*what).to_owned()).collect();
        Detachment { survives, bound_to: units.pop() }
    }

    fn next(&mut self, deadline: Option<Duration>) -> RunEvent {
        if !std::mem::replace(&mut self.settled_down, true) {
            give_memory_back();
        }
        loop {
            self.reap();
            if self.stage == Stage::Alive
                && let Some((exit, usage)) = self.exit
            {
                self.stage = Stage::Exited;
                return RunEvent::Exited { exit, usage: Some(usage) };
            }
            if self.stage == Stage::Exited && std::mem::take(&mut self.look) && self.members().is_empty() {
                self.stage = Stage::Empty;
                return RunEvent::Emptied;
            }
            // An exit that was seen is told first: what comes after it did not cause it.
            if self.watch.take_stop() {
                return RunEvent::Stop;
            }
            if std::mem::take(&mut self.rung) {
                return RunEvent::Bell;
            }
            if self.pump.take_over_cap() {
                return RunEvent::OverCap;
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(clock::awake()));
            if left == Some(Duration::ZERO) {
                return RunEvent::Deadline;
            }
            self.sleep(left);
        }
    }

    fn ask(&mut self) {
        for who in self.members() {
            // Gone meanwhile, or not ours to signal: what remains is seen at the next look.
            let _ = tree::ask(&who);
        }
    }

    fn force(&mut self, within: Duration) -> Vec<ProcessIdentity> {
        let (job, process) = (self.job.clone(), self.process.clone());
        // Whoever is in the group cannot have started anybody unseen; the others are found one by one.
        self.end_group();
        let between = || {
            self.sleep(Some(Duration::from_millis(5)));
            self.reap();
            self.end_group();
        };
        match tree::force(&job, &process, within, between) {
            Ok(report) => report.survivors,
            // Nobody could be looked for, so nobody is known to be gone.
            Err(_) => vec![process],
        }
    }

    fn last_output(&self) -> Duration {
        self.pump.last_output()
    }

    fn members(&mut self) -> Vec<ProcessIdentity> {
        self.reap();
        if self.childless && cfg!(target_os = "linux") {
            return Vec::new();
        }
        let (job, process) = (self.job.clone(), self.process.clone());
        tree::members(&job, &process, || self.reap()).unwrap_or_else(|_| vec![process])
    }

    #[cfg(target_os = "linux")]
    fn suspicion(&self) -> Option<String> {
        /// What a shell returns whose command was killed.
        const KILLED: u32 = 128 + libc::SIGKILL as u32;
        let is_killed = |(exit, _): &(Exit, Usage)| match exit {
            Exit::Signaled { signal, .. } => *signal == libc::SIGKILL,
            Exit::Exited { code } => *code == KILLED,
            Exit::Unknown => false,
        };
        let struck =
            self.exit.as_ref().is_some_and(is_killed) && self.oom.as_ref().is_some_and(Counter::has_risen);
        // Which process it was is not told, and others may be in the same group.
        struck.then(|| "while it ran, the kernel's out-of-memory killer ended a process of its cgroup".into())
    }

    #[cfg(not(target_os = "linux"))]
    fn suspicion(&self) -> Option<String> {
        None
    }

    fn drain(&mut self) -> Output {
        self.pump.drain()
    }
}

impl LocalRunning {
    /// Ends the target's group at one stroke. The handle makes sure that it is that group, however long its leader
    /// has been gone. Older kernels than 6.9 refuse.
    #[cfg(target_os = "linux")]
    fn end_group(&self) {
        const PROCESS_GROUP: libc::c_uint = 4;
        let Some(leader) = &self.leader else { return };
        let (number, handle) = (libc::SYS_pidfd_send_signal, std::os::fd::AsRawFd::as_raw_fd(leader));
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the handle is open and ours, and a null pointer asks for the ordinary information.
        unsafe { libc::syscall(number, handle, libc::SIGKILL, nothing, PROCESS_GROUP) };
    }

    #[cfg(not(target_os = "linux"))]
    fn end_group(&self) {}

    /// Waits for output, a change among the children, or the end of `left`.
    fn sleep(&mut self, left: Option<Duration>) {
        #[cfg(not(target_os = "linux"))]
        let left = if self.stage == Stage::Exited {
            self.look = true;
            Some(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)))
        } else {
            left
        };
        let timeout = match left {
            None => PollTimeout::NONE,
            // Rounded up, so that a deadline has passed when we wake; the longest sleep is 24 days, then one more.
            Some(left) => {
                let millis = left.as_nanos().div_ceil(1_000_000);
                PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
            }
        };
        let (changed, rung, printed) = {
            let watched = [self.watch.as_fd(), self.bell.as_fd()];
            let mut sources: Vec<_> =
                watched.into_iter().map(|source| PollFd::new(source, PollFlags::POLLIN)).collect();
            sources.extend(self.pump.source().map(|pipe| PollFd::new(pipe, PollFlags::POLLIN)));
            if poll(&mut sources, timeout).is_err() {
                return; // Interrupted; whatever it was, the next look tells.
            }
            let ready = |source: Option<&PollFd<'_>>| source.and_then(PollFd::any).unwrap_or(false);
            (ready(sources.first()), ready(sources.get(1)), ready(sources.get(2)))
        };
        if printed {
            self.pump.copy();
        }
        if rung {
            self.bell.acknowledge();
            self.rung = true;
        }
        if changed {
            self.watch.acknowledge();
            self.look = true;
        }
    }

    /// Reaps every child that has ended: the target, and the orphans that came back to us.
    fn reap(&mut self) {
        loop {
            let mut status = 0;
            let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: both pointers are to memory of ours that outlives the call.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
            match pid {
                0 => {
                    self.childless = false;
                    return;
                }
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() == io::ErrorKind::Interrupted {
                        continue;
                    }
                    self.childless = error.raw_os_error() == Some(libc::ECHILD);
                    return;
                }
                pid if pid.unsigned_abs() == self.process.pid => {
                    // SAFETY: all zeroes is a valid rusage, and the kernel has filled it in.
                    let usage = unsafe { usage.assume_init() };
                    self.exit = Some((exit_of(status), usage_of(&usage)));
                }
                _ => {}
            }
        }
    }
}

fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signaled { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
    } else {
        Exit::Exited { code: libc::WEXITSTATUS(status).unsigned_abs() }
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let millis = |time: libc::timeval| {
        // As wide as each system likes, and never negative.
        let (seconds, micros) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
        seconds.unwrap_or(0) * 1000 + micros.unwrap_or(0) / 1000
    };
    // macOS counts bytes, everybody else kibibytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Usage {
        user_ms: millis(usage.ru_utime),
        system_ms: millis(usage.ru_stime),
        peak_memory_bytes: usage.ru_maxrss.unsigned_abs() * unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::suite;
    use hearback_core::{CommandLine, OsText};

    #[test]
    fn native_passes_the_suite_of_executors() {
        let dir = tempfile::tempdir().unwrap();
        let argv = |words: &[&str]| CommandLine::Argv(words.iter().map(|word| OsText::from(*word)).collect());
        let commands = suite::Commands {
            hello_then_3: argv(&["sh", "-c", "echo hello; exit 3"]),
            missing: argv(&["no-such-program"]),
            cwd: text::from_os(dir.path().as_os_str()),
            no_such_dir: text::from_os(dir.path().join("nowhere").as_os_str()),
        };
        let log = dir.path().join("log");
        suite::executor(&crate::Native::default(), &commands, &log);
        assert_eq!(fs_err::read_to_string(log).unwrap(), "hello\n");
    }
}
