//! What is tried with each agent.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::candidate::Candidate;
use super::install::Installed;
use super::stage::{RESULT, Stage, until};
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
}

impl Trial {
    pub(super) const ALL: [Self; 6] =
        [Self::Closed, Self::Idle, Self::Busy, Self::Below, Self::NotOnPath, Self::NoSession];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Idle => "open",
            Self::Busy => "busy",
            Self::Below => "subdirectory",
            Self::NotOnPath => "not on PATH",
            Self::NoSession => "no such session",
        }
    }

    fn run(self, stage: &Stage, candidate: &Candidate) -> Result<()> {
        match self {
            Self::Closed => scenario_140_a_closed_session_is_woken_once(stage, candidate, ""),
            Self::Below => scenario_140_a_closed_session_is_woken_once(stage, candidate, "cd below && "),
            Self::NotOnPath => {
                scenario_140_a_closed_session_is_woken_once(stage, candidate, "PATH=/usr/bin:/bin ")
            }
            Self::Idle => scenario_141_an_open_session_shows_the_wake_up(stage, candidate, "", 2.0),
            Self::Busy => {
                scenario_141_an_open_session_shows_the_wake_up(stage, candidate, "[[pause 4]]", 1.0)
            }
            Self::NoSession => scenario_140_a_session_that_does_not_exist_is_gone(stage),
        }
    }
}

/// The first turn launches a job and ends, and the agent with it. It hears the result in the same conversation, once.
fn scenario_140_a_closed_session_is_woken_once(
    stage: &Stage,
    candidate: &Candidate,
    before: &str,
) -> Result<()> {
    let prompt = stage.launch(before, 2.0);
    stage.headless(candidate, &prompt)?;
    stage.job()?;
    stage.follow_up(&["delivered", "queued"])?;
    heard_once(stage, &prompt)
}

/// The agent is open, and the person sees the result there.
fn scenario_141_an_open_session_shows_the_wake_up(
    stage: &Stage,
    candidate: &Candidate,
    then: &str,
    after: f64,
) -> Result<()> {
    let terminal = Terminal::open(stage, candidate)?;
    let prompt = stage.launch("", after);
    terminal.prompt(&prompt)?;
    until(|| stage.job())?;
    if !then.is_empty() {
        terminal.shows("answer")?;
        terminal.prompt(&format!("{then} and say something"))?;
    }
    terminal.shows(&format!("seen {RESULT}"))?;
    stage.follow_up(&["delivered", "queued"])?;
    heard_once(stage, &prompt)
}

/// A session that does not exist is gone, and no other is woken or begun.
fn scenario_140_a_session_that_does_not_exist_is_gone(stage: &Stage) -> Result<()> {
    let sink = stage.name;
    let launch = ["launch", "--json", "--session", NO_SESSION, "--sink", sink, "--", "sh", "-c", "echo over"];
    stage.ask(&launch)?;
    let job = stage.follow_up(&["dead_letter"])?;
    stage.note("gone.json", &job.to_string())?;
    ensure!(job["follow_up"]["attempts"] == 1, "it was tried again: {}", job["follow_up"]);
    ensure!(stage.model.heard().is_empty(), "another conversation was told");
    Ok(())
}

fn heard_once(stage: &Stage, prompt: &str) -> Result<()> {
    match stage.heard(prompt) {
        1 => Ok(()),
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
    Heard,
    Failed(String),
    NotTried(String),
}

impl Row {
    pub(super) fn of(
        candidate: &Candidate,
        installed: &Installed,
        workspace: &Workspace,
        place: &Path,
    ) -> Result<Self> {
        let mut results = Vec::new();
        for trial in Trial::ALL {
            let excuse = candidate.not_tried.iter().find(|(other, _)| *other == trial);
            let outcome = match excuse {
                Some((_, reason)) => Outcome::NotTried((*reason).to_owned()),
                None => {
                    let stage = Stage::new(workspace, place, candidate, installed, trial.name())?;
                    trial.run(&stage, candidate).map_or_else(
                        |error| {
                            stage.show();
                            Outcome::Failed(format!("{error:#}"))
                        },
                        |()| Outcome::Heard,
                    )
                }
            };
            match &outcome {
                Outcome::Heard => eprintln!("{} {}: ok", candidate.name, trial.name()),
                Outcome::Failed(why) => eprintln!("{} {}: FAILED: {why}", candidate.name, trial.name()),
                Outcome::NotTried(why) => eprintln!("{} {}: not tried: {why}", candidate.name, trial.name()),
            }
            results.push(outcome);
        }
        Ok(Self { name: candidate.name, version: installed.version.clone(), results })
    }

    pub(super) fn missing(candidate: &Candidate, why: String) -> Self {
        let results = Trial::ALL.iter().map(|_| Outcome::NotTried(why.clone())).collect();
        Self { name: candidate.name, version: "-".into(), results }
    }

    pub(super) fn failures(&self) -> usize {
        self.results.iter().filter(|result| matches!(result, Outcome::Failed(_))).count()
    }

    pub(super) fn passes(&self) -> usize {
        self.results.iter().filter(|result| matches!(result, Outcome::Heard)).count()
    }
}
