//! How far the clocks of this place are from UTC.

use std::mem::MaybeUninit;

/// The offset at a moment, in seconds; none if the system does not know it.
pub fn local_offset(unix_seconds: i64) -> Option<i64> {
    #[allow(clippy::useless_conversion, reason = "time has fewer bits on some systems")]
    // Without the name of the type, which libc calls deprecated for musl.
    let time = unix_seconds.try_into().ok()?;
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
