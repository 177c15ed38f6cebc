//! What is tried with each agent.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::candidate::{Candidate, WhenOpen};
use super::hostile;
use super::install::Installed;
use super::stage::{PRINTS_RESULT, RESULT, Stage, until};
use super::terminal::Terminal;
use crate::workspace::Workspace;

/// A session that no agent has.
const NO_SESSION: &str = "00000000-0000-4000-8000-000000000000";

/// One trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    /// The agent has ended when the job ends.
    Closed,
    /// It is open in a terminal and waits for a prompt.
    Idle,
    /// It is open in a terminal and in a turn.
    Busy,
    /// The job is launched from a folder below that of the session.
    Below,
    /// The agent is not on the `PATH` of the shell that launches the job.
    NotOnPath,
    /// The session does not exist.
    NoSession,
    /// What the job wrote tries to act in a session that is closed.
    Hostile,
    /// The same in a session that is open.
    HostileWhenOpen,
    /// The same in an open session that only hearback's hook reaches.
    Hook,
    /// The job is launched through hearback's MCP server.
    Mcp,
}

impl Trial {
    pub(super) const ALL: [Self; 10] = [
        Self::Closed,
        Self::Idle,
        Self::Busy,
        Self::Below,
        Self::NotOnPath,
        Self::NoSession,
        Self::Hostile,
        Self::HostileWhenOpen,
        Self::Hook,
        Self::Mcp,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Idle => "open",
            Self::Busy => "busy",
            Self::Below => "subdirectory",
            Self::NotOnPath => "not on PATH",
            Self::NoSession => "no such session",
            Self::Hostile => "only data, closed",
            Self::HostileWhenOpen => "only data, open",
            Self::Hook => "by hook",
            Self::Mcp => "through MCP",
        }
    }

    /// The name as one word, for folders and the command line.
    pub(super) fn key(self) -> String {
        self.name().replace(',', "").replace(' ', "-")
    }

    /// What was seen.
    fn run(self, stage: &Stage, candidate: &Candidate) -> Result<&'static str> {
        match self {
            Self::Closed => scenario_140_a_closed_session_is_woken_once(stage, candidate, ""),
            Self::Below => scenario_140_a_closed_session_is_woken_once(stage, candidate, "cd below && "),
            Self::NotOnPath => {
                scenario_140_a_closed_session_is_woken_once(stage, candidate, "PATH=/usr/bin:/bin ")
            }
            Self::NoSession => scenario_140_a_session_that_does_not_exist_is_gone(stage),
            Self::Idle => open(stage, candidate, "", 2.0),
            Self::Busy => open(stage, candidate, "[[pause 4]]", 1.0),
            Self::Hostile => what_a_job_wrote_stays_data(stage, candidate),
            Self::HostileWhenOpen | Self::Hook => {
                what_a_job_wrote_stays_data_in_an_open_session(stage, candidate)
            }
            Self::Mcp => a_job_of_the_mcp_server_wakes_its_session(stage, candidate),
        }
    }

    /// Why it is not made with this agent.
    fn excuse(self, candidate: &Candidate) -> Option<&'static str> {
        let own = candidate.not_tried.iter().find(|(other, _)| *other == self).map(|(_, reason)| *reason);
        let no_way_in = self == Self::HostileWhenOpen && candidate.when_open == WhenOpen::Waits;
        let no_hook = self == Self::Hook && candidate.only_hook.is_none();
        own.or(no_way_in.then_some("no way in")).or(no_hook.then_some("has no hook"))
    }
}

/// The first turn launches a job and ends, and the agent with it. It hears the result in the same conversation, once.
fn scenario_140_a_closed_session_is_woken_once(
    stage: &Stage,
    candidate: &Candidate,
    before: &str,
) -> Result<&'static str> {
    stage.headless(candidate, &stage.launch_prompt(candidate, before, 2.0))?;
    woken_once(stage)
}

/// The agent is open.
fn open(stage: &Stage, candidate: &Candidate, then: &str, after: f64) -> Result<&'static str> {
    match candidate.when_open {
        WhenOpen::Woken => scenario_141_an_open_session_shows_the_wake_up(stage, candidate, then, after),
        WhenOpen::Waits => scenario_141_an_open_session_without_a_way_in_is_woken_when_it_is_closed(
            stage, candidate, then, after,
        ),
    }
}

/// The person sees the result there.
fn scenario_141_an_open_session_shows_the_wake_up(
    stage: &Stage,
    candidate: &Candidate,
    then: &str,
    after: f64,
) -> Result<&'static str> {
    let terminal = launched_in_terminal(stage, candidate, &stage.launch_prompt(candidate, "", after), then)?;
    terminal.shows(&format!("seen {RESULT}"))?;
    let promised =
        stage.model.heard().iter().any(|heard| heard.request.contains("end your turn, do not poll"));
    ensure!(promised, "the launch did not say that the session is woken");
    woken_once(stage)
}

/// Nothing is called delivered that no person and no model has seen. `followups` says why it waits.
fn scenario_141_an_open_session_without_a_way_in_is_woken_when_it_is_closed(
    stage: &Stage,
    candidate: &Candidate,
    then: &str,
    after: f64,
) -> Result<&'static str> {
    let terminal = launched_in_terminal(stage, candidate, &stage.launch_prompt(candidate, "", after), then)?;
    until(|| {
        let waiting = stage.ask(&["followups", "--json"])?;
        ensure!(waiting.to_string().contains("the session is open in"), "no reason to wait: {waiting}");
        Ok(())
    })?;
    let job = stage.job()?;
    ensure!(job["follow_up"]["state"] == "pending", "it does not wait: {}", job["follow_up"]);
    ensure!(stage.heard() == 0, "the model heard of it while the session was open");
    terminal.close(candidate)?;
    woken_once(stage)?;
    Ok("waits")
}

/// Opens the agent, has it launch a job, and tells it something else if there is more.
fn launched_in_terminal<'a>(
    stage: &'a Stage,
    candidate: &Candidate,
    prompt: &str,
    then: &str,
) -> Result<Terminal<'a>> {
    let terminal = Terminal::open(stage, candidate)?;
    terminal.prompt(prompt)?;
    until(|| stage.job())?;
    if !then.is_empty() {
        terminal.shows("answer")?;
        terminal.prompt(&format!("{then} and say something"))?;
    }
    Ok(terminal)
}

/// A session that does not exist is gone, and no other is woken or begun.
fn scenario_140_a_session_that_does_not_exist_is_gone(stage: &Stage) -> Result<&'static str> {
    let sink = stage.name;
    let launch = ["launch", "--json", "--session", NO_SESSION, "--sink", sink, "--", "sh", "-c", "echo over"];
    stage.ask(&launch)?;
    let job = until(|| {
        let job = stage.job()?;
        let follow_up = &job["follow_up"];
        let has_tried = follow_up["state"] == "dead_letter" || follow_up["error"].is_string();
        ensure!(has_tried, "no attempt has ended: {follow_up}");
        Ok(job)
    })?;
    stage.note("gone.json", &job.to_string())?;
    ensure!(job["follow_up"]["state"] == "dead_letter", "it is not gone: {}", job["follow_up"]);
    ensure!(stage.model.heard().is_empty(), "another conversation was told");
    Ok("yes")
}

/// Nothing in a command, a label, a directory or output makes the agent do anything.
fn what_a_job_wrote_stays_data(stage: &Stage, candidate: &Candidate) -> Result<&'static str> {
    let command = hostile::prepare(stage, &stage.launch(candidate))?;
    stage.headless(candidate, &stage.prompt(&format!("[[run {command}]]")))?;
    woken_once(stage)?;
    hostile::stayed_data(stage)?;
    Ok("yes")
}

fn what_a_job_wrote_stays_data_in_an_open_session(
    stage: &Stage,
    candidate: &Candidate,
) -> Result<&'static str> {
    let command = hostile::prepare(stage, &stage.launch(candidate))?;
    let prompt = stage.prompt(&format!("[[run {command}]]"));
    let terminal = launched_in_terminal(stage, candidate, &prompt, "")?;
    terminal.shows(&format!("seen {RESULT}"))?;
    woken_once(stage)?;
    hostile::stayed_data(stage)?;
    Ok("yes")
}

/// The model launches a job by the tool of hearback's server. If the server learns the session, that is woken once;
/// otherwise the answer says that it is not.
fn a_job_of_the_mcp_server_wakes_its_session(stage: &Stage, candidate: &Candidate) -> Result<&'static str> {
    stage.headless(candidate, &stage.prompt(&format!("[[launch sleep 2; {PRINTS_RESULT}]]")))?;
    stage.job().context("through the MCP server")?;
    if candidate.mcp_knows_session {
        return woken_once(stage);
    }
    let told = stage.model.heard().iter().any(|heard| heard.request.contains("No process will wake you"));
    ensure!(told, "the model was not told that it is not woken");
    Ok("not woken, says so")
}

/// The follow-up has arrived, in the same conversation, once.
fn woken_once(stage: &Stage) -> Result<&'static str> {
    stage.job()?;
    stage.follow_up(&["delivered", "queued"])?;
    match stage.heard() {
        1 => Ok("yes"),
        0 => {
            bail!("its follow-up counts as delivered, and the model has not heard of it in that conversation")
        }
        times => bail!("the model heard of it {times} times"),
    }
}

/// What came of the trials with one agent.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) version: String,
    /// For each trial what was seen, or why it was not made.
    pub(super) results: Vec<Outcome>,
}

/// What came of one trial.
pub(super) enum Outcome {
    /// What was seen.
    Passed(&'static str),
    Failed,
    NotTried(String),
    /// Other trials were asked for.
    NotAsked,
}

impl Row {
    pub(super) fn of(
        candidate: &Candidate,
        installed: &Installed,
        workspace: &Workspace,
        place: &Path,
        only: &[Trial],
    ) -> Result<Self> {
        let mut results = Vec::new();
        for trial in Trial::ALL {
            let is_asked = only.is_empty() || only.contains(&trial);
            let outcome = match trial.excuse(candidate) {
                _ if !is_asked => Outcome::NotAsked,
                Some(reason) => Outcome::NotTried(reason.to_owned()),
                None => {
                    let begun = Instant::now();
                    let stage = Stage::new(workspace, place, candidate, installed, trial)?;
                    let outcome = trial.run(&stage, candidate);
                    let (name, took) = (candidate.name, begun.elapsed().as_secs());
                    match outcome {
                        Ok(seen) => {
                            eprintln!("{name} {}: {seen} ({took} s)", trial.name());
                            Outcome::Passed(seen)
                        }
                        Err(why) => {
                            stage.show();
                            eprintln!("{name} {}: FAILED after {took} s: {why:#}", trial.name());
                            Outcome::Failed
                        }
                    }
                }
            };
            results.push(outcome);
        }
        Ok(Self { name: candidate.name, version: installed.version.clone(), results })
    }

    pub(super) fn missing(candidate: &Candidate, why: String) -> Self {
        let results = Trial::ALL.iter().map(|_| Outcome::NotTried(why.clone())).collect();
        Self { name: candidate.name, version: "-".into(), results }
    }

    pub(super) fn failures(&self) -> usize {
        self.results.iter().filter(|result| matches!(result, Outcome::Failed)).count()
    }

    pub(super) fn passes(&self) -> usize {
        self.results.iter().filter(|result| matches!(result, Outcome::Passed(_))).count()
    }
}
