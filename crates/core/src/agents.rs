//! The agents that hearback knows, as data: one row each.
//!
//! A row names the agent's program, the variables that name its session to its children, the doors through which a
//! text reaches one of its sessions, and the shape of its transcript. A new agent is a new row, unless it has a door
//! or a transcript of a new kind.

use serde::{Deserialize, Serialize};

use crate::transcript::Shape;
use crate::{OsText, ProcessIdentity, Session};

/// One kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agent {
    /// Its name in settings and on the command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The name of its program.
    pub program: &'static str,
    /// The variables that name its session to the programs that it starts.
    pub session_variables: &'static [&'static str],
    /// What its sessions are called.
    pub session_form: SessionForm,
    /// Whether its sessions are found only from the directory in which they were begun.
    pub sessions_have_a_directory: bool,
    /// The ways into a session, in the order in which they are tried.
    pub doors: &'static [Door],
    /// The characters that begin a mention: it adds to a prompt what is in the file `@path`, or the skill `$name`.
    pub mentions: &'static [char],
    /// Its transcript in JSON.
    pub transcript: Option<AgentTranscript>,
}

/// What the sessions of an agent are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionForm {
    /// Anything.
    Any,
    /// A UUID. An agent that takes other names takes them for something else, such as a number in a list.
    Uuid,
}

/// One way into a session of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Door {
    /// The socket on which an open session of Claude Code takes messages from other programs; without one, the hook of
    /// hearback's that waits in the session. Its transcript shows that it has a message.
    ClaudeSocket,
    /// A plugin of hearback's in the agent: it fetches the follow-ups of an open session.
    Plugin {
        /// What tells that an agent has loaded it; none if it has loaded every plugin that has named a session.
        loaded: Option<PluginSign>,
    },
    /// A file from which an open session reads prompts, one JSON object a line, if it was started with this option.
    InputFile(&'static str),
    /// A command that resumes the session without a terminal and runs one turn of it.
    Headless(DoorCommand),
    /// A command that adds to a queue which the session takes its next prompt from.
    Queue(DoorCommand),
}

impl Door {
    /// Its name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClaudeSocket => "open session",
            Self::Plugin { .. } => "plugin",
            Self::InputFile(_) => "input file",
            Self::Headless(_) => "closed session",
            Self::Queue(_) => "queue",
        }
    }
}

/// What tells that an agent has loaded hearback's plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PluginSign {
    /// The option with which the agent was started.
    pub option: &'static str,
    /// The file of the plugin, below the home directory.
    pub in_home: &'static str,
    /// The same below the directory of a project.
    pub in_project: &'static str,
}

/// A command of an agent, and what its complaints mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorCommand {
    /// The program and its arguments. `{session}`, `{text}` and `{directory}` are replaced by their values; without
    /// `{text}` the agent reads the text from its standard input.
    pub argv: &'static [&'static str],
    /// What it says when it fails, as far as that is known.
    pub complaints: &'static [Complaint],
}

impl DoorCommand {
    /// Whether the text is part of the command. Otherwise the agent reads it from its standard input, where other users
    /// of the machine cannot see it.
    pub fn takes_text_as_argument(&self) -> bool {
        self.argv.iter().any(|word| word.contains("{text}"))
    }

    /// Whether the agent itself says that a session is open elsewhere.
    pub fn refuses_open_sessions(&self) -> bool {
        self.complaints.iter().any(|complaint| complaint.means == Meaning::Open)
    }

    /// What an agent means that fails and says this.
    pub fn meaning_of(&self, said: &str) -> Option<Meaning> {
        self.complaints
            .iter()
            .find(|complaint| said.contains(complaint.text))
            .map(|complaint| complaint.means)
    }
}

/// What an agent says when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complaint {
    /// Part of what it says.
    pub text: &'static str,
    /// What that means.
    pub means: Meaning,
}

/// What a complaint of an agent means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Meaning {
    /// There is no such session.
    Gone,
    /// The session is open elsewhere, so that this door is closed and another may not be.
    Open,
}

/// How an agent prints a transcript in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentTranscript {
    /// The options for that.
    pub options: &'static str,
    /// The shapes of the rows that it prints.
    pub shapes: &'static [Shape],
}

/// The agent that launched a job, as it was found at launch. Its sessions belong to its directory, and its program need
/// not be on the `PATH` of the process that wakes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchingAgent {
    /// Its name, such as `claude`.
    pub name: String,
    /// Its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<OsText>,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
    /// Its process. While that lives, its session is open there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIdentity>,
}

impl Agent {
    /// The command that resumes a session without a terminal.
    pub fn headless(&self) -> Option<&'static DoorCommand> {
        self.doors.iter().find_map(|door| match door {
            Door::Headless(command) => Some(command),
            _ => None,
        })
    }

    /// Whether nothing reaches a session of it that is open: it is woken once it is closed. `is_there` tells whether
    /// the session has a door that not every session has.
    pub fn is_deaf_when_open(&self, is_there: impl Fn(&Door) -> bool) -> bool {
        let needs_closed = |door: &Door| match door {
            Door::Headless(command) => !command.refuses_open_sessions(),
            Door::Queue(_) => false,
            Door::ClaudeSocket | Door::Plugin { .. } | Door::InputFile(_) => !is_there(door),
        };
        !self.doors.is_empty() && self.doors.iter().all(needs_closed)
    }

    /// The text with every mention broken by a character that has no width: what a job wrote must not make the agent
    /// read a file. An arithmetic or command substitution of a shell is no mention.
    pub fn without_mentions(&self, text: &str) -> String {
        let mut harmless = String::with_capacity(text.len());
        let mut rest = text.chars().peekable();
        while let Some(this) = rest.next() {
            harmless.push(this);
            let names = |next: &char| !next.is_whitespace() && *next != '(';
            if self.mentions.contains(&this) && rest.peek().is_some_and(names) {
                harmless.push('\u{200b}');
            }
        }
        harmless
    }

    /// Why a session can be none of this agent's.
    pub fn refuses(&self, session: &Session) -> Option<String> {
        let name = session.as_str();
        match self.session_form {
            SessionForm::Any => None,
            SessionForm::Uuid if is_uuid(name) => None,
            SessionForm::Uuid => Some(format!("a session of {} is a UUID, and `{name}` is not", self.title)),
        }
    }
}

fn is_uuid(text: &str) -> bool {
    let is_hyphen = |n: usize| matches!(n, 8 | 13 | 18 | 23);
    let fits = |(n, byte): (usize, u8)| if is_hyphen(n) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

/// The agent of this name.
pub fn agent(name: &str) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.name == name)
}

/// The agent whose program has this file name, with or without an extension.
pub fn agent_of_program(file_name: &str) -> Option<&'static Agent> {
    let stem = [".exe", ".cmd", ".js", ".mjs", ".cjs"].iter().find_map(|end| file_name.strip_suffix(end));
    let name = stem.unwrap_or(file_name);
    AGENTS.iter().find(|agent| agent.program == name)
}

/// The variables that name the session of an agent. If several are set, the first one counts.
pub fn session_variables() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().flat_map(|agent| agent.session_variables).copied()
}

/// A row with only the headless command: the session variables and the transcript of this agent are unknown.
const fn row(name: &'static str, title: &'static str, doors: &'static [Door]) -> Agent {
    Agent {
        name,
        title,
        program: name,
        session_variables: &[],
        session_form: SessionForm::Any,
        sessions_have_a_directory: true,
        doors,
        mentions: &[],
        transcript: None,
    }
}

const fn headless(argv: &'static [&'static str], complaints: &'static [Complaint]) -> Door {
    Door::Headless(DoorCommand { argv, complaints })
}

const fn gone(text: &'static str) -> Complaint {
    Complaint { text, means: Meaning::Gone }
}

const fn prints(options: &'static str, shapes: &'static [Shape]) -> Option<AgentTranscript> {
    Some(AgentTranscript { options, shapes })
}

const CODEX_GONE: Complaint = gone("no rollout found for thread id");
/// Codex lets one process write to a session: its terminal, or its daemon.
const CODEX_OPEN: Complaint = Complaint { text: "already has an active writer", means: Meaning::Open };

/// All agents. Qwen Code is a fork of gemini-cli and comes before it: if both variables are set, its own counts.
///
/// Each command resumes the named session, and never the latest one, which may be another session in the same
/// directory. No command has a flag that lets the agent do more than its user allows.
pub const AGENTS: &[Agent] = &[
    Agent {
        session_variables: &["CLAUDE_CODE_SESSION_ID"],
        mentions: &['@'],
        transcript: prints("--output-format json|stream-json", &[Shape::Turns]),
        ..row(
            "claude",
            "Claude Code",
            &[
                Door::ClaudeSocket,
                headless(
                    &["claude", "-p", "--resume", "{session}", "--output-format", "json"],
                    &[gone("No conversation found with session ID")],
                ),
            ],
        )
    },
    Agent {
        session_variables: &["CODEX_THREAD_ID", "CODEX_SESSION_ID"],
        session_form: SessionForm::Uuid,
        mentions: &['$'],
        // Commands may be run by its daemon, which has a directory of its own.
        sessions_have_a_directory: false,
        transcript: prints("exec --json", &[Shape::Items, Shape::Wrapped]),
        ..row(
            "codex",
            "Codex",
            &[
                headless(
                    &["codex", "exec", "resume", "--skip-git-repo-check", "{session}", "-"],
                    &[CODEX_OPEN, CODEX_GONE],
                ),
                Door::Queue(DoorCommand {
                    argv: &["codex", "queue", "--thread", "{session}", "--message", "{text}"],
                    complaints: &[CODEX_GONE],
                }),
            ],
        )
    },
    Agent {
        session_variables: &["QWEN_CODE_SESSION_ID"],
        session_form: SessionForm::Uuid,
        mentions: &['@'],
        transcript: prints("-o json|stream-json", &[Shape::Turns]),
        ..row(
            "qwen",
            "Qwen Code",
            &[
                Door::InputFile("--input-file"),
                headless(
                    &["qwen", "--resume", "{session}", "{text}"],
                    &[gone("No saved session found with ID")],
                ),
            ],
        )
    },
    Agent {
        session_variables: &["GEMINI_SESSION_ID"],
        session_form: SessionForm::Uuid,
        mentions: &['@'],
        transcript: prints("-o json|stream-json", &[Shape::Document, Shape::Messages, Shape::Turns]),
        ..row(
            "gemini",
            "gemini-cli",
            &[headless(
                &["gemini", "--resume", "{session}", "-p", "{text}"],
                // The second where the directory has no session at all.
                &[gone("Invalid session identifier"), gone("No previous sessions found for this project")],
            )],
        )
    },
    Agent {
        transcript: prints("run --format json", &[Shape::Parts]),
        ..row(
            "opencode",
            "opencode",
            &[
                Door::Plugin { loaded: None },
                headless(
                    &["opencode", "run", "--dir", "{directory}", "--session", "{session}", "{text}"],
                    &[gone("Session not found")],
                ),
            ],
        )
    },
    Agent {
        session_variables: &["COPILOT_AGENT_SESSION_ID"],
        session_form: SessionForm::Uuid,
        transcript: prints("--output-format json", &[Shape::Dotted, Shape::Turns]),
        ..row(
            "copilot",
            "Copilot",
            &[
                Door::Plugin {
                    loaded: Some(PluginSign {
                        option: "--experimental",
                        in_home: ".copilot/extensions/hearback/extension.mjs",
                        in_project: ".github/extensions/hearback/extension.mjs",
                    }),
                },
                headless(
                    &["copilot", "--resume={session}", "--no-ask-user", "-p", "{text}"],
                    &[gone("No session, task, or name matched")],
                ),
            ],
        )
    },
    // No door: it resumes a session only in a terminal.
    Agent { transcript: prints("--json", &[Shape::Says]), ..row("cline", "Cline", &[]) },
    Agent {
        session_variables: &["AGENT_SESSION_ID"],
        transcript: prints("run --output-format json|stream-json", &[Shape::Messages]),
        ..row(
            "goose",
            "goose",
            &[headless(
                &["goose", "run", "--resume", "--session-id", "{session}", "-i", "-"],
                &[gone("no such session exists")],
            )],
        )
    },
    Agent {
        program: "cursor-agent",
        transcript: prints("--output-format json|stream-json", &[Shape::Turns]),
        ..row(
            "cursor",
            "Cursor",
            &[headless(&["cursor-agent", "-p", "--resume", "{session}", "{text}"], &[])],
        )
    },
    Agent {
        session_variables: &["HERMES_SESSION_ID"],
        ..row(
            "hermes",
            "Hermes",
            &[headless(
                &["hermes", "chat", "--resume", "{session}", "-Q", "-q", "{text}"],
                &[gone("Session not found")],
            )],
        )
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_open_session_hears_only_through_a_door_that_it_has() {
        let deaf = |is_there: bool| -> Vec<_> {
            let agents = AGENTS.iter().filter(|agent| agent.is_deaf_when_open(|_| is_there));
            agents.map(|agent| agent.name).collect()
        };
        for some in ["claude", "opencode", "copilot", "qwen"] {
            assert!(deaf(false).contains(&some) && !deaf(true).contains(&some), "{some}");
        }
        assert!(!deaf(false).contains(&"codex"));
        assert!(deaf(true).contains(&"gemini"));
    }

    #[test]
    fn every_agent_resumes_the_session_that_is_named_and_asks_for_no_more_rights() {
        for agent in AGENTS {
            let commands = agent.doors.iter().filter_map(|door| match door {
                Door::Headless(command) | Door::Queue(command) => Some(command),
                Door::ClaudeSocket | Door::Plugin { .. } | Door::InputFile(_) => None,
            });
            for word in commands.flat_map(|command| {
                assert!(command.argv.iter().any(|word| word.contains("{session}")), "{}", agent.name);
                assert_eq!(command.argv[0], agent.program);
                command.argv
            }) {
                let asks =
                    ["yolo", "dangerous", "skip-permissions", "bypass", "full-auto", "--continue", "--last"];
                assert!(!asks.iter().any(|ask| word.contains(ask)), "{}: {word}", agent.name);
            }
        }
    }

    #[test]
    fn no_two_agents_share_a_name_or_a_variable() {
        let names: HashSet<_> = AGENTS.iter().map(|agent| agent.name).collect();
        assert_eq!(names.len(), AGENTS.len());
        let variables: HashSet<_> = session_variables().collect();
        assert_eq!(variables.len(), session_variables().count());
        assert_eq!(agent("hermes").map(|agent| agent.title), Some("Hermes"));
        assert_eq!(agent_of_program("cursor-agent").map(|agent| agent.name), Some("cursor"));
        assert_eq!(agent_of_program("claude.exe").map(|agent| agent.name), Some("claude"));
        assert_eq!(agent_of_program("bash"), None);
    }

    #[test]
    fn a_session_that_an_agent_would_take_for_something_else_is_none() {
        let codex = agent("codex").unwrap();
        let session = |text: &str| Session::parse(text).unwrap();
        assert_eq!(codex.refuses(&session("01a1ecaf-0869-7a61-91a7-57c5c9f65cc1")), None);
        for other in
            ["1", "latest", "01a1ecaf-0869-7a61-91a7-57c5c9f65cc", "01a1ecaf_0869_7a61_91a7_57c5c9f65cc1"]
        {
            assert!(codex.refuses(&session(other)).is_some(), "{other}");
        }
        assert_eq!(agent("opencode").unwrap().refuses(&session("ses_1")), None);
    }

    /// What the agents themselves said, in the versions of `docs/agents.md`.
    #[test]
    fn complaints_are_understood() {
        let gone = [
            ("claude", "No conversation found with session ID: 00000000-0000-4000-8000-000000000000"),
            ("codex", "Error: no rollout found for thread id 01a1"),
            (
                "qwen",
                "No saved session found with ID 00000000-0000-4000-8000-000000000000. Run `qwen --resume`",
            ),
            (
                "gemini",
                "Error resuming session: Invalid session identifier \"00000000\".\n  Searched for sessions in",
            ),
            ("gemini", "Error resuming session: No previous sessions found for this project."),
            ("opencode", "Error: Session not found"),
            ("copilot", "Error: No session, task, or name matched '00000000-0000-4000-8000-000000000000'."),
            ("goose", "  error: Cannot resume session 20261118_9 - no such session exists"),
            ("hermes", "Session not found: 20261118_064207_e83f29\nUse a session ID from a previous CLI run"),
        ];
        for (name, said) in gone {
            let headless = agent(name).unwrap().headless().unwrap();
            assert_eq!(headless.meaning_of(said), Some(Meaning::Gone), "{name}");
            assert_eq!(headless.meaning_of("Error: the network is down"), None, "{name}");
        }
        let open = "Error: thread/resume failed: thread 01a1 already has an active writer (code -32600)";
        assert_eq!(agent("codex").unwrap().headless().unwrap().meaning_of(open), Some(Meaning::Open));
    }

    #[test]
    fn a_mention_is_broken_for_the_agents_that_would_expand_it() {
        let text = "@a.txt b@c $skill $(date) @ $";
        let harmless = |name| agent(name).unwrap().without_mentions(text);
        assert_eq!(harmless("claude"), "@\u{200b}a.txt b@\u{200b}c $skill $(date) @ $");
        assert_eq!(harmless("codex"), "@a.txt b@c $\u{200b}skill $(date) @ $");
        assert_eq!(harmless("opencode"), text);
    }

    #[test]
    fn every_shape_of_a_transcript_is_that_of_an_agent() {
        let printed: HashSet<_> =
            AGENTS.iter().filter_map(|agent| agent.transcript).flat_map(|printed| printed.shapes).collect();
        assert_eq!(printed, Shape::ALL.iter().collect());
    }
}
