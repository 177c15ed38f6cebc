//! What is written for an agent so that it knows hearback: a text that teaches its model, and a plugin where the agent
//! needs one to be woken. Each is a file of hearback's own; no file of the user is changed.

use std::io;
use std::path::{Path, PathBuf};

use hearback_core::agents::{Agent, agent};
use serde::Serialize;

/// Stands in every file that hearback writes for an agent, so that it never takes a file of the user for its own.
const MARK: &str = "written by `hearback agent setup`";

/// Where the files of an agent are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupScope {
    /// For all projects of this user.
    User,
    /// For the project in the working directory.
    Project,
}

/// One file that is to be written for an agent.
struct Part {
    agent: &'static str,
    /// Below the home directory.
    in_home: &'static str,
    /// Below the directory of a project.
    in_project: &'static str,
    text: &'static str,
}

const SKILL: &str = include_str!("skill.md");

const PARTS: &[Part] = &[
    Part {
        agent: "claude",
        in_home: ".claude/skills/hearback/SKILL.md",
        in_project: ".claude/skills/hearback/SKILL.md",
        text: SKILL,
    },
    Part {
        agent: "codex",
        in_home: ".codex/skills/hearback/SKILL.md",
        in_project: ".codex/skills/hearback/SKILL.md",
        text: SKILL,
    },
    Part {
        agent: "opencode",
        in_home: ".config/opencode/plugin/hearback.js",
        in_project: ".opencode/plugin/hearback.js",
        text: include_str!("opencode.js"),
    },
    Part {
        agent: "opencode",
        in_home: ".config/opencode/skills/hearback/SKILL.md",
        in_project: ".opencode/skills/hearback/SKILL.md",
        text: SKILL,
    },
];

/// A file of a set-up, as it is and as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it should hold.
    pub text: String,
    /// What is there.
    pub state: SetupState,
}

/// What is there in place of a file of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SetupState {
    /// Nothing.
    Absent,
    /// The file, as it should be.
    Current,
    /// The file of an older set-up.
    Outdated,
    /// A file that hearback did not write. It is left alone.
    Foreign,
}

/// Why a set-up was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// There is no such agent.
    #[error("there is no agent `{0}`")]
    NoAgent(String),
    /// There is nothing to write for this agent.
    #[error("there is nothing to set up for {0}")]
    Nothing(&'static str),
    /// The home directory is unknown.
    #[error("the home directory is unknown")]
    NoHome,
    /// A file is there that hearback did not write.
    #[error("`{}` is there already, and hearback did not write it", .0.display())]
    Foreign(PathBuf),
    /// A file could not be read, written or removed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is written for one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The agent.
    pub agent: &'static Agent,
    /// Its files.
    pub files: Vec<SetupFile>,
}

impl Setup {
    /// Looks at what is there for an agent. `program` is the hearback that a plugin calls.
    ///
    /// # Errors
    ///
    /// When there is nothing to write for that agent, or it cannot be looked at.
    pub fn of(name: &str, scope: SetupScope, program: &Path) -> Result<Self, SetupError> {
        let agent = agent(name).ok_or_else(|| SetupError::NoAgent(name.to_owned()))?;
        let root = match scope {
            SetupScope::User => std::env::home_dir().ok_or(SetupError::NoHome)?,
            SetupScope::Project => std::env::current_dir()?,
        };
        let parts = PARTS.iter().filter(|part| part.agent == agent.name);
        let files = parts
            .map(|part| {
                let below = if scope == SetupScope::User { part.in_home } else { part.in_project };
                SetupFile::look(root.join(below), filled(part.text, program))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if files.is_empty() {
            return Err(SetupError::Nothing(agent.title));
        }
        Ok(Self { agent, files })
    }

    /// Writes every file that is not as it should be. Returns them.
    ///
    /// # Errors
    ///
    /// When a file is there that hearback did not write, before anything is written; or when one cannot be written.
    pub fn write(&self) -> Result<Vec<&Path>, SetupError> {
        if let Some(file) = self.files.iter().find(|file| file.state == SetupState::Foreign) {
            return Err(SetupError::Foreign(file.path.clone()));
        }
        let mut written = Vec::new();
        for file in self.files.iter().filter(|file| file.state != SetupState::Current) {
            if let Some(folder) = file.path.parent() {
                fs_err::create_dir_all(folder)?;
            }
            fs_err::write(&file.path, &file.text)?;
            written.push(file.path.as_path());
        }
        Ok(written)
    }

    /// Removes every file that hearback wrote, and the folder that held nothing else. Returns the files.
    ///
    /// # Errors
    ///
    /// When one cannot be removed.
    pub fn remove(&self) -> Result<Vec<&Path>, SetupError> {
        let ours = |file: &&SetupFile| matches!(file.state, SetupState::Current | SetupState::Outdated);
        let mut removed = Vec::new();
        for file in self.files.iter().filter(ours) {
            fs_err::remove_file(&file.path)?;
            // Only an empty folder goes, and only one that is named for hearback.
            if let Some(folder) = file.path.parent().filter(|folder| folder.ends_with("hearback")) {
                let _ = std::fs::remove_dir(folder);
            }
            removed.push(file.path.as_path());
        }
        Ok(removed)
    }
}

impl SetupFile {
    fn look(path: PathBuf, text: String) -> Result<Self, SetupError> {
        let state = match fs_err::read(&path) {
            Ok(found) if found == text.as_bytes() => SetupState::Current,
            Ok(found) if String::from_utf8_lossy(&found).contains(MARK) => SetupState::Outdated,
            Ok(_) => SetupState::Foreign,
            Err(error) if error.kind() == io::ErrorKind::NotFound => SetupState::Absent,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { path, text, state })
    }
}

/// The text with the program in it. It stands between quotes, in a language that escapes as JSON does.
fn filled(text: &str, program: &Path) -> String {
    let quoted = serde_json::to_string(&program.display().to_string()).unwrap_or_default();
    // Its own quotes are in the text.
    text.replace("{hearback}", quoted.get(1..quoted.len() - 1).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_for_an_agent_and_says_that_hearback_wrote_it() {
        for part in PARTS {
            assert!(agent(part.agent).is_some(), "{}", part.agent);
            assert!(part.text.contains(MARK), "{}", part.in_home);
        }
    }

    #[test]
    fn what_is_written_twice_changes_nothing_and_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("skills/hearback/SKILL.md");
        let look = |text: &str| {
            let file = SetupFile::look(path.clone(), text.to_owned()).unwrap();
            Setup { agent: agent("claude").unwrap(), files: vec![file] }
        };
        let text = format!("one, {MARK}");
        assert_eq!(look(&text).write().unwrap(), [path.as_path()]);
        assert_eq!(look(&text).files[0].state, SetupState::Current);
        assert!(look(&text).write().unwrap().is_empty());
        let newer = format!("two, {MARK}");
        assert_eq!(look(&newer).files[0].state, SetupState::Outdated);
        assert_eq!(look(&newer).write().unwrap(), [path.as_path()]);
        assert_eq!(look(&newer).remove().unwrap(), [path.as_path()]);
        assert!(!path.parent().unwrap().exists() && folder.path().join("skills").exists());
        assert!(look(&newer).remove().unwrap().is_empty());
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "the user's own").unwrap();
        assert!(matches!(look(&newer).write(), Err(SetupError::Foreign(_))));
        assert!(look(&newer).remove().unwrap().is_empty());
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "the user's own");
    }

    #[test]
    fn a_program_stands_in_the_text_as_a_quoted_word() {
        assert_eq!(filled("\"{hearback}\"", Path::new("C:\\a \"b\"")), r#""C:\\a \"b\"""#);
    }
}
