//! The machine that this process runs on: every port, handed to `sys`.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hearback_core::port::clock::Clock;
use hearback_core::port::executor::{Executor, Running, Script, StartRequest};
use hearback_core::port::process::{
    Errand, ErrandReport, Presence, ProcessControl, ProcessIdentity, SupervisorLink, SupervisorRequest,
    SweepReport,
};
use hearback_core::{BootId, Exit, Here, JobId, OsText, StartError, Timestamp};

use crate::sys;

/// How a file gets a name that must not be taken from anybody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Naming {
    /// As the file system does it best, with the fall-back where it must.
    #[default]
    Best,
    /// By a second link, as on a file system that cannot rename without replacing. For tests of the fall-back.
    #[cfg(test)]
    Link,
}

/// The operating system underneath.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native {
    pub(crate) naming: Naming,
}

impl Native {
    /// Finds a program on the PATH.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        crate::program::find(name.as_ref(), Path::new("/")).ok()
    }

    /// Runs a program in front of us, with our streams, until it ends.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    #[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
    pub fn run_in_front(&self, argv: &[OsString], env: &[(OsString, OsString)]) -> io::Result<Exit> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).envs(env.iter().map(|(name, value)| (name, value)));
        Ok(sys::errand::exit_of(command.status()?))
    }

    /// Lets a write beyond a file-size limit fail in this process, so that it can be reported, instead of ending it.
    pub fn survive_size_limits(&self) {
        sys::detach::survive_size_limits();
    }
}

impl Clock for Native {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else takes")]
    fn wall(&self) -> Timestamp {
        let now = std::time::SystemTime::now();
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(match now.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        })
    }

    fn awake(&self) -> Duration {
        sys::clock::awake()
    }

    fn since_boot(&self) -> Duration {
        sys::clock::since_boot()
    }

    fn boot(&self) -> Option<BootId> {
        sys::identity::boot()
    }
}

impl ProcessControl for Native {
    fn here(&self) -> Here {
        Here { boot: sys::identity::boot(), machine: sys::identity::machine() }
    }

    fn me(&self) -> io::Result<ProcessIdentity> {
        self.identify(std::process::id())?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn identify(&self, pid: u32) -> io::Result<Option<ProcessIdentity>> {
        sys::identity::identify(pid)
    }

    fn presence(&self, who: &ProcessIdentity) -> Presence {
        let differs =
            |ours: &Option<BootId>| matches!((&who.boot, ours), (Some(then), Some(now)) if then != now);
        if differs(&sys::identity::boot()) {
            return Presence::Gone;
        }
        // Seen from another space of pids, the number names somebody else.
        if who.scope != sys::identity::scope() {
            return Presence::Unproved;
        }
        match sys::identity::identify(who.pid) {
            Ok(Some(found)) if found.started == who.started => Presence::Same,
            Ok(_) => Presence::Gone,
            Err(_) => Presence::Unproved,
        }
    }

    fn is_stopped(&self, who: &ProcessIdentity) -> bool {
        self.presence(who) == Presence::Same && sys::identity::is_stopped(who.pid)
    }

    fn spawn_supervisor(&self, request: &SupervisorRequest) -> io::Result<Box<dyn SupervisorLink>> {
        sys::detach::spawn_supervisor(request)
    }

    fn run_errand(&self, errand: &Errand) -> Result<ErrandReport, StartError> {
        sys::errand::run(errand)
    }

    fn ring(&self, bell: &Path) -> io::Result<bool> {
        sys::bell::ring(bell)
    }

    fn end_by_force(&self, who: &ProcessIdentity) -> io::Result<()> {
        match self.presence(who) {
            Presence::Same => sys::tree::end_by_force(who),
            Presence::Gone | Presence::Unproved => Ok(()),
        }
    }

    fn sweep(
        &self,
        job: &JobId,
        target: Option<&ProcessIdentity>,
        within: Duration,
    ) -> io::Result<SweepReport> {
        sys::tree::sweep(job, target, within)
    }
}

impl Executor for Native {
    fn script(&self, text: &str, program: Option<&str>, cwd: &OsText) -> Result<Script, StartError> {
        sys::shell::script(text, program, Path::new(&sys::text::to_os(cwd)))
    }

    fn start(&self, request: &StartRequest<'_>) -> Result<Box<dyn Running>, StartError> {
        sys::executor::start(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::suite;

    #[test]
    fn native_passes_the_suites_of_its_ports() {
        suite::clock(&Native::default());
        suite::process(&Native::default());
        let dir = tempfile::tempdir().unwrap();
        suite::disk(&Native::default(), &dir.path().join("new").join("home"));
    }

    #[test]
    fn the_fall_back_for_naming_keeps_the_same_promises() {
        let dir = tempfile::tempdir().unwrap();
        suite::disk(&Native { naming: Naming::Link }, &dir.path().join("home"));
    }
}
