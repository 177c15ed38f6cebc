//! What every call into the system has in common: how it fails, how it reads text, and the owner of what it made.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE, WIN32_ERROR};
use windows_sys::core::BOOL;

/// Turns the answer of a call into a result. Must come before any other call, or the reason is another's.
pub(crate) fn done(answer: BOOL) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes over the handle that a call has just made, or tells why it made none.
///
/// # Safety
///
/// No other code may own or close `handle`.
pub(crate) unsafe fn own(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a handle, and the caller promises that no other code owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// Whether this is the error that the system numbers so.
pub(crate) fn is(error: &io::Error, code: WIN32_ERROR) -> bool {
    error.raw_os_error() == i32::try_from(code).ok()
}

/// Text with the zero that ends it. Text with a zero inside would be cut there without a word, so it is refused.
pub(crate) fn zero_ended(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut units: Vec<u16> = text.encode_wide().collect();
    if units.contains(&0) {
        let why = format!("`{}` has a zero inside", text.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    units.push(0);
    Ok(units)
}
