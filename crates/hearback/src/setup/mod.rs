//! What is written for an agent so that it knows hearback: a text that teaches its model, a plugin where the agent
//! needs one to be woken, the MCP server, and a hook. The first two are files of hearback's own. The others are an
//! entry each in a file of the user, where that can be edited without a change to anything else; otherwise it is shown.

mod json_file;
mod registration;
mod toml_file;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hearback_core::agents::{Agent, agent};
use serde::Serialize;

/// Stands in every file that hearback writes for an agent, so that it never takes a file of the user for its own.
const MARK: &str = "written by `hearback agent setup`";

/// Where the files of an agent are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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

/// What the hook of Claude Code runs, after the program.
pub(crate) const CLAUDE_HOOK_ARGS: &str = " agent hook claude";

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
        agent: "qwen",
        in_home: ".qwen/skills/hearback/SKILL.md",
        in_project: ".qwen/skills/hearback/SKILL.md",
        text: SKILL,
    },
    Part {
        agent: "gemini",
        in_home: ".gemini/skills/hearback/SKILL.md",
        in_project: ".gemini/skills/hearback/SKILL.md",
        text: SKILL,
    },
    Part {
        agent: "opencode",
        in_home: ".config/opencode/plugin/hearback.js",
        in_project: ".opencode/plugin/hearback.js",
        text: concat!(include_str!("follow_ups.js"), include_str!("opencode.js")),
    },
    Part {
        agent: "opencode",
        in_home: ".config/opencode/skills/hearback/SKILL.md",
        in_project: ".opencode/skills/hearback/SKILL.md",
        text: SKILL,
    },
    Part {
        agent: "copilot",
        in_home: ".copilot/extensions/hearback/extension.mjs",
        in_project: ".github/extensions/hearback/extension.mjs",
        text: concat!(include_str!("follow_ups.js"), include_str!("copilot.mjs")),
    },
    Part {
        agent: "copilot",
        in_home: ".copilot/skills/hearback/SKILL.md",
        in_project: ".github/skills/hearback/SKILL.md",
        text: SKILL,
    },
];

/// A file of a set-up, as it is and as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it should hold: all of it, or one entry of it.
    pub text: String,
    /// What is there.
    pub state: SetupState,
    /// The file as it was seen; none if there was none.
    now: Option<Vec<u8>>,
    edit: Edit,
}

/// How a file is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Edit {
    /// It is not.
    None,
    /// All of it is written, or removed.
    Whole,
    /// One entry of a file of the user.
    Entry {
        /// The file with the entry as it should be.
        with: Option<String>,
        /// The file without the entry, if it is there; empty if it would hold nothing.
        without: Option<String>,
    },
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
    /// A file or an entry that hearback did not write. It is left alone.
    Foreign,
    /// A file that hearback cannot edit safely: the entry has to be made by hand.
    ByHand,
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
    /// A file was changed by another program while it was looked at.
    #[error("`{}` was changed by another program meanwhile", .0.display())]
    Changed(PathBuf),
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
        let mut files = parts
            .map(|part| {
                let below = if scope == SetupScope::User { part.in_home } else { part.in_project };
                SetupFile::look(root.join(below), filled(part.text, program))
            })
            .collect::<Result<Vec<_>, _>>()?;
        files.extend(registration::look(agent, scope, &root, program)?);
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
        let is_foreign = |file: &&SetupFile| file.state == SetupState::Foreign && file.edit == Edit::Whole;
        if let Some(file) = self.files.iter().find(is_foreign) {
            return Err(SetupError::Foreign(file.path.clone()));
        }
        let mut written = Vec::new();
        let is_due = |file: &&SetupFile| matches!(file.state, SetupState::Absent | SetupState::Outdated);
        for file in self.files.iter().filter(is_due) {
            if let Some(folder) = file.path.parent() {
                fs_err::create_dir_all(folder)?;
            }
            match &file.edit {
                Edit::Whole => file.replace(&file.text)?,
                Edit::Entry { with: Some(with), .. } => file.replace(with)?,
                Edit::Entry { with: None, .. } | Edit::None => continue,
            }
            written.push(file.path.as_path());
        }
        Ok(written)
    }

    /// Removes every file and every entry that hearback wrote, and the folder that held nothing else. Returns the
    /// files.
    ///
    /// # Errors
    ///
    /// When one cannot be removed.
    pub fn remove(&self) -> Result<Vec<&Path>, SetupError> {
        let ours = |file: &&SetupFile| matches!(file.state, SetupState::Current | SetupState::Outdated);
        let mut removed = Vec::new();
        for file in self.files.iter().filter(ours) {
            match &file.edit {
                Edit::Entry { without: Some(without), .. } if !without.trim().is_empty() => {
                    file.replace(without)?;
                }
                Edit::Whole | Edit::Entry { without: Some(_), .. } => {
                    file.check_unchanged()?;
                    fs_err::remove_file(&file.path)?;
                }
                Edit::Entry { without: None, .. } | Edit::None => continue,
            }
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
    /// Whether it is a file of the user, in which hearback has one entry.
    pub fn is_entry(&self) -> bool {
        self.edit != Edit::Whole
    }

    fn look(path: PathBuf, text: String) -> Result<Self, SetupError> {
        let now = read(&path)?;
        let state = match &now {
            None => SetupState::Absent,
            Some(found) if found == text.as_bytes() => SetupState::Current,
            Some(found) if String::from_utf8_lossy(found).contains(MARK) => SetupState::Outdated,
            Some(_) => SetupState::Foreign,
        };
        Ok(Self { path, text, state, now, edit: Edit::Whole })
    }

    /// Writes or replaces the file in one step, so that no reader and no crash finds half of it. A link stays a link,
    /// and a file keeps its permissions.
    fn replace(&self, text: &str) -> Result<(), SetupError> {
        let real = match self.now {
            Some(_) => fs_err::canonicalize(&self.path)?,
            None => self.path.clone(),
        };
        let draft = real.with_extension(format!("hearback-{}", std::process::id()));
        let write = || {
            if self.now.is_some() {
                // A copy has the permissions of the file, before anything of the file is in it.
                fs_err::copy(&real, &draft)?;
            }
            let mut file = fs_err::File::create(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            self.check_unchanged()?;
            Ok(fs_err::rename(&draft, &real)?)
        };
        write().inspect_err(|_: &SetupError| {
            let _ = std::fs::remove_file(&draft);
        })
    }

    /// Fails if the file is no longer what was seen.
    fn check_unchanged(&self) -> Result<(), SetupError> {
        // A link that leads nowhere is there, too.
        let leads_nowhere = self.now.is_none() && self.path.is_symlink();
        if leads_nowhere || read(&self.path)? != self.now {
            return Err(SetupError::Changed(self.path.clone()));
        }
        Ok(())
    }
}

/// The content of a file; none if there is none.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs_err::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
    use hearback_core::agents::{AGENTS, Door};

    #[test]
    fn every_file_is_for_an_agent_and_says_that_hearback_wrote_it() {
        for part in PARTS {
            assert!(agent(part.agent).is_some(), "{}", part.agent);
            assert!(part.text.contains(MARK), "{}", part.in_home);
        }
        // Where a plugin is written, it is looked for.
        for (agent, door) in AGENTS.iter().flat_map(|agent| agent.doors.iter().map(move |door| (agent, door)))
        {
            let Door::Plugin { loaded: Some(sign) } = door else { continue };
            let is_it = |part: &&Part| part.in_home == sign.in_home && part.in_project == sign.in_project;
            assert!(PARTS.iter().any(|part| part.agent == agent.name && is_it(&part)), "{}", agent.name);
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
    fn a_file_that_was_changed_after_it_was_seen_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("SKILL.md");
        let (ours, older) = (format!("one, {MARK}"), format!("two, {MARK}"));
        // A file of hearback's own, and one that was made for an entry.
        let edits = [Edit::Whole, Edit::Entry { with: Some(ours.clone()), without: Some(String::new()) }];
        for (edit, before) in
            edits.iter().flat_map(|edit| [(edit, None), (edit, Some(&ours)), (edit, Some(&older))])
        {
            let _ = fs_err::remove_file(&path);
            if let Some(before) = before {
                fs_err::write(&path, before).unwrap();
            }
            let seen =
                SetupFile { edit: edit.clone(), ..SetupFile::look(path.clone(), ours.clone()).unwrap() };
            let seen = Setup { agent: agent("claude").unwrap(), files: vec![seen] };
            fs_err::write(&path, "the user's own").unwrap();
            let is_changed = |done| matches!(done, Err(SetupError::Changed(_)));
            assert_eq!(is_changed(seen.write()), before != Some(&ours), "{edit:?} {before:?}");
            assert_eq!(is_changed(seen.remove()), before.is_some(), "{edit:?} {before:?}");
            assert_eq!(fs_err::read_to_string(&path).unwrap(), "the user's own");
            assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        }
    }

    #[test]
    fn a_program_stands_in_the_text_as_a_quoted_word() {
        assert_eq!(filled("\"{hearback}\"", Path::new("C:\\a \"b\"")), r#""C:\\a \"b\"""#);
    }
}
