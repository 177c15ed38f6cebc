//! Which processes are alive, and killing them.

use std::io;

/// Whether a process runs or could run: a zombie does not count.
pub fn alive(pid: u32) -> bool {
    #[cfg(target_os = "linux")]
    return crate::linux::state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X' | 'x'));
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

/// Kills a process at once, whichever process started it. It cannot react to that.
///
/// # Panics
///
/// If there is none.
#[track_caller]
pub fn kill_hard(pid: u32) {
    kill_if_there(pid).unwrap();
}

/// Does what [`kill_hard`] does. A missing process is an error that says little: it may have ended by itself.
///
/// # Errors
///
/// When no process was killed.
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

/// Pauses a process until it is continued: with a signal, or by suspending its threads.
///
/// # Panics
///
/// If there is none.
#[track_caller]
pub fn stop(pid: u32) {
    #[cfg(unix)]
    signal(pid, nix::sys::signal::Signal::SIGSTOP);
    #[cfg(windows)]
    hearback_platform::testing::suspend(pid).unwrap();
}

/// Continues a process that was paused.
///
/// # Panics
///
/// If there is none.
#[track_caller]
pub fn go_on(pid: u32) {
    #[cfg(unix)]
    signal(pid, nix::sys::signal::Signal::SIGCONT);
    #[cfg(windows)]
    hearback_platform::testing::resume(pid).unwrap();
}

#[cfg(unix)]
#[track_caller]
fn signal(pid: u32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// The processes that have `NAME=value` in their environment; one that has ended has none.
#[cfg(any(target_os = "linux", windows))]
pub fn carrying(entry: &str) -> Vec<u32> {
    #[cfg(target_os = "linux")]
    return crate::linux::carrying(entry);
    #[cfg(windows)]
    return crate::windows::carrying(entry).into_iter().map(|who| who.pid).collect();
}

/// When a process was started, in ticks of the system: with this, a pid names one process and no other. Nothing if
/// there is no such process; one that has ended or is about to is none.
#[cfg(any(target_os = "linux", windows))]
pub fn start_ticks(pid: u32) -> Option<u64> {
    #[cfg(target_os = "linux")]
    return crate::linux::start_ticks(pid);
    #[cfg(windows)]
    return {
        use hearback_core::port::process::ProcessControl;
        let found = hearback_platform::Native::default().identify(pid);
        found.ok().flatten().map(|who| who.started)
    };
}
