//! Which system this is, and what differs between them.

use std::path::Path;

#[cfg(unix)]
use fs_err as fs;
use serde_json::Value;

/// Lets all users write a folder.
#[track_caller]
pub fn open_to_others(folder: &Path) {
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    #[cfg(windows)]
    if is_real_windows() {
        let mut grant = std::process::Command::new("icacls");
        grant.arg(folder).args(["/grant", "*S-1-1-0:(OI)(CI)M"]);
        crate::run(grant).ok();
    } else {
        // Wine makes the modes of its host into access rights.
        crate::outside::run("chmod", &["0777", &crate::outside::unix(folder)]).ok();
    }
}

/// The exit of a process that was terminated and did not resist.
pub fn exit_terminated() -> Value {
    match () {
        () if cfg!(unix) => serde_json::json!({"kind": "signaled", "signal": 15, "core": false}),
        // How a program ends by Ctrl-Break.
        () if is_real_windows() => serde_json::json!({"kind": "exited", "code": 0xc000_013a_u32}),
        // Wine passes no such request on, so it was killed after the grace period.
        () => exit_killed(),
    }
}

/// The exit of a process that was killed.
pub fn exit_killed() -> Value {
    match () {
        () if cfg!(unix) => serde_json::json!({"kind": "signaled", "signal": 9, "core": false}),
        () => serde_json::json!({"kind": "exited", "code": 1}),
    }
}

/// Whether this is a Windows program under Wine, which does less well than Windows.
pub fn is_wine() -> bool {
    cfg!(windows) && !is_real_windows()
}

/// Whether this is Windows itself, and not Wine: some things only the one can show.
pub fn is_real_windows() -> bool {
    #[cfg(windows)]
    return !hearback_platform::testing::is_wine();
    #[cfg(not(windows))]
    return false;
}

/// One number where starting a process costs little, and another for Wine, where it costs a fifth of a second.
pub fn scaled<T>(usual: T, under_wine: T) -> T {
    if is_wine() { under_wine } else { usual }
}

/// From the documentation of `CreateProcess`: no console, a group of its own, out of the Job Object.
#[cfg(windows)]
pub const DETACHED_PROCESS: u32 = 0x8;
#[cfg(windows)]
#[expect(missing_docs, reason = "see above")]
pub const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
#[cfg(windows)]
#[expect(missing_docs, reason = "see above")]
pub const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;
