//! The clocks of Windows.

use std::time::Duration;

use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;

/// Interrupt time without the time asleep, which the system counts in units of 100 ns.
pub(crate) fn awake() -> Duration {
    let mut units = 0;
    // SAFETY: the pointer is to a number of ours that outlives the call.
    let told = unsafe { QueryUnbiasedInterruptTime(&raw mut units) };
    assert!(told != 0, "every system that we support has this clock");
    from_units(units)
}

/// Time since boot, sleep included. Exact to 16 ms or so, which is enough for ages.
pub(crate) fn since_boot() -> Duration {
    // SAFETY: reads a counter and takes nothing.
    Duration::from_millis(unsafe { GetTickCount64() })
}

/// What Windows counts in units of 100 ns.
pub(crate) fn from_units(units: u64) -> Duration {
    const PER_SECOND: u64 = 10_000_000;
    let nanos = u32::try_from(units % PER_SECOND * 100).expect("less than a second of nanoseconds");
    Duration::new(units / PER_SECOND, nanos)
}
