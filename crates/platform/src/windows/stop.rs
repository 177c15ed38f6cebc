//! Hearing that the system is on its way down, or that the user logs off: our console is told.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::OnceLock;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Threading::{INFINITE, SetEvent, Sleep};
use windows_sys::core::BOOL;

use super::{bell, call};

static ASKED: OnceLock<OwnedHandle> = OnceLock::new();

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
    // A target that breaks everybody on its console does not mean us.
    if !matches!(request, CTRL_C_EVENT | CTRL_BREAK_EVENT)
        && let Some(asked) = ASKED.get()
    {
        // SAFETY: the event is never closed.
        unsafe { SetEvent(asked.as_raw_handle()) };
        // Who returns is ended at once. As long as we do not, the system waits its few seconds.
        // SAFETY: takes a number.
        unsafe { Sleep(INFINITE) };
    }
    1
}
