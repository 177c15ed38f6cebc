//! Marks: variables in the environment by which the processes of a tree are known again.

use std::ffi::{OsStr, OsString};

use hearback_core::JobId;
use hearback_core::port::executor::ANSWER_VARIABLE;
use hearback_core::port::process::{DetachedRequest, SupervisorRequest};
use serde::{Deserialize, Serialize};

/// A variable and its value, in the environment of every process of one tree.
///
/// A process hands it on to what it starts, unless it clears its environment. The value must be unique: all processes
/// that carry the same mark are one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The name of the variable.
    pub name: String,
    /// What it is set to.
    pub value: String,
}

impl Mark {
    /// By what the tree of a detached program is known. A program that was detached from inside of it has the variable
    /// with another value, and leads a tree of its own.
    pub(crate) fn membership(&self) -> Membership {
        Membership {
            variables: vec![self.name.clone()],
            value: self.value.clone(),
            boundary: Boundary::OtherValue,
        }
    }
}

/// The names that [`Native`](crate::Native) uses for processes and their environment. The default is hearback's own.
///
/// Two programs that use different names do not see each other's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The variable that marks the processes of a job with the job's id.
    pub job: &'static str,
    /// The variable that marks the processes of a bounded run. Jobs that are launched from it do not carry it.
    pub bounded_run: &'static str,
    /// The variable that marks a supervisor, and not its target: a job's tree ends there. In another detached program
    /// it holds the command line.
    pub supervisor: &'static str,
    /// The variable that names the file of its answer to a target.
    pub answer: &'static str,
    /// The variable that names the owner of its Job Object to a process, on Windows.
    pub owner: &'static str,
    /// The first argument of a program that is executed as a supervisor; the second is the job's id.
    pub supervise_command: &'static str,
}

impl Names {
    /// The names of hearback.
    pub const HEARBACK: Self = Self {
        job: "HEARBACK_JOB",
        bounded_run: "HEARBACK_BOUNDED_RUN",
        supervisor: "HEARBACK_SUPERVISOR",
        answer: ANSWER_VARIABLE,
        owner: "HEARBACK_OWNER",
        supervise_command: "__supervise",
    };

    /// By what the processes of a job or of a bounded run are known.
    pub(crate) fn membership(&self, mark: &JobId) -> Membership {
        Membership {
            variables: vec![self.job.to_owned(), self.bounded_run.to_owned()],
            value: mark.to_string(),
            boundary: Boundary::Detached { variable: self.supervisor, command: self.supervise_command },
        }
    }

    /// A supervisor as a detached program.
    pub(crate) fn supervisor(&self, request: &SupervisorRequest) -> DetachedRequest {
        let job = request.job.as_str();
        let request = DetachedRequest {
            program: request.program.clone(),
            args: vec![self.supervise_command.into(), job.into()],
            home: request.home.clone(),
            env: request.env.clone(),
        };
        self.marked(request, job.as_ref())
    }

    /// A detached program that supervises nothing. Its mark is its command line, with a space between the words: a
    /// process that inherits the variable has another command line, and is not taken for it.
    pub(crate) fn detached(&self, request: &DetachedRequest) -> DetachedRequest {
        let words = request.args.iter().map(|argument| &**argument);
        let words: Vec<_> = std::iter::once(request.program.as_os_str()).chain(words).collect();
        self.marked(request.clone(), &words.join(OsStr::new(" ")))
    }

    /// The request, with an environment that belongs to no job and to no bounded run.
    fn marked(&self, request: DetachedRequest, mark: &OsStr) -> DetachedRequest {
        let change = |name: &str, value: Option<&OsStr>| (OsString::from(name), value.map(OsStr::to_owned));
        // A job that launches another does not lend it the place of its own answer.
        let mut env = vec![change(self.answer, None)];
        env.extend(request.env);
        env.extend([
            change(self.supervisor, Some(mark)),
            change(self.job, None),
            change(self.bounded_run, None),
        ]);
        DetachedRequest { env, ..request }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::HEARBACK
    }
}

/// By what the processes of one tree are known.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    /// A process belongs to the tree if one of these variables holds `value`.
    pub(crate) variables: Vec<String>,
    pub(crate) value: String,
    #[cfg_attr(windows, expect(dead_code, reason = "on Windows only marked processes belong to a tree"))]
    pub(crate) boundary: Boundary,
}

#[cfg(unix)]
impl Membership {
    /// All variables that say something about the tree.
    pub(crate) fn all_variables(&self) -> impl Iterator<Item = &str> {
        let boundary = match self.boundary {
            Boundary::Detached { variable, .. } => Some(variable),
            Boundary::OtherValue => None,
        };
        self.variables.iter().map(String::as_str).chain(boundary)
    }
}

/// Where a tree ends although it has descendants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Boundary {
    /// At a process with this variable that was executed as it says: as a supervisor, by this command, or as another
    /// detached program. Only Linux shows what a process was executed as; elsewhere the variable is believed.
    #[cfg_attr(windows, expect(dead_code, reason = "command lines are compared on Unix alone"))]
    Detached { variable: &'static str, command: &'static str },
    /// At a process that has one of the tree's variables with another value.
    OtherValue,
}
