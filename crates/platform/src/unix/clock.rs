//! The clocks of Unix.

use std::sync::OnceLock;
use std::time::Duration;

use hearback_core::BootId;
use nix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const AWAKE: ClockId = ClockId::CLOCK_MONOTONIC;
#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::CLOCK_BOOTTIME;
// nix has no name for this one.
#[cfg(target_os = "macos")]
const AWAKE: ClockId = ClockId::from_raw(libc::CLOCK_UPTIME_RAW);
#[cfg(target_os = "macos")]
const SINCE_BOOT: ClockId = ClockId::CLOCK_MONOTONIC;
// FreeBSD's clocks stand still in suspend, all of them.
#[cfg(target_os = "freebsd")]
const AWAKE: ClockId = ClockId::CLOCK_UPTIME;
#[cfg(target_os = "freebsd")]
const SINCE_BOOT: ClockId = ClockId::CLOCK_MONOTONIC;

pub(crate) fn awake() -> Duration {
    read(AWAKE)
}

pub(crate) fn since_boot() -> Duration {
    read(SINCE_BOOT)
}

/// A process lives in one boot, so it is asked for once.
pub(crate) fn boot() -> Option<BootId> {
    static BOOT: OnceLock<BootId> = OnceLock::new();
    match BOOT.get() {
        Some(boot) => Some(boot.clone()),
        // What could not be read may be readable later.
        None => super::identity::boot().map(|boot| BOOT.get_or_init(|| boot).clone()),
    }
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).expect("every kernel that we support has this clock").into()
}
