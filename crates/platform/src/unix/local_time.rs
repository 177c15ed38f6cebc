//! How far the clocks of this place are from UTC.

use std::mem::MaybeUninit;

/// The offset at a moment, in seconds; none if the system does not know it.
pub fn local_offset(unix_seconds: i64) -> Option<i64> {
    let time = libc::time_t::try_from(unix_seconds).ok()?;
    let mut parts = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are to variables of ours that outlive the call.
    let filled = unsafe { libc::localtime_r(&raw const time, parts.as_mut_ptr()) };
    if filled.is_null() {
        return None;
    }
    // SAFETY: the call has succeeded, so it has filled every field.
    let parts = unsafe { parts.assume_init() };
    Some(parts.tm_gmtoff)
}
