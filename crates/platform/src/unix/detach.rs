//! A program that outlives the process that started it: it has a session of its own, no terminal and no inherited
//! descriptor. A supervisor is one with a wire to its launcher.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use hearback_core::ProcessIdentity;
use hearback_core::port::process::{DetachedRequest, SupervisorLink, SupervisorRequest};

use super::{descriptors, identity, signals};
use crate::mark::Names;
use crate::wire::PipeLink;

pub(crate) fn spawn_supervisor(
    names: &Names,
    request: &SupervisorRequest,
) -> io::Result<Box<dyn SupervisorLink>> {
    let mut command = command(&names.supervisor(request));
    // SAFETY: `leave` makes async-signal-safe calls only.
    unsafe { command.pre_exec(|| leave(None)) };
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (down, up) = (child.stdin.take(), child.stdout.take());
    // The child was only the middle of a double fork and is gone by now. Where children are not to be waited for,
    // because a caller ignores their signal, the system has reaped it already.
    let _ = child.wait();
    match (down, up) {
        (Some(down), Some(up)) => Ok(Box::new(PipeLink::new(down, up)?)),
        _ => Err(io::Error::other("the wire to the supervisor was not made")),
    }
}

pub(crate) fn spawn_detached(names: &Names, request: &DetachedRequest) -> io::Result<()> {
    let mut command = command(&names.detached(request));
    // SAFETY: `leave` makes async-signal-safe calls only.
    unsafe { command.pre_exec(|| leave(None)) };
    let _ = command.spawn()?.wait(); // As above.
    Ok(())
}

/// Starts a program that leads a session of its own, and identifies it.
///
/// It is identified before it runs: a program that ends at once, and is reaped by another process, would leave a pid
/// that may belong to any process by then.
pub(crate) fn spawn_leader(request: &DetachedRequest, output: Option<File>) -> io::Result<ProcessIdentity> {
    let mut command = command(request);
    if let Some(output) = output {
        command.stdout(output.try_clone()?).stderr(output);
    }
    let (mut pid, tell_pid) = io::pipe()?;
    let (may_run, mut let_run) = io::pipe()?;
    let gate = Gate {
        tell_pid: tell_pid.as_raw_fd(),
        may_run: may_run.as_raw_fd(),
        of_caller: [pid.as_raw_fd(), let_run.as_raw_fd()],
    };
    // SAFETY: `leave` makes async-signal-safe calls only, and the gate's descriptors are open until `spawn` returns.
    unsafe { command.pre_exec(move || leave(Some(gate))) };
    // `spawn` returns when the program is executed, so that another thread has to open the gate.
    let identify = std::thread::Builder::new().spawn(move || {
        let mut number = [0; size_of::<u32>()];
        pid.read_exact(&mut number)?;
        // It waits at the gate, so that it is there.
        let who = identity::identify(u32::from_ne_bytes(number))?.ok_or(io::ErrorKind::NotFound)?;
        let_run.write_all(&[1])?;
        Ok(who)
    })?;
    let spawned = command.spawn();
    // The thread hears from this that no pid will come.
    drop((tell_pid, may_run));
    let who = identify.join().unwrap_or_else(|_| Err(io::Error::other("identifying the program failed")));
    let _ = spawned?.wait(); // As above.
    who
}

/// Descriptors by which a forked process reports its pid, and then waits until it has been identified.
#[derive(Clone, Copy)]
struct Gate {
    tell_pid: RawFd,
    may_run: RawFd,
    /// The ends of the caller. A forked process closes them, so that it hears of the caller's death.
    of_caller: [RawFd; 2],
}

impl Gate {
    /// Runs in the forked process.
    fn pass(self) -> io::Result<()> {
        for descriptor in self.of_caller {
            // SAFETY: closes a descriptor that this process inherited and does not use.
            unsafe { libc::close(descriptor) };
        }
        // SAFETY: takes nothing and gives a number.
        let pid = unsafe { libc::getpid() }.unsigned_abs().to_ne_bytes();
        // SAFETY: the pointer is to as many bytes as are said. So few are written at once or not at all.
        if unsafe { libc::write(self.tell_pid, pid.as_ptr().cast(), pid.len()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut word = [0_u8];
        loop {
            // SAFETY: the pointer is to one byte, as is said.
            match unsafe { libc::read(self.may_run, word.as_mut_ptr().cast(), 1) } {
                1 => return Ok(()),
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                // The caller is gone, or cannot identify this process: no other process would know of it.
                _ => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
fn command(request: &DetachedRequest) -> Command {
    let mut command = Command::new(&request.program);
    command.args(&request.args).current_dir(&request.home);
    for (name, value) in &request.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs in the forked child. Leaves session and parent, and closes everything that was inherited.
///
/// The second fork gives it to init, so that a long-lived program which launches jobs has nothing to reap, and keeps it
/// from ever getting a terminal. With a gate, it leads a session of its own instead, by which its tree can be found;
/// then it gets a terminal if it opens one without `O_NOCTTY`.
fn leave(gate: Option<Gate>) -> io::Result<()> {
    nix::unistd::setsid()?;
    // SAFETY: between fork and exec there is one thread, and both sides go on with async-signal-safe calls.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: ends this process at once, running nothing that belongs to the parent.
        _ => unsafe { libc::_exit(0) },
    }
    if let Some(gate) = gate {
        nix::unistd::setsid()?;
        gate.pass()?;
    }
    signals::reset();
    descriptors::restore_limit();
    // From its first write on, and handed on by exec; the target's own dispositions are reset again.
    survive_size_limits();
    close_on_exec_from_3();
    Ok(())
}

/// Marks every descriptor above the standard streams to be closed by exec, the pipe by which a failing exec is
/// reported among them.
fn close_on_exec_from_3() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: changes flags of descriptors and nothing else.
        let marked =
            unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if marked == 0 {
            return;
        }
    }
    // SAFETY: reads a limit.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    // A limit of a billion descriptors is not a billion open ones; no process has more than this by accident.
    let limit = i32::try_from(limit.clamp(256, 65_536)).unwrap_or(256);
    for descriptor in 3..limit {
        // SAFETY: changes a flag of a descriptor; one that is not open is merely refused.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

pub(crate) use super::signals::{hear_of_children, survive_size_limits};

pub(crate) fn read_standard_input(into: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(rustix::stdio::stdin(), into)?)
}

pub(crate) fn write_standard_output(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdout(), bytes))?;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Closes the wire: standard input and output become the null device.
pub(crate) fn close_standard_streams() {
    let Ok(null) = fs_err::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = nix::unistd::dup2_stdin(&null);
    let _ = nix::unistd::dup2_stdout(&null);
}
