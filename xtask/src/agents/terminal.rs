//! An agent that is open in a terminal: a tmux of its own, which ends with it.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::candidate::Candidate;
use super::stage::{Stage, until};

/// An open agent. Dropping it ends it.
pub(super) struct Terminal<'a> {
    stage: &'a Stage,
    server: String,
}

impl<'a> Terminal<'a> {
    /// Opens an agent and waits until it takes a prompt.
    pub(super) fn open(stage: &'a Stage, candidate: &Candidate) -> Result<Self> {
        let server = format!("hearback-{}-{}", candidate.name, std::process::id());
        let terminal = Self { stage, server };
        let project = stage.project().display().to_string();
        let variables: Vec<_> =
            stage.environment().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut words = vec![
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "50",
            "-c",
            &project,
            "env",
            "-i",
        ];
        words.extend(variables.iter().map(String::as_str));
        let home = stage.home().display().to_string();
        let agent: Vec<_> = candidate.open.iter().map(|word| word.replace("{home}", &home)).collect();
        words.extend(agent.iter().map(String::as_str));
        terminal.tmux(&words)?;
        terminal.shows(candidate.ready)?;
        Ok(terminal)
    }

    /// Types a prompt.
    pub(super) fn prompt(&self, text: &str) -> Result<()> {
        self.stands_still()?;
        self.tmux(&["send-keys", "-l", text])?;
        // Agents take what comes at once for a paste, and an Enter in it for a line end.
        // goose shows the first character apart from the others.
        self.shows(&text.chars().skip(1).take(20).collect::<String>())?;
        std::thread::sleep(std::time::Duration::from_millis(500));
        self.tmux(&["send-keys", "Enter"]).map(drop)
    }

    /// Closes the agent: its terminal goes, or it is told to quit where it would outlive its terminal.
    pub(super) fn close(self, candidate: &Candidate) -> Result<()> {
        if candidate.quit.is_empty() {
            return Ok(());
        }
        self.prompt(candidate.quit)?;
        until(|| if self.screen().is_err() { Ok(()) } else { bail!("the agent does not quit") })
    }

    /// Waits until the screen shows this.
    pub(super) fn shows(&self, text: &str) -> Result<()> {
        until(|| {
            let screen = self.screen()?;
            if screen.contains(text) { Ok(()) } else { bail!("the screen does not show `{text}`") }
        })
    }

    /// Waits until the screen does not change any more: what is typed before an agent reads a prompt may be shown in
    /// pieces. A screen that never stands still is typed at all the same.
    fn stands_still(&self) -> Result<()> {
        let mut before = self.screen()?;
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(300));
            let now = self.screen()?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    fn tmux(&self, words: &[&str]) -> Result<String> {
        let output = Command::new("tmux").args(["-L", &self.server]).args(words).output().context("tmux")?;
        if !output.status.success() {
            bail!("tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.stage.note("screen.txt", &self.screen().unwrap_or_default());
        // It may have ended by itself.
        let _ = self.tmux(&["kill-server"]);
    }
}
