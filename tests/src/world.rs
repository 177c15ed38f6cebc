//! A private place for hearback to run in, and the end of every process that runs there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use serde_json::Value;
use tempfile::TempDir;

use crate::{Job, Ran, alive, bin, eventually, run};

/// Variables through which the tests' own surroundings could change what is printed. Those of agents, which could
/// choose a session, are removed as well.
const STRAY_VARIABLES: [&str; 4] = [
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    // Where it is set, even a dumb terminal is taken to show colours.
    "CI",
];

/// A private place with its own `HEARBACK_HOME`, removed at the end together with every process started in
/// it.
///
/// On Linux, dropping it kills whatever still carries this world's home, or the mark of one of its jobs, in
/// its environment; on Windows the supervisors that its records name, and with them their trees, and every
/// process that carries this home if the test has failed or the place cannot be removed. Elsewhere a test has to
/// end its own jobs.
#[derive(Debug)]
pub struct World {
    home: PathBuf,
    scratch: PathBuf,
    /// Removed after the processes have been ended.
    _folder: TempDir,
}

impl World {
    /// Makes the place; its home does not exist until hearback makes it.
    #[expect(clippy::new_without_default, reason = "it makes folders, which a default should not")]
    pub fn new() -> World {
        let mut builder = tempfile::Builder::new();
        builder.prefix("hearback-test-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir().expect("the temporary folder can be written");
        // Canonical, so that a path printed by a job can be compared with one of ours (macOS: /var is a
        // link).
        let root =
            if cfg!(windows) { folder.path().to_owned() } else { fs::canonicalize(folder.path()).unwrap() };
        let scratch = root.join("scratch");
        fs::create_dir(&scratch).unwrap();
        World { home: root.join("home"), scratch, _folder: folder }
    }

    /// What `HEARBACK_HOME` is set to.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A path for a test's own file; nothing is made there.
    pub fn scratch(&self, name: impl AsRef<Path>) -> PathBuf {
        self.scratch.join(name)
    }

    /// hearback with these arguments, in this world and without a session.
    pub fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(bin("hearback"));
        self.settle(&mut command);
        command.args(args);
        command
    }

    /// Puts another program's command into this world, as `command` does it for hearback.
    pub fn settle(&self, command: &mut Command) {
        let ours = env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.to_string_lossy().starts_with("HEARBACK_"));
        let stray = STRAY_VARIABLES.into_iter().chain(hearback::core::agents::session_variables());
        for name in ours.chain(stray.map(OsString::from)) {
            command.env_remove(name);
        }
        command.env("HEARBACK_HOME", &self.home).stdin(Stdio::null());
    }

    /// Runs hearback until it has ended and its output is closed.
    #[track_caller]
    pub fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        run(self.command(args))
    }

    /// Runs hearback, which has to succeed and to print one JSON value. `--json` is not added.
    #[track_caller]
    pub fn json(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
        let stdout = self.run(args).ok();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{stdout}"))
    }

    /// Runs `launch` with these arguments and returns the job's id.
    #[track_caller]
    pub fn launch(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.run([OsString::from("launch")].into_iter().chain(args)).ok()
    }

    /// What `show JOB --json` says.
    #[track_caller]
    pub fn show(&self, id: &str) -> Job {
        Job::new(self.json(["show", id, "--json"]))
    }

    /// The job's folder, wherever it is now.
    #[track_caller]
    pub fn job_dir(&self, id: &str) -> PathBuf {
        let open = self.home.join("jobs").join(id);
        let settled = self.home.join("history").join(id.get(..5).unwrap_or(id)).join(id);
        // Looked up twice: the job may move from one to the other between two looks.
        let found = [&open, &settled, &open, &settled].into_iter().find(|dir| dir.is_dir());
        found.unwrap_or_else(|| panic!("no folder of job `{id}` in `{}`", self.home.display())).clone()
    }

    /// The id of the one job that is open.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[track_caller]
    pub fn only_job(&self) -> String {
        let mut jobs = fs_err::read_dir(self.home().join("jobs")).unwrap();
        jobs.next().unwrap().unwrap().file_name().into_string().unwrap()
    }

    /// Which process supervises an open job, or did.
    #[track_caller]
    pub fn supervisor(&self, id: &str) -> u32 {
        let begin = fs::read(self.job_dir(id).join("begin.json")).unwrap();
        let begin: Value = serde_json::from_slice(&begin).unwrap();
        let pid = begin["by"]["supervisor"]["pid"].as_u64().and_then(|pid| pid.try_into().ok());
        pid.unwrap_or_else(|| panic!("no process supervises job `{id}`: {begin}"))
    }

    /// Ends the supervisor of a job at once, if it is still there.
    #[track_caller]
    pub fn end_supervisor(&self, id: &str) {
        #[cfg(unix)]
        let _ = crate::kill_if_there(self.supervisor(id));
        // Pids are soon reused there.
        #[cfg(windows)]
        crate::windows::end_supervisor(&self.job_dir(id));
    }

    /// Waits until an open job has ended and its supervisor is gone, so that no other process touches its records.
    #[track_caller]
    pub fn leave_alone(&self, id: &str) {
        let supervisor = self.supervisor(id);
        self.run(["wait", id]);
        eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
    }
}

impl World {
    /// Waits until no process works in this world any more: a supervisor whose launcher was killed may still be finding
    /// that out.
    #[track_caller]
    pub fn settle_down(&self) {
        eventually("everybody has left", || (!self.is_busy()).then_some(()));
    }

    /// Has the trash of a store emptied by `prune`, which may have to wait on Windows: as long as a process that is
    /// about to end has a file open, its folder stays. Elsewhere nothing is left there, and nothing is done.
    #[track_caller]
    pub fn empty_trash(&self, home: &Path) {
        let is_empty = || fs::read_dir(home.join("trash")).unwrap().next().is_none();
        if cfg!(windows) && !is_empty() {
            eventually("the trash is empty", || {
                let mut prune = self.command(["prune"]);
                prune.env("HEARBACK_HOME", home);
                run(prune);
                is_empty().then_some(())
            });
        }
    }

    #[cfg(any(target_os = "linux", windows))]
    fn is_busy(&self) -> bool {
        !crate::carrying(&format!("HEARBACK_HOME={}", self.home.display())).is_empty()
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn is_busy(&self) -> bool {
        false
    }
}

impl Drop for World {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        crate::linux::end_processes_of(&self.home);
        #[cfg(windows)]
        {
            crate::windows::end_recorded(&self.home);
            // To look at every process there is takes long under Wine. A process that still works in a folder mostly
            // keeps it from being removed, and after a failure any process may be left.
            let root = self.home.parent().expect("the home is in a folder of its own");
            if std::thread::panicking() || fs::remove_dir_all(root).is_err() {
                crate::windows::end_others(&self.home);
            }
        }
    }
}
