//! The MCP server and the hook of hearback in the configuration of an agent: entries in files that belong to the user.

use std::path::{Path, PathBuf};

use hearback_core::agents::Agent;
use hearback_core::message;
use serde_json::{Value, json};

use super::json_file::{self, Place, Slot};
use super::toml_file::Table;
use super::{CLAUDE_HOOK_ARGS, Edit, SetupError, SetupFile, SetupScope, SetupState};

/// How an agent is told of the MCP server, or of the hook.
struct Registration {
    agent: &'static str,
    /// Its file below the home directory, and others that it may be instead.
    in_home: &'static [&'static str],
    /// The same below the directory of a project; none if it has no such file.
    in_project: &'static [&'static str],
    form: Form,
    /// Whether its MCP servers are told the session, so that a sink can wake it.
    names_session: bool,
}

/// How an entry is written.
#[derive(Clone, Copy)]
enum Form {
    /// `mcpServers` with a command and its arguments.
    Servers,
    /// The same with the fields that Copilot wants.
    Copilot,
    /// `mcp` with one list.
    Opencode,
    /// A table in TOML.
    Codex,
    /// The hook of Claude Code, in the list of those that run when a turn ends.
    ClaudeHook,
    /// A file that hearback does not edit, and the text for it.
    ByHand(fn(&Path, &[String]) -> String),
}

const fn servers(
    agent: &'static str,
    in_home: &'static [&'static str],
    in_project: &'static [&'static str],
    names_session: bool,
) -> Registration {
    Registration { agent, in_home, in_project, form: Form::Servers, names_session }
}

const REGISTRATIONS: &[Registration] = &[
    // Claude Code keeps its servers for all projects in the file that holds its own state, and writes that all the
    // time: its command does it. That of a project is a file of its own.
    Registration {
        agent: "claude",
        in_home: &[".claude.json"],
        in_project: &[],
        form: Form::ByHand(|program, args| {
            format!(
                "claude mcp add --scope user hearback -- {} {}\n",
                message::quoted(&program.display().to_string()),
                args.join(" ")
            )
        }),
        names_session: true,
    },
    servers("claude", &[], &[".mcp.json"], true),
    Registration {
        form: Form::ClaudeHook,
        ..servers("claude", &[".claude/settings.json"], &[".claude/settings.json"], true)
    },
    Registration {
        form: Form::Codex,
        ..servers("codex", &[".codex/config.toml"], &[".codex/config.toml"], true)
    },
    servers("qwen", &[".qwen/settings.json"], &[".qwen/settings.json"], true),
    servers("gemini", &[".gemini/settings.json"], &[".gemini/settings.json"], false),
    Registration {
        form: Form::Opencode,
        ..servers(
            "opencode",
            &[".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"],
            &["opencode.json", "opencode.jsonc"],
            false,
        )
    },
    Registration { form: Form::Copilot, ..servers("copilot", &[".copilot/mcp-config.json"], &[], true) },
    servers("cursor", &[".cursor/mcp.json"], &[".cursor/mcp.json"], false),
    // YAML: without a parser that keeps comments, nothing of the user is changed.
    Registration {
        agent: "goose",
        in_home: &[".config/goose/config.yaml"],
        in_project: &[],
        form: Form::ByHand(|program, args| {
            format!(
                "extensions:\n  hearback:\n    enabled: true\n    type: stdio\n    name: hearback\n    cmd: {}\n    \
                 args: {}\n    timeout: 300\n",
                quoted(program),
                Value::from(args.to_vec())
            )
        }),
        names_session: true,
    },
    Registration {
        agent: "hermes",
        in_home: &[".hermes/config.yaml"],
        in_project: &[],
        form: Form::ByHand(|program, args| {
            format!(
                "mcp_servers:\n  hearback:\n    command: {}\n    args: {}\n",
                quoted(program),
                Value::from(args.to_vec())
            )
        }),
        names_session: false,
    },
];

/// The entries of an agent in files of the user, as they are and as they should be.
pub(super) fn look(
    agent: &'static Agent,
    scope: SetupScope,
    root: &Path,
    program: &Path,
) -> Result<Vec<SetupFile>, SetupError> {
    let rows = REGISTRATIONS.iter().filter(|row| row.agent == agent.name);
    rows.filter_map(|row| {
        let places = if scope == SetupScope::User { row.in_home } else { row.in_project };
        let first = root.join(places.first()?);
        let there = places.iter().map(|place| root.join(place)).find(|path| path.exists());
        Some(row.look(there.unwrap_or(first), program))
    })
    .collect()
}

impl Registration {
    fn args(&self) -> Vec<String> {
        let sink = ["--sink", self.agent].map(str::to_owned);
        std::iter::once("mcp".to_owned()).chain(sink.into_iter().filter(|_| self.names_session)).collect()
    }

    fn look(&self, path: PathBuf, program: &Path) -> Result<SetupFile, SetupError> {
        let (args, command) = (self.args(), program.display().to_string());
        let by_hand =
            |path, text| SetupFile { path, text, state: SetupState::ByHand, now: None, edit: Edit::None };
        let found = super::read(&path)?.map(String::from_utf8);
        let named = |path| Place { path, slot: Slot::Named("hearback") };
        let (place, entry) = match self.form {
            Form::ByHand(text) => return Ok(by_hand(path, text(program, &args))),
            Form::Codex => {
                let table = Table { name: ["mcp_servers", "hearback"], command, args };
                let Ok(found) = found.transpose() else { return Ok(by_hand(path, table.text())) };
                return Ok(in_toml(path, found.as_deref(), &table));
            }
            Form::Servers => (named(&["mcpServers"]), json!({"command": command, "args": args})),
            Form::Copilot => (
                named(&["mcpServers"]),
                json!({"type": "local", "command": command, "args": args, "tools": ["*"]}),
            ),
            Form::Opencode => {
                let words: Vec<_> = std::iter::once(command).chain(args).collect();
                (named(&["mcp"]), json!({"type": "local", "command": words, "enabled": true}))
            }
            Form::ClaudeHook => (CLAUDE_HOOKS, claude_hook(&command)),
        };
        let shown = json_file::insert(None, place, &entry).unwrap_or_default();
        let Ok(found) = found.transpose() else { return Ok(by_hand(path, shown)) };
        Ok(in_json(path, found.as_deref(), place, &entry, shown))
    }
}

fn in_json(path: PathBuf, found: Option<&str>, place: Place, entry: &Value, shown: String) -> SetupFile {
    let now = found.map(|text| text.as_bytes().to_vec());
    let file =
        |state, edit| SetupFile { path: path.clone(), text: shown.clone(), state, now: now.clone(), edit };
    let document = found.filter(|text| !text.trim().is_empty()).map(json_file::read);
    let there = document.as_ref().and_then(|it| it.as_ref()).and_then(|it| place.find(it));
    let Some(there) = there else {
        return match json_file::insert(found, place, entry) {
            Some(with) => file(SetupState::Absent, Edit::Entry { with: Some(with), without: None }),
            None => file(SetupState::ByHand, Edit::None),
        };
    };
    if matches!(place.slot, Slot::Named(_)) && !is_ours(there, entry) {
        return file(SetupState::Foreign, Edit::None);
    }
    let Some(text) = found else { return file(SetupState::ByHand, Edit::None) };
    let Some(mut without) = json_file::remove(text, place) else {
        return file(SetupState::ByHand, Edit::None);
    };
    // A file that holds nothing else was made for it.
    if json_file::insert(None, place, there).as_deref() == Some(text) {
        without.clear();
    }
    let state = if there == entry { SetupState::Current } else { SetupState::Outdated };
    let with = json_file::insert(Some(&without), place, entry);
    file(state, Edit::Entry { with, without: Some(without) })
}

/// Whether an entry is one that a set-up wrote, perhaps with another path of the program. One that the user has changed
/// is the user's.
fn is_ours(there: &Value, entry: &Value) -> bool {
    let mut same = there.clone();
    let program = match (same.get_mut("command"), entry.get("command")) {
        (Some(Value::Array(there)), Some(Value::Array(ours))) => {
            let (Some(there), Some(ours)) = (there.first_mut(), ours.first()) else { return false };
            std::mem::replace(there, ours.clone())
        }
        (Some(there), Some(ours)) => std::mem::replace(there, ours.clone()),
        _ => return false,
    };
    same == *entry && (program.as_str().is_some_and(is_hearback) || there == entry)
}

/// Whether this is the path of a hearback.
fn is_hearback(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name) == "hearback"
}

/// The hooks of Claude Code that run when a turn ends.
const CLAUDE_HOOKS: Place = Place { path: &["hooks", "Stop"], slot: Slot::Listed(is_claude_hook) };
/// How long the hook may wait, in seconds: longer than a session is left alone.
const CLAUDE_HOOK_WAIT: u64 = 7 * 24 * 60 * 60;

/// What wakes an open session that has no messaging socket: Claude Code runs it beside the session and tells the model
/// what it prints.
fn claude_hook(program: &str) -> Value {
    let command = format!("{}{CLAUDE_HOOK_ARGS}", message::quoted(program));
    json!({"hooks": [
        {"type": "command", "command": command, "asyncRewake": true, "timeout": CLAUDE_HOOK_WAIT},
    ]})
}

/// Whether a set-up wrote this hook, perhaps with another path of the program. One that the user has changed is the
/// user's.
fn is_claude_hook(value: &Value) -> bool {
    let command = value["hooks"][0]["command"].as_str();
    let word = command.and_then(|command| command.strip_suffix(CLAUDE_HOOK_ARGS)).unwrap_or_default();
    let program = word.trim_matches('\'').replace(r"'\''", "'");
    is_hearback(&program) && *value == claude_hook(&program)
}

fn in_toml(path: PathBuf, found: Option<&str>, table: &Table) -> SetupFile {
    let text = found.unwrap_or_default();
    let now = found.map(|text| text.as_bytes().to_vec());
    let file =
        |state, edit| SetupFile { path: path.clone(), text: table.text(), state, now: now.clone(), edit };
    if let Some((without, there)) = table.remove(text) {
        let (there, entry) = (json!(there), json!({"command": table.command, "args": table.args}));
        if !is_ours(&there, &entry) {
            return file(SetupState::Foreign, Edit::None);
        }
        let state = if there == entry { SetupState::Current } else { SetupState::Outdated };
        return file(state, Edit::Entry { with: table.insert(&without), without: Some(without) });
    }
    match (table.is_in(text), table.insert(text)) {
        (Some(true), _) => file(SetupState::Foreign, Edit::None),
        (Some(false), Some(with)) => {
            file(SetupState::Absent, Edit::Entry { with: Some(with), without: None })
        }
        _ => file(SetupState::ByHand, Edit::None),
    }
}

/// A path as text between quotes, in a language that escapes as JSON does.
fn quoted(path: &Path) -> Value {
    Value::from(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::agents::{AGENTS, agent};

    #[test]
    fn every_agent_that_can_be_woken_can_be_told_of_the_server() {
        for row in REGISTRATIONS {
            assert!(agent(row.agent).is_some(), "{}", row.agent);
        }
        for agent in AGENTS.iter().filter(|agent| !agent.doors.is_empty()) {
            assert!(REGISTRATIONS.iter().any(|row| row.agent == agent.name), "{}", agent.name);
        }
    }

    #[test]
    fn a_hook_is_known_by_all_that_a_set_up_wrote() {
        for program in ["/opt/hearback", "/a b/hearback", "/it's/hearback", "C:\\bin\\hearback.exe"] {
            assert!(is_claude_hook(&claude_hook(program)), "{program}");
        }
        let mut changed = claude_hook("/opt/hearback");
        changed["hooks"][0]["timeout"] = 60.into();
        for other in [changed, claude_hook("/opt/other"), json!({"hooks": []}), json!("hearback")] {
            assert!(!is_claude_hook(&other), "{other}");
        }
    }

    #[test]
    fn a_command_to_run_names_the_program_as_one_word() {
        for (program, word) in [
            ("/opt/hearback", "/opt/hearback"),
            ("/a b/hearback", "'/a b/hearback'"),
            ("/a\\b/hearback", "'/a\\b/hearback'"),
        ] {
            let home = Path::new("/no/such/folder");
            let files = look(agent("claude").unwrap(), SetupScope::User, home, Path::new(program)).unwrap();
            assert_eq!(
                files[0].text,
                format!("claude mcp add --scope user hearback -- {word} mcp --sink claude\n")
            );
        }
    }

    #[test]
    fn an_entry_that_the_user_has_changed_is_the_users() {
        let entry = json!({"command": "/new/hearback", "args": ["mcp"]});
        for (there, ours) in [
            (entry.clone(), true),
            (json!({"command": "/old/hearback", "args": ["mcp"]}), true),
            (json!({"command": "C:\\old\\hearback.exe", "args": ["mcp"]}), true),
            (json!({"command": "/old/hearback", "args": ["mcp"], "env": {}}), false),
            (json!({"command": "/old/hearback", "args": ["mcp", "--session", "s"]}), false),
            (json!({"command": "/old/other", "args": ["mcp"]}), false),
            (json!({"url": "http://127.0.0.1"}), false),
        ] {
            assert_eq!(is_ours(&there, &entry), ours, "{there}");
        }
        let list = json!({"type": "local", "command": ["/new/hearback", "mcp"]});
        assert!(is_ours(&json!({"type": "local", "command": ["/old/hearback", "mcp"]}), &list));
        assert!(!is_ours(&json!({"type": "local", "command": ["/old/hearback", "mcp", "-v"]}), &list));
    }
}
