//! `cargo xtask record`: `docs/recording.svg`, the picture of the README. Real commands are typed into a real terminal,
//! and the picture holds what the screen then shows. Needs tmux.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

mod screen;
mod svg;

const COLUMNS: usize = 104;
const WITHIN: Duration = Duration::from_secs(60);

/// One screen: what it shows, and how it comes about. Ids and times are what the run gives.
struct Scene {
    title: &'static str,
    steps: &'static [Step],
}

enum Step {
    /// Types this.
    Type(&'static str),
    /// Waits, outside of the picture, until a command of hearback prints this.
    Until(&'static [&'static str], &'static str),
}

/// The agent of the third scene is a program that fails at first. Real ones are tried by `cargo xtask agents`.
const SETTINGS: &str = r#"attempts = 1

[sink.agent]
stdin = "text"
command = ["sh", "-c", "test -e online && cat > woken.txt || { echo 'agent: connection refused' >&2; exit 1; }"]
"#;

const SCENES: [Scene; 3] = [
    Scene {
        title: "Start jobs that outlive the terminal, list them, follow one",
        steps: &[
            Step::Type(
                "hearback launch --label build -- sh -c 'for i in 1 2 3; do echo \"step $i of 3\"; sleep 1; done'",
            ),
            Step::Type("hearback launch -q --label server -- sleep 600"),
            Step::Type("hearback list"),
            Step::Type("hearback logs -f build"),
        ],
    },
    Scene {
        title: "End a job and every process that it started",
        steps: &[Step::Type("hearback kill server"), Step::Type("hearback show server")],
    },
    Scene {
        title: "An agent that cannot be woken is not forgotten",
        steps: &[
            Step::Type(
                "hearback launch -q --session chat-7 --sink agent --label tests -- \\\n  \
                 sh -c 'echo \"41 passed, 1 failed\"; exit 3'",
            ),
            Step::Until(&["followups"], "dead letter"),
            Step::Type("hearback followups"),
            Step::Type("touch online    # the agent is back"),
            Step::Type("hearback followups retry tests"),
            Step::Until(&["show", "tests"], "delivered"),
            Step::Type("hearback show tests | grep follow-up"),
            Step::Type("cat woken.txt"),
        ],
    },
];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    workspace.cargo(&["build", "--package", "hearback-cli"])?;
    let programs = workspace.target_directory()?.join("debug");
    let scratch = std::env::temp_dir().join(format!("hearback-record-{}", std::process::id()));
    let (home, project) = (scratch.join("store"), scratch.join("project"));
    fs_err::create_dir_all(&home)?;
    fs_err::create_dir_all(&project)?;
    fs_err::write(home.join("config.toml"), SETTINGS)?;
    let recorded = play(&programs, &home, &project);
    // If a scene failed, a job may still run.
    let _ = hearback(&programs, &home, &["kill", "--all"]);
    fs_err::remove_dir_all(&scratch)?;
    let frames = recorded?;
    let picture = workspace.root().join("docs/recording.svg");
    fs_err::write(&picture, svg::draw(&frames, COLUMNS))?;
    println!("wrote {}", picture.display());
    Ok(())
}

fn play(programs: &Path, home: &Path, project: &Path) -> Result<Vec<svg::Frame>> {
    let terminal = Terminal::open(programs, home, project)?;
    let mut frames = Vec::new();
    for scene in &SCENES {
        terminal.enter("clear")?;
        for step in scene.steps {
            match step {
                Step::Type(line) => terminal.enter(line)?,
                Step::Until(words, text) => until(|| Ok(hearback(programs, home, words)?.contains(text)))
                    .with_context(|| format!("`{}` never prints `{text}`", words.join(" ")))?,
            }
        }
        let rows = screen::rows(&terminal.tmux(&["capture-pane", "-e", "-p"])?);
        frames.push(svg::Frame { title: scene.title, rows });
    }
    Ok(frames)
}

fn hearback(programs: &Path, home: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new(programs.join("hearback")).args(words).env("HEARBACK_HOME", home).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn until(is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + WITHIN;
    while !is_so()? {
        if Instant::now() > deadline {
            bail!("not within {} s", WITHIN.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A shell in a tmux of its own, which ends with it.
struct Terminal {
    server: String,
}

impl Terminal {
    fn open(programs: &Path, home: &Path, project: &Path) -> Result<Self> {
        let terminal = Self { server: format!("hearback-record-{}", std::process::id()) };
        let path = std::env::join_paths(
            std::iter::once(programs.to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()))
                .collect::<Vec<PathBuf>>(),
        )?;
        let columns = COLUMNS.to_string();
        let variables = [
            format!("PATH={}", path.to_string_lossy()),
            format!("HEARBACK_HOME={}", home.display()),
            format!("HOME={}", project.display()),
            "TERM=tmux-256color".to_owned(),
            "LANG=C.UTF-8".to_owned(),
            "PS1=$ ".to_owned(),
            "PS2=> ".to_owned(),
        ];
        let project = project.display().to_string();
        let mut words =
            vec!["-u", "-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", "50", "-c", &project];
        words.extend(["env", "-i"]);
        words.extend(variables.iter().map(String::as_str));
        words.extend(["bash", "--norc", "--noprofile"]);
        terminal.tmux(&words)?;
        terminal.prompt()?;
        Ok(terminal)
    }

    /// Types a line, and waits until the shell takes the next one.
    fn enter(&self, line: &str) -> Result<()> {
        for part in line.split('\n') {
            self.tmux(&["send-keys", "-l", part])?;
            // The prompt before it is no answer to it, so its end has to be on the screen first.
            let typed = part.trim_end();
            let end = &typed[typed.len().saturating_sub(5)..];
            until(|| Ok(self.last_line()?.ends_with(end))).context("the shell does not take keys")?;
            self.tmux(&["send-keys", "Enter"])?;
        }
        self.prompt()
    }

    fn prompt(&self) -> Result<()> {
        until(|| Ok(self.last_line()? == "$")).context("the shell does not take the next line")
    }

    fn last_line(&self) -> Result<String> {
        Ok(self.tmux(&["capture-pane", "-p"])?.trim_end().lines().last().unwrap_or_default().to_owned())
    }

    fn tmux(&self, words: &[&str]) -> Result<String> {
        let output = Command::new("tmux").args(["-L", &self.server]).args(words).output().context("tmux")?;
        if !output.status.success() {
            bail!("tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}
