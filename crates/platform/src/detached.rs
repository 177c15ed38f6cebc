//! A detached program without a store or a supervisor: start it, find it again from another process, end its tree.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hearback_core::port::process::{DetachedRequest, Presence, ProcessControl, SweepReport};
use hearback_core::{ProcessIdentity, StartErrorKind};
use serde::{Deserialize, Serialize};

use crate::{Mark, Native, program, sys};

/// A program that is going to outlive this process.
///
/// It gets no terminal and no handle of this process, null streams unless [`output`](Self::output) is set, and a mark
/// in its environment. On Unix it leads a session of its own.
///
/// ```
/// use std::time::Duration;
/// use hearback_platform::{Detached, DetachedTree};
///
/// # if cfg!(unix) {
/// let tree = Detached::new("sleep").arg("600").start()?;
/// let stored = serde_json::to_string(&tree)?;
///
/// // Later, in another process:
/// let tree: DetachedTree = serde_json::from_str(&stored)?;
/// let report = tree.end(Duration::from_secs(5), Duration::from_secs(2))?;
/// assert_eq!((report.ended, report.survivors.len()), (1, 0));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Detached {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    env: Vec<(OsString, Option<OsString>)>,
    mark: Option<Mark>,
    output: Option<File>,
}

impl Detached {
    /// A program by its path, or by its name on the PATH.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: vec![], cwd: None, env: vec![], mark: None, output: None }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets its working directory. The default is that of this process.
    #[must_use]
    pub fn current_dir(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets a variable in the environment that it inherits.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().into(), Some(value.as_ref().into())));
        self
    }

    /// Removes a variable from the environment that it inherits.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().into(), None));
        self
    }

    /// Chooses the mark of its processes. The default is the variable `DETACHED_TREE` with a random value.
    ///
    /// Two trees that have the same mark are one: what ends the first ends the second.
    #[must_use]
    pub fn mark(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.mark = Some(Mark { name: name.into(), value: value.into() });
        self
    }

    /// Sends its output and its errors to a file.
    #[must_use]
    pub fn output(mut self, file: File) -> Self {
        self.output = Some(file);
        self
    }

    /// Starts it. When this returns, the program runs, and its identity is known.
    ///
    /// On Unix the program is not executed before it has been identified: if this process dies earlier, it never runs.
    ///
    /// On Windows, inside a Job Object that does not allow its processes to leave, it ends with that Job Object. A
    /// service manager that ends a whole unit, as systemd does, ends it as well.
    ///
    /// # Errors
    ///
    /// When there is no such program, or it cannot be executed, or the mark cannot be a variable.
    pub fn start(self) -> io::Result<DetachedTree> {
        let home = match self.cwd {
            Some(cwd) => cwd,
            None => std::env::current_dir()?,
        };
        let mark = match self.mark {
            Some(mark) => checked(mark)?,
            None => random_mark()?,
        };
        let program = program::find(&self.program, &home).map_err(|error| {
            let kind = match error.kind {
                StartErrorKind::NotFound => io::ErrorKind::NotFound,
                _ => io::ErrorKind::PermissionDenied,
            };
            io::Error::new(kind, error.message)
        })?;
        let mut env = self.env;
        env.push((mark.name.clone().into(), Some(mark.value.clone().into())));
        let request = DetachedRequest { program, args: self.args, home, env };
        let leader = sys::detach::spawn_leader(&request, self.output)?;
        Ok(DetachedTree { leader, mark })
    }
}

/// A detached program and everything that it has started. It can be stored, and used by another process later.
///
/// # What belongs to it
///
/// Every process that carries the mark. On Unix also the descendants of such a process, and, while the first process
/// runs, every process of its group and session.
///
/// # What can escape
///
/// A process that clears its environment: on Windows always; on Unix if it has left the session as well, or the first
/// process has ended, and its parent has ended too. A process of another user, whose environment cannot be read. A
/// program that is started from inside by [`Detached`] with the same variable leads a tree of its own. This is no
/// sandbox.
///
/// Nothing is signalled that is not proved to belong to the tree. On Unix, a process that shares only the number of the
/// group or session with a first process that is gone is named as a survivor, and is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachedTree {
    /// The first process: the program that was started.
    pub leader: ProcessIdentity,
    /// What its processes carry.
    pub mark: Mark,
}

impl DetachedTree {
    /// Whether the first process is still there. A process that has got its pid later is not taken for it.
    pub fn presence(&self) -> Presence {
        Native::default().presence(&self.leader)
    }

    /// The processes that belong to the tree now; also when the first one has ended.
    ///
    /// # Errors
    ///
    /// When the processes of this machine cannot be listed.
    pub fn members(&self) -> io::Result<Vec<ProcessIdentity>> {
        sys::tree::members(&self.mark.membership(), &self.leader)
    }

    /// Ends every process of the tree, except the caller, and reports how many ended and which survived.
    ///
    /// Terminates all of them first, unless `grace` is zero, and waits until `grace` has passed or none is left. Then
    /// kills the rest within `within`, including those that are started meanwhile. A tree that has ended is no error.
    ///
    /// Windows has no signal by which a process without a console can be terminated: there all are killed at once, and
    /// the report says that none was terminated.
    ///
    /// # Errors
    ///
    /// When the processes of this machine cannot be listed. Then nothing is known about the tree.
    pub fn end(&self, grace: Duration, within: Duration) -> io::Result<SweepReport> {
        let mut report = sys::tree::sweep(&self.mark.membership(), Some(&self.leader), grace, within)?;
        // What cannot be looked at, as from another container, is not called gone.
        if self.presence() != Presence::Gone
            && self.leader.pid != std::process::id()
            && !report.survivors.contains(&self.leader)
        {
            report.survivors.push(self.leader.clone());
        }
        Ok(report)
    }
}

/// The mark, if a process can carry it.
fn checked(mark: Mark) -> io::Result<Mark> {
    let is_bad = mark.name.is_empty() || mark.name.contains(['=', '\0']);
    if is_bad || mark.value.is_empty() || mark.value.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the mark cannot be a variable"));
    }
    Ok(mark)
}

fn random_mark() -> io::Result<Mark> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let value = format!("{:032x}", u128::from_ne_bytes(bytes));
    Ok(Mark { name: "DETACHED_TREE".into(), value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_no_variable_is_refused() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", ""), ("A", "x\0y")] {
            let refused = Detached::new("anything").mark(name, value).start().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name:?} {value:?}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_refused() {
        let refused = Detached::new("no-such-program-anywhere").start().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
    }
}
