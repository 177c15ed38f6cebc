//! Signals of this process: which children changed, requests to end, and what a child inherits.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::errno::Errno;
#[cfg(not(target_os = "linux"))]
use nix::fcntl::OFlag;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Where the handler writes when this process is to stop; a signal handler can reach nothing but statics.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Where it writes when a child has changed.
static CHILDREN: AtomicI32 = AtomicI32::new(-1);
static STOP: AtomicBool = AtomicBool::new(false);

/// By which the system, or a person, requests a process to end.
const STOPS: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// Becomes readable when some signals of this process arrive. One of each kind per process.
pub(crate) struct SignalWatch {
    read: OwnedFd,
    /// What the handler writes to, where that is another descriptor.
    _write: Option<OwnedFd>,
    /// Where the handler finds the other end.
    place: &'static AtomicI32,
    /// Which get their default meaning back in the end.
    restore: &'static [Signal],
}

impl SignalWatch {
    /// Hears requests to stop this process.
    pub(crate) fn stops() -> io::Result<Self> {
        Self::new(&WAKE, &STOPS, &STOPS)
    }

    /// Hears that a child of this process has changed.
    pub(crate) fn children() -> io::Result<Self> {
        Self::new(&CHILDREN, &[Signal::SIGCHLD], &[])
    }

    fn new(place: &'static AtomicI32, heard: &[Signal], restore: &'static [Signal]) -> io::Result<Self> {
        let (read, write) = channel()?;
        place.store(write.as_ref().unwrap_or(&read).as_raw_fd(), Ordering::SeqCst);
        let flags = SaFlags::SA_RESTART | SaFlags::SA_NOCLDSTOP;
        let action = SigAction::new(SigHandler::Handler(wake), flags, SigSet::empty());
        for signal in heard {
            // SAFETY: the handler makes one async-signal-safe call and touches nothing but atomics.
            unsafe { sigaction(*signal, &action) }?;
        }
        Ok(Self { read, _write: write, place, restore })
    }

    /// Whether the system requested this process to end, since the last call.
    pub(crate) fn take_stop(&self) -> bool {
        STOP.swap(false, Ordering::SeqCst)
    }

    /// Takes note of every change so far.
    pub(crate) fn acknowledge(&self) {
        let mut bytes = [0; 64];
        while nix::unistd::read(&self.read, &mut bytes).is_ok_and(|n| n == bytes.len()) {}
    }
}

impl AsFd for SignalWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.place.store(-1, Ordering::SeqCst);
        // A request to stop now means the process: other processes can do everything that it still does.
        for signal in self.restore {
            // SAFETY: the default disposition runs no code of ours.
            let _ = unsafe { nix::sys::signal::signal(*signal, SigHandler::SigDfl) };
        }
    }
}

extern "C" fn wake(signal: libc::c_int) {
    if signal == libc::SIGCHLD {
        return write_to(&CHILDREN);
    }
    STOP.store(true, Ordering::SeqCst);
    write_to(&WAKE);
}

/// Wakes the thread that waits for requests to stop, without making one.
pub(crate) fn wake_up() {
    write_to(&WAKE);
}

fn write_to(place: &AtomicI32) {
    // The code that was interrupted may be about to read it.
    let errno = Errno::last_raw();
    let one = 1_u64;
    // SAFETY: write is async-signal-safe, the number outlives the call, and a descriptor of -1 is merely refused.
    // The descriptor does not block; when it is full, the reader has been woken already.
    unsafe { libc::write(place.load(Ordering::SeqCst), (&raw const one).cast(), size_of_val(&one)) };
    Errno::set_raw(errno);
}

/// What becomes readable, and what to write to for that; nothing where it is the same.
///
/// One descriptor instead of two: a supervisor has to make do with few.
#[cfg(target_os = "linux")]
fn channel() -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    // SAFETY: takes numbers.
    let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    Errno::result(event)?;
    // SAFETY: the call above made this descriptor for us.
    Ok((unsafe { OwnedFd::from_raw_fd(event) }, None))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn channel() -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    Ok((read, Some(write)))
}

#[cfg(target_os = "macos")]
fn channel() -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    let (read, write) = nix::unistd::pipe()?;
    for end in [&read, &write] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    Ok((read, Some(write)))
}

/// Gives every signal its default meaning again, and blocks none. Async-signal-safe: called between fork and exec.
///
/// A caller that ignores signals, as `nohup` does, or that has blocked some in the thread that launches, would
/// otherwise hand that on to every job; and a supervisor that cannot hear of its children would sleep for ever.
pub(crate) fn reset() {
    for signal in 1..=64 {
        // SAFETY: the default disposition runs no code of ours; a number that cannot be reset is merely refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let _ = SigSet::empty().thread_set_mask(); // Cannot fail: both arguments are right.
}

/// Leaves what a person breaks at the terminal to the program in front, which hears it as well, while this lives.
pub(crate) struct BreaksAreForTheChild([(Signal, SigAction); 2]);

impl BreaksAreForTheChild {
    pub(crate) fn new() -> io::Result<Self> {
        // A handler and not a disposition to ignore it, which would be handed on to the child.
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler does nothing.
        let set = |signal| unsafe { sigaction(signal, &action) }.map(|before| (signal, before));
        Ok(Self([set(Signal::SIGINT)?, set(Signal::SIGQUIT)?]))
    }
}

impl Drop for BreaksAreForTheChild {
    fn drop(&mut self) {
        for (signal, before) in &self.0 {
            // SAFETY: what was there before was right before.
            let _ = unsafe { sigaction(*signal, before) };
        }
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// Stops the processes of this group, and then this one.
pub(crate) fn stop_group() -> nix::Result<()> {
    let mean = |handler| {
        let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
        // SAFETY: neither disposition runs code of ours.
        unsafe { sigaction(Signal::SIGTSTP, &action) }
    };
    // A signal to the group may reach any thread of this process, which then stops a moment later. One that this thread
    // sends to itself has stopped the process when the call returns, before the caller can touch the terminal again.
    let before = mean(SigHandler::SigIgn)?;
    let sent = nix::sys::signal::kill(nix::unistd::Pid::from_raw(0), Signal::SIGTSTP);
    mean(SigHandler::SigDfl)?;
    let stopped = nix::sys::signal::raise(Signal::SIGTSTP);
    // SAFETY: what was there before was right before.
    unsafe { sigaction(Signal::SIGTSTP, &before) }?;
    sent.and(stopped)
}

/// Lets the kernel keep the exits of children until they are asked for.
pub(crate) fn hear_of_children() {
    // SAFETY: the default runs no code of ours.
    let _ = unsafe { nix::sys::signal::signal(Signal::SIGCHLD, SigHandler::SigDfl) };
}

/// Lets a write beyond a file-size limit fail instead of ending this process.
pub(crate) fn survive_size_limits() {
    // SAFETY: ignoring a signal runs no code of ours.
    let _ = unsafe { nix::sys::signal::signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
}
