//! Mounts that only one test sees.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run;

/// Runs the body of a test where it may mount what it likes: in a process of its own whose mounts nobody else
/// sees and which are gone with it, however it ends.
///
/// `test` is the name of the calling test, which is run a second time in there. Says so and skips the body
/// where mounting is not permitted.
///
/// # Panics
///
/// If the test fails in there.
#[track_caller]
pub fn with_private_mounts(test: &str, body: impl FnOnce()) {
    const INSIDE: &str = "HEARBACK_TESTS_PRIVATE_MOUNTS";
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let private = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--"]).arg(program).stdin(Stdio::null());
        command
    };
    let permitted = private(Path::new("true")).output();
    if !permitted.is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped `{test}`: no private mounts here (it takes root and unshare)");
        return;
    }
    let mut again = private(&env::current_exe().expect("a test knows its own path"));
    again.args([test, "--exact", "--nocapture"]).env(INSIDE, "yes");
    let ran = run(again);
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
    /// Mounts what `mount ARGS PATH` does, where there is a folder.
    #[track_caller]
    pub fn new(args: &[&str], path: impl Into<PathBuf>) -> Mount {
        let mounted = Mount(path.into());
        mounted.change(args);
        mounted
    }

    /// Takes note that a folder above it was moved, and it with it.
    pub fn moved(&mut self, to: impl Into<PathBuf>) {
        self.0 = to.into();
    }

    /// Changes how it is mounted.
    #[track_caller]
    pub fn change(&self, args: &[&str]) {
        let mut command = Command::new("mount");
        command.args(args).arg(&self.0).stdin(Stdio::null());
        run(command).ok();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Whoever is still in there keeps it, and nobody else sees it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}
