//! Hearing that the system is on its way down, or that the user logs off: our console hears of it.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Threading::{INFINITE, SetEvent, Sleep, WaitForSingleObject};
use windows_sys::core::BOOL;

use super::{bell, call};

static ASKED: OnceLock<OwnedHandle> = OnceLock::new();
/// What a person at the console means by breaking: one of the three below.
static BREAKS: AtomicU8 = AtomicU8::new(NOT_US);
/// Other processes: a target that breaks every process on its console does not mean us.
const NOT_US: u8 = 0;
/// That we are to put things in order and end.
const A_REQUEST: u8 = 1;
/// What it always means.
const THE_END: u8 = 2;

/// Begins to listen. The event is set when this process is to end.
pub(crate) fn listen() -> io::Result<&'static OwnedHandle> {
    if let Some(listening) = ASKED.get() {
        return Ok(listening);
    }
    let event = bell::event(None)?;
    // SAFETY: the routine is there as long as the process, and needs nothing but the event above.
    call::done(unsafe { SetConsoleCtrlHandler(Some(handle), 1) })?;
    Ok(ASKED.get_or_init(|| event))
}

/// Runs in a thread that the system makes.
unsafe extern "system" fn handle(request: u32) -> BOOL {
    if matches!(request, CTRL_C_EVENT | CTRL_BREAK_EVENT) {
        let breaks = BREAKS.load(Ordering::SeqCst);
        if let (A_REQUEST, Some(asked)) = (breaks, ASKED.get()) {
            // SAFETY: the event is never closed.
            unsafe { SetEvent(asked.as_raw_handle()) };
        }
        return BOOL::from(breaks != THE_END);
    }
    if let Some(asked) = ASKED.get() {
        // SAFETY: the event is never closed.
        unsafe { SetEvent(asked.as_raw_handle()) };
        // A process whose handler returns is ended at once. Until ours returns, the system waits its few seconds.
        // SAFETY: takes a number.
        unsafe { Sleep(INFINITE) };
    }
    1
}

/// Hears requests to end this process. Dropped, it lets them mean the process again.
pub(crate) struct StopWatch(&'static OwnedHandle);

impl StopWatch {
    pub(crate) fn new() -> io::Result<Self> {
        let asked = listen()?;
        BREAKS.store(A_REQUEST, Ordering::SeqCst);
        Ok(Self(asked))
    }

    pub(crate) fn was_asked(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    pub(crate) fn wait(&self, within: Duration) -> bool {
        let millis = u32::try_from(within.as_millis()).unwrap_or(INFINITE - 1);
        // SAFETY: the event is never closed; once it was waited for, it is unset again.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), millis) == WAIT_OBJECT_0 }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        BREAKS.store(THE_END, Ordering::SeqCst);
    }
}

pub(crate) fn suspend() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
