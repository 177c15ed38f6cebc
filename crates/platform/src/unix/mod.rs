//! Linux, macOS and the BSDs.

#[cfg_attr(target_os = "linux", path = "ancestors/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "ancestors/other.rs")]
pub(crate) mod ancestors;
pub(crate) mod bell;
#[expect(unsafe_code, reason = "what runs between fork and exec is unsafe by nature")]
pub(crate) mod bounded_run;
pub(crate) mod clock;
pub(crate) mod descriptors;
#[expect(unsafe_code, reason = "what runs between fork and exec is unsafe by nature")]
pub(crate) mod detach;
#[expect(unsafe_code, reason = "wait4 tells what a child used, and has no safe wrapper")]
pub(crate) mod executor;
#[cfg_attr(
    target_os = "macos",
    expect(unsafe_code, reason = "holes are punched by a call without a safe wrapper")
)]
pub(crate) mod files;
#[cfg_attr(target_os = "linux", path = "identity/linux.rs")]
#[cfg_attr(target_os = "macos", path = "identity/macos.rs")]
#[cfg_attr(target_os = "freebsd", path = "identity/freebsd.rs")]
pub(crate) mod identity;
pub(crate) mod input;
pub(crate) mod local_socket;
#[expect(unsafe_code, reason = "the time of a place has no safe wrapper")]
pub(crate) mod local_time;
#[cfg(target_os = "linux")]
mod login;
mod look;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "what runs between fork and exec is unsafe by nature")]
mod oom;
pub(crate) mod probe;
mod pump;
#[expect(unsafe_code, reason = "what runs between fork and exec is unsafe by nature")]
pub(crate) mod rehearsal;
mod samples;
pub(crate) mod service;
pub(crate) mod shell;
mod sight;
#[expect(unsafe_code, reason = "signal handlers are unsafe by nature")]
mod signals;
mod snapshot;
pub(crate) mod stop;
pub(crate) mod streams;
#[expect(unsafe_code, reason = "sources of other crates are numbers, which poll has no safe wrapper for")]
pub(crate) mod surroundings;
pub(crate) mod text;
#[cfg_attr(
    target_os = "linux",
    expect(
        unsafe_code,
        reason = "a whole group is killed through a handle by a call without a safe wrapper"
    )
)]
pub(crate) mod tree;
pub(crate) mod unit;
#[cfg_attr(target_os = "linux", path = "usage/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "usage/other.rs")]
pub(crate) mod usage;
pub(crate) mod watch;
