//! Which agent runs this process: found by its program among the processes above this one.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::agents::{AGENTS, Agent, LaunchingAgent, agent_of_program};
use hearback_core::message::clean_line;
use hearback_core::port::process::{BoundedRun, ProcessControl};
use hearback_core::{Exit, JobId};
use hearback_platform::{Ancestor, Native, from_os};

use crate::Hearback;

/// How long an agent may take to say its version.
const VERSION_WITHIN: Duration = Duration::from_secs(10);

/// The nearest agent above this process: an agent that another one started is the inner of the two.
pub(crate) fn nearest(native: Native) -> Option<(&'static Agent, Ancestor)> {
    native.ancestors().into_iter().find_map(|ancestor| Some((program_of(&ancestor)?.0, ancestor)))
}

/// The agent that launches a job, as it is to be recorded.
pub(crate) fn launching(native: Native) -> Option<LaunchingAgent> {
    let (agent, ancestor) = nearest(native)?;
    let program = program_of(&ancestor).map(|(_, program)| program).filter(|program| program.is_absolute());
    let cwd = ancestor.cwd.filter(|_| agent.sessions_have_a_directory);
    Some(LaunchingAgent {
        name: agent.name.to_owned(),
        program: program.map(|program| from_os(program.as_os_str())),
        cwd: cwd.map(|cwd| from_os(cwd.as_os_str())),
        process: native.identify(ancestor.pid).ok().flatten(),
    })
}

/// The agent that a process runs, and the file of its program: an executable, or a script that an interpreter runs.
fn program_of(ancestor: &Ancestor) -> Option<(&'static Agent, PathBuf)> {
    let at = |path: &Path| match &ancestor.cwd {
        Some(cwd) if path.components().count() > 1 => cwd.join(path),
        _ => path.to_owned(),
    };
    let known = |path: &Path| agent_of_program(path.file_name().and_then(OsStr::to_str)?);
    let executable = ancestor.executable.as_deref();
    let words = ancestor.arguments.iter().take(2).map(Path::new);
    executable.into_iter().chain(words).find_map(|path| Some((known(path)?, at(path))))
}

/// An agent, as far as it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenAgent {
    /// The agent.
    pub agent: &'static Agent,
    /// Its program, if it is installed.
    pub program: Option<PathBuf>,
    /// What it says its version is.
    pub version: Option<String>,
    /// Whether it runs this process.
    pub here: bool,
}

impl Hearback {
    /// Every agent that hearback knows. Each that is installed is asked for its version.
    pub fn agents(&self) -> Vec<SeenAgent> {
        let native = Native::default();
        let nearest = nearest(native).map(|(agent, _)| agent.name);
        let see = |agent: &'static Agent| {
            let program = native.find_program(agent.program);
            let version = program.as_deref().and_then(|program| self.version(native, program));
            SeenAgent { agent, program, version, here: nearest == Some(agent.name) }
        };
        AGENTS.iter().map(see).collect()
    }

    fn version(&self, native: Native, program: &Path) -> Option<String> {
        let ran = native.run_bounded(&BoundedRun {
            argv: vec![from_os(program.as_os_str()), "--version".into()],
            cwd: None,
            env: Vec::new(),
            stdin: Vec::new(),
            speaks_first: false,
            within: VERSION_WITHIN,
            output_max: 4096,
            mark: JobId::mint(self.now().as_millis().unsigned_abs(), std::process::id().into()),
            unless: Vec::new(),
        });
        let report = ran.ok().filter(|report| matches!(report.exit, Some(Exit::Exited { code: 0 })))?;
        let text = String::from_utf8_lossy(&report.stdout).into_owned();
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(clean_line)
    }

    /// The program that others call to reach this hearback.
    ///
    /// # Errors
    ///
    /// When it is unknown.
    pub fn program(&self) -> io::Result<PathBuf> {
        crate::supervisor::program(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn found(executable: &str, arguments: &[&str]) -> Option<(&'static str, PathBuf)> {
        let ancestor = Ancestor {
            pid: 7,
            executable: Some(executable.into()),
            arguments: arguments.iter().map(OsString::from).collect(),
            cwd: Some("/project".into()),
        };
        program_of(&ancestor).map(|(agent, program)| (agent.name, program))
    }

    #[test]
    fn an_agent_is_known_by_its_executable_or_by_its_script() {
        assert_eq!(found("/opt/claude", &["claude"]), Some(("claude", "/opt/claude".into())));
        let script = ["node", "/opt/bin/qwen", "-p", "x"];
        assert_eq!(found("/usr/bin/node", &script), Some(("qwen", "/opt/bin/qwen".into())));
        assert_eq!(
            found("/usr/bin/node", &["node", "bin/gemini.js"]),
            Some(("gemini", "/project/bin/gemini.js".into()))
        );
        // Only its own program counts, and not what it is about.
        assert_eq!(found("/bin/grep", &["grep", "-r", "claude"]), None);
        assert_eq!(found("/bin/bash", &["bash", "-c", "codex"]), None);
    }
}
