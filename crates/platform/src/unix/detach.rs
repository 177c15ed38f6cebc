//! A program that outlives whoever started it: own session, no terminal, no descriptor of anybody's. A supervisor is
//! one that has a wire besides.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use hearback_core::port::executor::ANSWER_VARIABLE;
use hearback_core::port::process::{DetachedRequest, SupervisorLink, SupervisorRequest};

use super::signals;
use crate::wire::PipeLink;
use crate::{BOUNDED_RUN_MARK, JOB_MARK, SUPERVISOR_MARK, mark, program};

pub(crate) fn spawn_supervisor(request: &SupervisorRequest) -> io::Result<Box<dyn SupervisorLink>> {
    let mut command = command(&program::supervisor(request), request.job.as_str().as_ref());
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

pub(crate) fn spawn_detached(request: &DetachedRequest) -> io::Result<()> {
    let _ = command(request, &mark::detached(request)).spawn()?.wait(); // As above.
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
fn command(request: &DetachedRequest, mark: &OsStr) -> Command {
    let mut command = Command::new(&request.program);
    command.args(&request.args).current_dir(&request.home);
    // A job that launches another does not lend it the place of its own answer.
    command.env_remove(ANSWER_VARIABLE);
    for (name, value) in &request.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env(SUPERVISOR_MARK, mark).env_remove(JOB_MARK).env_remove(BOUNDED_RUN_MARK);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: `leave` makes async-signal-safe calls only.
    unsafe { command.pre_exec(leave) };
    command
}

/// Runs in the forked child. Leaves session and parent, and lets go of everything that was inherited.
///
/// The second fork makes it nobody's child, so that a long-lived program which launches jobs has nothing to reap, and
/// keeps it from ever getting a terminal.
fn leave() -> io::Result<()> {
    nix::unistd::setsid()?;
    // SAFETY: between fork and exec there is one thread, and both sides go on with async-signal-safe calls.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => {}
        // SAFETY: ends this process at once, running nothing that belongs to the parent.
        _ => unsafe { libc::_exit(0) },
    }
    signals::reset();
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
    // A limit of a billion descriptors is not a billion open ones; nobody has more than this by accident.
    let limit = i32::try_from(limit.clamp(256, 65_536)).unwrap_or(256);
    for descriptor in 3..limit {
        // SAFETY: changes a flag of a descriptor; one that is not open is merely refused.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

pub(crate) use super::signals::survive_size_limits;

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

/// Lets go of the wire: standard input and output become the null device.
pub(crate) fn close_standard_streams() {
    let Ok(null) = fs_err::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = nix::unistd::dup2_stdin(&null);
    let _ = nix::unistd::dup2_stdout(&null);
}
