//! Targets on this machine: started in a session of their own, reaped by their only parent.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::executor::{Detachment, RunEvent, Running, StartRequest};
use hearback_core::port::surroundings::{Ready, Sources};
use hearback_core::{Exit, ProcessIdentity, StartError, StartErrorKind, TargetHandle, Usage};

use super::input::Input;
#[cfg(target_os = "linux")]
use super::oom::Counter;
use super::pump::Pump;
use super::samples::Sampler;
use super::signals::{self, SignalWatch};
use super::surroundings::{poll, source};
use super::tree::Tree;
use super::{identity, text, tree, unit};
use crate::mark::Names;
use crate::program::{self, Invocation};

/// A machine out of processes may have one again in a moment.
const FORK_TRIES: u32 = 5;
/// Where orphans do not come back to us, a tree that is ending is looked at this often.
#[cfg(not(target_os = "linux"))]
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn start(names: &Names, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
    let cwd = PathBuf::from(text::to_os(request.cwd));
    program::check_directory(&cwd)?;
    if let Err(error) = nix::unistd::access(&cwd, nix::unistd::AccessFlags::X_OK) {
        let message = format!("cannot enter the working directory `{}`: {}", cwd.display(), error.desc());
        return Err(StartError { kind: StartErrorKind::BadDirectory, message });
    }
    let invocation = program::resolve(request.command, &cwd, request.script)?;
    let prepared = prepare(request).map_err(|error| other("cannot prepare to run", &error))?;
    let Prepared { pump, writer, input, children } = prepared;
    let (input, stdin) = input.unzip();
    #[cfg(target_os = "linux")]
    let oom = Counter::new();
    let stdin = stdin.map_or_else(Stdio::null, Stdio::from);
    let pid = spawn(names, &invocation, &cwd, request, stdin, &writer)?;
    // From here on only the target and its children hold the writing end.
    drop(writer);
    let process = identity::identify_child(pid).unwrap_or(ProcessIdentity {
        pid,
        started: 0,
        boot: identity::boot(),
        scope: identity::scope(),
    });
    Ok(Box::new(LocalRunning {
        handle: TargetHandle::of_process(&process),
        tree: Rc::new(Tree::new(names.membership(request.job), process)),
        #[cfg(target_os = "linux")]
        oom,
        input,
        pump,
        sampler: Sampler::new(pid, request.samples),
        children,
        exit: None,
        stage: Stage::Accepted,
        childless: false,
        look: true,
    }))
}

fn other(what: &str, error: &io::Error) -> StartError {
    StartError { kind: StartErrorKind::Other, message: format!("{what}: {error}") }
}

/// What has to be there before the target is.
struct Prepared {
    pump: Pump,
    writer: io::PipeWriter,
    /// Its input, and the end that it reads.
    input: Option<(Input, OwnedFd)>,
    children: SignalWatch,
}

fn prepare(request: &StartRequest<'_>) -> io::Result<Prepared> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    let (pump, writer) = Pump::new(Arc::clone(request.output))?;
    let input = request.input.map(Input::new).transpose()?;
    Ok(Prepared { pump, writer, input, children: SignalWatch::children()? })
}

#[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
fn spawn(
    names: &Names,
    what: &Invocation,
    cwd: &Path,
    request: &StartRequest<'_>,
    input: Stdio,
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
    command.env(names.job, request.job.as_str()).env_remove(names.supervisor);
    for name in request.withhold {
        command.env_remove(name);
    }
    if let Some(answer) = request.answer {
        command.env(names.answer, answer);
    }
    command.stdin(input).stdout(stream()?).stderr(stream()?);
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

/// Where the sources of a target are in their list.
const CHILDREN: usize = 0;
const OUTPUT: usize = 1;

/// How far a target is.
#[derive(PartialEq, Eq)]
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
    tree: Rc<Tree>,
    #[cfg(target_os = "linux")]
    oom: Option<Counter>,
    input: Option<Input>,
    pump: Pump,
    sampler: Sampler,
    children: SignalWatch,
    exit: Option<(Exit, Usage)>,
    stage: Stage,
    /// No child is left to wait for; where orphans come back to us, that means the whole tree.
    childless: bool,
    /// Something may have changed since the tree was last looked at.
    look: bool,
}

impl Running for LocalRunning {
    fn handle(&self) -> &TargetHandle {
        &self.handle
    }

    fn detachment(&self) -> Detachment {
        unit::detachment()
    }

    fn sources(&self) -> Sources<'_> {
        let mut list = vec![source(&self.children)];
        list.extend(self.pump.source());
        #[cfg(target_os = "linux")]
        let poll_within = None;
        #[cfg(not(target_os = "linux"))]
        let poll_within = (self.stage == Stage::Exited).then_some(LOOK_EVERY);
        Sources { list, poll_within }
    }

    fn poll(&mut self, ready: Ready) -> Option<RunEvent> {
        self.take_in(ready);
        self.reap();
        match self.stage {
            Stage::Accepted => {
                self.stage = Stage::Alive;
                Some(RunEvent::Started)
            }
            Stage::Alive => {
                let (exit, usage) = self.exit?;
                self.stage = Stage::Exited;
                Some(RunEvent::Exited { exit, usage: Some(usage) })
            }
            Stage::Exited => {
                // Where orphans do not come back to us, nothing tells that the tree has changed.
                let look = std::mem::take(&mut self.look) || cfg!(not(target_os = "linux"));
                if !look || !self.members().is_empty() {
                    return None;
                }
                self.stage = Stage::Empty;
                Some(RunEvent::Emptied)
            }
            Stage::Empty => None,
        }
    }

    fn terminate(&mut self) {
        tree::terminate(&self.members());
    }

    fn kill(&mut self, within: Duration) -> Vec<ProcessIdentity> {
        let tree = Rc::clone(&self.tree);
        tree.kill(within, |pause| {
            // Its output is still taken meanwhile.
            let ready = poll(&self.sources().list, Some(pause));
            self.take_in(ready);
            self.reap();
        })
    }

    fn members(&mut self) -> Vec<ProcessIdentity> {
        self.reap();
        if self.childless && cfg!(target_os = "linux") {
            return Vec::new();
        }
        let tree = Rc::clone(&self.tree);
        tree.members(|| self.reap())
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
        let is_oom =
            self.exit.as_ref().is_some_and(is_killed) && self.oom.as_ref().is_some_and(Counter::has_risen);
        // Which process it was is not told, and others may be in the same group.
        is_oom.then(|| "while it ran, the kernel's out-of-memory killer ended a process of its cgroup".into())
    }

    #[cfg(not(target_os = "linux"))]
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

impl LocalRunning {
    /// Takes what its sources have.
    fn take_in(&mut self, ready: Ready) {
        if ready.contains(OUTPUT) {
            self.pump.copy();
            if self.exit.is_none() {
                self.sampler.look();
            }
        }
        if ready.contains(CHILDREN) {
            self.children.acknowledge();
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
                pid if pid.unsigned_abs() == self.tree.leader().pid => {
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
    // macOS counts bytes, all others kibibytes.
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
            sleeper: argv(&["sleep", "600"]),
            sleeper_hears: true,
            missing: argv(&["no-such-program"]),
            cwd: text::from_os(dir.path().as_os_str()),
            no_such_dir: text::from_os(dir.path().join("nowhere").as_os_str()),
        };
        let native = crate::Native::default();
        suite::executor(&native, &native, &commands, dir.path());
        assert_eq!(fs_err::read_to_string(dir.path().join("log")).unwrap(), "hello\n");
    }
}
