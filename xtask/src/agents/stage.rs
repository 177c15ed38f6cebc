//! A place for one trial with one agent: a home, a project, a store and a model of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde_json::Value;

use super::candidate::Candidate;
use super::install::Installed;
use super::leftovers;
use super::model::{Heard, Model};
use super::settings::McpServer;
use super::trial::Trial;
use crate::workspace::Workspace;

/// What the job prints. It is worked out, so that it stands in no command and no prompt.
pub(super) const RESULT: &str = "RESULT-4711";
pub(super) const PRINTS_RESULT: &str = "echo RESULT-$((4710+1))";
/// What the model is told first.
const FIRST_WORDS: &str = "In this trial, please";
/// How long anything may take: agents start slowly on a loaded machine.
const WITHIN: Duration = Duration::from_secs(180);
/// How much of a file is shown when a trial has failed.
const SHOWN_LINES: usize = 40;

/// One trial's place.
pub(super) struct Stage {
    root: PathBuf,
    /// The hearback that is tried.
    pub(super) hearback: PathBuf,
    pub(super) model: Model,
    environment: Vec<(String, String)>,
    pub(super) name: &'static str,
}

impl Stage {
    pub(super) fn new(
        workspace: &Workspace,
        place: &Path,
        candidate: &Candidate,
        installed: &Installed,
        trial: Trial,
    ) -> Result<Self> {
        let root = place.join("stage").join(candidate.name).join(trial.key());
        // A run that was cut short has ended nothing.
        leftovers::end(&store(&root))?;
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        for folder in ["home", "project/below", "bin"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let hearback = workspace.target_directory()?.join("debug").join("hearback");
        let model = Model::start(RESULT)?;
        // Agents look at the repository that a project is part of, and that is not ours.
        let project = root.join("project").display().to_string();
        workspace.capture("git", &["init", "--quiet", &project])?;
        let mut stage = Self { root, hearback, model, environment: Vec::new(), name: candidate.name };
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", installed.programs.display());
        let own = [
            ("PATH", path),
            ("HOME", stage.home().display().to_string()),
            ("HEARBACK_HOME", store(&stage.root).display().to_string()),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            // Some agents install packages of their own into each home.
            ("npm_config_cache", place.join("npm").display().to_string()),
        ];
        let only_hook = candidate.only_hook.filter(|_| trial == Trial::Hook);
        let variables = own
            .into_iter()
            .chain((candidate.variables)(&stage))
            .chain(only_hook.map(|variables| variables(&stage)).unwrap_or_default());
        stage.environment = variables.map(|(name, value)| (name.to_owned(), value)).collect();
        let server = McpServer {
            command: stage.hearback.display().to_string(),
            args: ["mcp", "--sink", candidate.name].map(str::to_owned).to_vec(),
            env: stage.environment.iter().cloned().collect(),
        };
        (candidate.configure)(&stage, (trial == Trial::Mcp).then_some(&server))?;
        // As the documentation tells users to do.
        stage.ask(&["agent", "setup", candidate.name, "--write", "--json"])?;
        Ok(stage)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(super) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// What the model is told first. No other conversation has these words.
    pub(super) fn prompt(&self, order: &str) -> String {
        format!("{FIRST_WORDS} {order}")
    }

    /// The beginning of a command that launches a job from the agent's own shell.
    pub(super) fn launch(&self, candidate: &Candidate) -> String {
        let kept_back: String = self
            .environment
            .iter()
            .filter(|(name, _)| candidate.keeps_back.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value} "))
            .collect();
        let (hearback, sink, session) = (self.hearback.display(), self.name, candidate.names_session);
        format!("{kept_back}{hearback} launch --sink {sink} {session}")
    }

    /// The words that make a model launch a job in the agent's own shell. The job ends after so many seconds.
    pub(super) fn launch_prompt(&self, candidate: &Candidate, before: &str, after: f64) -> String {
        let launch = self.launch(candidate);
        self.prompt(&format!("[[run {before}{launch} -- sh -c 'sleep {after}; {PRINTS_RESULT}']]"))
    }

    /// A command in the project, with the environment of the agent and no other.
    pub(super) fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("env");
        command.arg("-i").args(self.environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(words).current_dir(self.project()).stdin(Stdio::null());
        command
    }

    /// Runs one turn of a new session without a terminal.
    pub(super) fn headless(&self, candidate: &Candidate, prompt: &str) -> Result<()> {
        let words: Vec<_> = candidate.headless.iter().map(|word| word.replace("{prompt}", prompt)).collect();
        let kept = |name: &str| fs::File::create(self.root.join(name));
        let mut agent = self
            .command(&words)
            .stdout(kept("headless.out")?.into_parts().0)
            .stderr(kept("headless.err")?.into_parts().0)
            .spawn()
            .context("the agent cannot be started")?;
        let ended = until(|| agent.try_wait()?.context("the first turn does not end"));
        if ended.is_err() {
            agent.kill()?;
            agent.wait()?;
        }
        match ended? {
            status if status.success() => Ok(()),
            status => bail!("the first turn failed with {status}"),
        }
    }

    /// Keeps text for a person who looks later.
    pub(super) fn note(&self, name: &str, text: &str) -> Result<()> {
        Ok(fs::write(self.root.join(name), text)?)
    }

    /// What hearback says in JSON.
    pub(super) fn ask(&self, words: &[&str]) -> Result<Value> {
        let hearback = self.hearback.display().to_string();
        let words: Vec<_> = [hearback.as_str()].iter().chain(words).map(|word| (*word).to_owned()).collect();
        let output = self.command(&words).output()?;
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("hearback {words:?} said no JSON: {}", String::from_utf8_lossy(&output.stderr))
        })
    }

    /// The only job, as hearback shows it.
    pub(super) fn job(&self) -> Result<Value> {
        let listed = self.ask(&["list", "--all", "--json"])?;
        match listed["jobs"].as_array().map(Vec::as_slice) {
            Some([job]) => Ok(job.clone()),
            Some([]) => bail!("the agent launched no job"),
            _ => bail!("more than one job: {listed}"),
        }
    }

    /// Waits until the follow-up of the only job is in one of these states.
    pub(super) fn follow_up(&self, states: &[&str]) -> Result<Value> {
        until(|| {
            let job = self.job()?;
            let state = job["follow_up"]["state"].as_str().unwrap_or_default();
            if states.contains(&state) {
                Ok(job)
            } else {
                bail!("its follow-up is `{state}`: {}", job["follow_up"])
            }
        })
    }

    /// Shows what the agent said, what its terminal showed and what the model heard.
    pub(super) fn show(&self) {
        let _ = self.note("model.txt", &self.model.log());
        let requests: Vec<_> = self.model.heard().into_iter().map(|heard| heard.request).collect();
        let _ = self.note("requests.jsonl", &requests.join("\n"));
        for name in ["headless.out", "headless.err", "screen.txt", "model.txt"] {
            let Ok(text) = fs::read_to_string(self.root.join(name)) else { continue };
            let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
            eprintln!("--- {name}\n{}", last.join("\n"));
        }
    }

    /// How often the model has been told the result in the conversation of this trial.
    pub(super) fn heard(&self) -> usize {
        let heard = self.model.heard();
        let in_place =
            |heard: &&Heard| heard.news.contains(RESULT) && heard.conversation.contains(FIRST_WORDS);
        heard.iter().filter(in_place).count()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = leftovers::end(&store(&self.root)) {
            eprintln!("{}: {error:#}", self.name);
        }
    }
}

fn store(root: &Path) -> PathBuf {
    root.join("store")
}

/// Looks until it is so.
pub(super) fn until<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + WITHIN;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context(format!("not within {WITHIN:?}")));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
