//! A launcher that is started to be ended: killed, hung up on, or killed with its whole group.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hearback_core::finding::{LauncherEnd, Tried};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::clock;
use super::signals;
use crate::probe::RehearsalRequest;

/// What the terminal of a process is called in that process.
pub(crate) const TERMINAL: &str = "/dev/tty";
/// More than any answer needs.
const MAX_LINE: usize = 4096;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

pub(crate) struct Rehearsal {
    launcher: Child,
    how: LauncherEnd,
    /// The end of its terminal that a window would hold.
    window: Option<OwnedFd>,
}

impl Rehearsal {
    pub(crate) fn begin(request: &RehearsalRequest) -> Tried<Self> {
        let terminal = match request.how {
            LauncherEnd::Terminal => match open_terminal() {
                Ok(terminal) => Some(terminal),
                Err(error) => return Tried::untried(format!("no terminal can be made here: {error}")),
            },
            LauncherEnd::Parent | LauncherEnd::ProcessGroup => None,
        };
        spawn(request, terminal).into()
    }

    pub(crate) fn hear(&mut self, within: Duration) -> io::Result<String> {
        let told = self.launcher.stdout.as_mut().ok_or_else(|| io::Error::other("it was heard already"))?;
        let deadline = clock::awake() + within;
        let mut line = Vec::new();
        loop {
            let left = deadline.saturating_sub(clock::awake());
            if left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the launcher reports nothing"));
            }
            let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
            let mut sources = [PollFd::new(told.as_fd(), PollFlags::POLLIN)];
            // Interrupted or out of time: the deadline decides.
            if poll(&mut sources, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)).unwrap_or(0) == 0
            {
                continue;
            }
            let mut bytes = [0; 256];
            let read = told.read(&mut bytes)?;
            line.extend_from_slice(&bytes[..read]);
            if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                line.truncate(end);
                return String::from_utf8(line).map_err(io::Error::other);
            }
            if read == 0 || line.len() > MAX_LINE {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the launcher ended without a word",
                ));
            }
        }
    }

    pub(crate) fn end_launcher(&mut self, within: Duration) -> io::Result<()> {
        match self.how {
            LauncherEnd::Parent => self.launcher.kill()?,
            LauncherEnd::Terminal => drop(self.window.take()),
            LauncherEnd::ProcessGroup => killpg(self.group()?, Signal::SIGKILL)?,
        }
        let deadline = clock::awake() + within;
        while self.launcher.try_wait()?.is_none() {
            if clock::awake() >= deadline {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the launcher itself survived it"));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    fn group(&self) -> io::Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.launcher.id()).map_err(io::Error::other)?))
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        // Until it is waited for, its pid is its own.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Both ends of a new terminal that no session has yet.
fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSED_BY_EXEC)?;
    rustix::io::fcntl_setfd(&window, rustix::io::FdFlags::CLOEXEC)?;
    grantpt(&window)?;
    unlockpt(&window)?;
    let name = ptsname(&window, Vec::new())?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let screen = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
    Ok((window, screen))
}

/// Where the system takes it at once; elsewhere it is set a moment later.
#[cfg(target_os = "linux")]
const CLOSED_BY_EXEC: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSED_BY_EXEC: OpenptFlags = OpenptFlags::empty();

#[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
fn spawn(request: &RehearsalRequest, terminal: Option<(OwnedFd, OwnedFd)>) -> io::Result<Rehearsal> {
    let mut command = Command::new(&request.program);
    command.args(&request.arguments);
    // Its input ends when we do, and then it ends, too.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (window, screen) = terminal.unzip();
    let leads_a_group = request.how == LauncherEnd::ProcessGroup;
    let prepare = move || {
        // A process that ignores a hang-up, as under `nohup`, would hand that on.
        signals::reset();
        if let Some(screen) = &screen {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(screen)?;
        } else if leads_a_group {
            rustix::process::setpgid(None, None)?;
        }
        Ok(())
    };
    // SAFETY: makes async-signal-safe calls only.
    unsafe { command.pre_exec(prepare) };
    Ok(Rehearsal { launcher: command.spawn()?, how: request.how, window })
}
