//! Mounts that only tests see.

use std::env;
#[cfg(not(windows))]
use std::path::Path;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};

use crate::skipped;

/// Set where mounts are invisible to all other processes, and gone afterwards. `cargo xtask windows` sets it for Wine.
const PRIVATE: &str = "HEARBACK_TESTS_PRIVATE_MOUNTS";

/// Runs the body of the calling test where it may mount what it likes. Where that is not permitted, says so and skips
/// it.
///
/// On Linux the test is run a second time in a process whose mounts no other process sees, and which are gone
/// with it, however it ends. Under Wine the server opens files for all programs, so all of them run in such a place.
///
/// # Panics
///
/// If the test fails in there.
#[track_caller]
pub fn with_private_mounts(body: impl FnOnce()) {
    if env::var_os(PRIVATE).is_some() {
        return body();
    }
    #[cfg(target_os = "linux")]
    run_again();
    #[cfg(not(target_os = "linux"))]
    skipped("nothing can be mounted here");
}

#[cfg(target_os = "linux")]
#[track_caller]
fn run_again() {
    let private = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--"]).arg(program).stdin(Stdio::null());
        command
    };
    let permitted = private(Path::new("true")).output();
    if !permitted.is_ok_and(|probe| probe.status.success()) {
        return skipped("no private mounts here (it takes root and unshare)");
    }
    let current = std::thread::current();
    let test = current.name().expect("a test's thread has its name");
    let mut again = private(&env::current_exe().expect("a test knows its own path"));
    again.args([test, "--exact", "--nocapture"]).env(PRIVATE, "yes");
    let ran = crate::run(again);
    assert!(
        ran.code == Some(0) && ran.stdout.contains(" 1 passed"),
        "`{test}` with private mounts:\n{}\n{}",
        ran.stdout,
        ran.stderr
    );
}

/// Something mounted, until the test is done with it. For tests [`with_private_mounts`].
#[derive(Debug)]
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts an empty file system of this kind (`tmpfs`, `ramfs`) where there is a folder.
    #[track_caller]
    pub fn new(kind: &str, options: &str, path: impl Into<PathBuf>) -> Mount {
        let mounted = Mount(path.into());
        mounted.mount(&["-t", kind, "-o", options, "none", &host_path(&mounted.0)]);
        mounted
    }

    /// Mounts a folder over itself, so that it can be made read-only.
    #[track_caller]
    pub fn over_itself(path: impl Into<PathBuf>) -> Mount {
        let path = path.into();
        Mount::bind(&host_path(&path), path)
    }

    /// Mounts something of the host over something else.
    #[track_caller]
    pub fn bind(from: &str, path: impl Into<PathBuf>) -> Mount {
        let mounted = Mount(path.into());
        mounted.mount(&["--bind", from, &host_path(&mounted.0)]);
        mounted
    }

    /// Records that a folder above it was moved, and the mount with it.
    pub fn moved(&mut self, to: impl Into<PathBuf>) {
        self.0 = to.into();
    }

    /// Changes how it is mounted: `ro`, `size=1m`. What lies over itself keeps everything else with `bind`.
    #[track_caller]
    pub fn change(&self, options: &str) {
        self.mount(&["-o", &format!("remount,{options}"), &host_path(&self.0)]);
    }

    #[track_caller]
    fn mount(&self, args: &[&str]) {
        on_host("mount", args).ok();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A process that still works in there keeps it, and no other process sees it.
        on_host("umount", &["--lazy", &host_path(&self.0)]);
    }
}

#[cfg(windows)]
use crate::outside::{run as on_host, unix as host_path};

#[cfg(not(windows))]
fn host_path(path: &Path) -> String {
    path.to_str().expect("paths of tests are text").to_owned()
}

#[cfg(not(windows))]
fn on_host(program: &str, args: &[&str]) -> crate::Ran {
    let mut command = std::process::Command::new(program);
    command.args(args).stdin(std::process::Stdio::null());
    crate::run(command)
}
