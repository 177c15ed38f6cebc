//! How far the clocks of this place are from UTC.

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Storage::FileSystem::FileTimeToLocalFileTime;

/// Between 1601, where file times begin, and 1970.
const SECONDS_BEFORE_1970: i64 = 11_644_473_600;
const UNITS_IN_SECOND: i64 = 10_000_000;

/// The offset at a moment, in seconds, by the rules that hold today; none if the system does not know it.
pub fn local_offset(unix_seconds: i64) -> Option<i64> {
    let units = unix_seconds.checked_add(SECONDS_BEFORE_1970)?.checked_mul(UNITS_IN_SECOND)?;
    let units = u64::try_from(units).ok()?;
    let low = u32::try_from(units & u64::from(u32::MAX)).ok()?;
    let utc = FILETIME { dwLowDateTime: low, dwHighDateTime: u32::try_from(units >> 32).ok()? };
    let mut local = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    // SAFETY: both pointers are to variables of ours that outlive the call.
    let done = unsafe { FileTimeToLocalFileTime(&raw const utc, &raw mut local) };
    let local = u64::from(local.dwHighDateTime) << 32 | u64::from(local.dwLowDateTime);
    (done != 0).then(|| (local.cast_signed() - units.cast_signed()) / UNITS_IN_SECOND)
}
