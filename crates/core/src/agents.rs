//! The agents that hearback knows, as data: one row each.
//!
//! A row contains the command that wakes an agent, the variable that names its session to its children, and the shape
//! of its transcript. A new agent is a new row, unless its transcript has a new shape.

use crate::transcript::Shape;

/// One kind of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agent {
    /// Its name in settings and on the command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The variable that names its session to the programs that it starts.
    pub session_variable: Option<&'static str>,
    /// The command that resumes a session without a terminal and runs one turn of it. `{session}` and `{text}` are
    /// replaced by their values; without `{text}` the agent reads the text from its standard input.
    pub headless: &'static [&'static str],
    /// Its transcript in JSON.
    pub transcript: Option<AgentTranscript>,
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

impl Agent {
    /// Whether the text is part of the command. Otherwise the agent reads it from its standard input, where other users
    /// of the machine cannot see it.
    pub fn takes_text_as_argument(&self) -> bool {
        self.headless.iter().any(|word| word.contains("{text}"))
    }
}

/// The agent of this name.
pub fn agent(name: &str) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.name == name)
}

/// The variables that name the session of an agent. If several are set, the first one counts.
pub fn session_variables() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().filter_map(|agent| agent.session_variable)
}

/// A row with only the command: the session variable and the transcript of this agent are unknown.
const fn row(name: &'static str, title: &'static str, headless: &'static [&'static str]) -> Agent {
    Agent { name, title, session_variable: None, headless, transcript: None }
}

const fn prints(options: &'static str, shapes: &'static [Shape]) -> Option<AgentTranscript> {
    Some(AgentTranscript { options, shapes })
}

/// All agents. Qwen Code is a fork of gemini-cli and comes before it: if both variables are set, its own counts.
///
/// Each command resumes the named session, and never the latest one, which may be another session in the same
/// directory. No command has a flag that lets the agent do more than its user allows.
pub const AGENTS: &[Agent] = &[
    Agent {
        session_variable: Some("CLAUDE_CODE_SESSION_ID"),
        transcript: prints("--output-format json|stream-json", &[Shape::Turns]),
        ..row("claude", "Claude Code", &["claude", "-p", "--resume", "{session}", "--output-format", "json"])
    },
    Agent {
        session_variable: Some("CODEX_THREAD_ID"),
        transcript: prints("exec --json", &[Shape::Items, Shape::Wrapped]),
        ..row("codex", "Codex", &["codex", "exec", "resume", "--skip-git-repo-check", "{session}", "-"])
    },
    Agent {
        session_variable: Some("QWEN_CODE_SESSION_ID"),
        transcript: prints("-o json|stream-json", &[Shape::Turns]),
        ..row("qwen", "Qwen Code", &["qwen", "--resume", "{session}", "{text}"])
    },
    Agent {
        session_variable: Some("GEMINI_SESSION_ID"),
        transcript: prints("-o json|stream-json", &[Shape::Document, Shape::Messages, Shape::Turns]),
        ..row("gemini", "gemini-cli", &["gemini", "--resume", "{session}", "-p", "{text}"])
    },
    Agent {
        transcript: prints("run --format json", &[Shape::Parts]),
        ..row("opencode", "opencode", &["opencode", "run", "--session", "{session}", "{text}"])
    },
    Agent {
        transcript: prints("--output-format json", &[Shape::Dotted, Shape::Turns]),
        ..row("copilot", "Copilot", &["copilot", "--resume={session}", "--no-ask-user", "-p", "{text}"])
    },
    Agent {
        transcript: prints("--json", &[Shape::Says]),
        ..row("cline", "Cline", &["cline", "--id", "{session}", "--auto-approve", "false", "{text}"])
    },
    Agent {
        session_variable: Some("AGENT_SESSION_ID"),
        transcript: prints("run --output-format json|stream-json", &[Shape::Messages]),
        ..row("goose", "goose", &["goose", "run", "--resume", "--session-id", "{session}", "-i", "-"])
    },
    Agent {
        transcript: prints("--output-format json|stream-json", &[Shape::Turns]),
        ..row("cursor", "Cursor", &["cursor-agent", "-p", "--resume", "{session}", "{text}"])
    },
    row("hermes", "Hermes", &["hermes", "chat", "--resume", "{session}", "-Q", "-q", "{text}"]),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_agent_resumes_the_session_that_is_named_and_asks_for_no_more_rights() {
        for agent in AGENTS {
            assert!(agent.headless.iter().any(|word| word.contains("{session}")), "{}", agent.name);
            for word in agent.headless {
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
    }

    #[test]
    fn every_shape_of_a_transcript_is_that_of_an_agent() {
        let printed: HashSet<_> =
            AGENTS.iter().filter_map(|agent| agent.transcript).flat_map(|printed| printed.shapes).collect();
        assert_eq!(printed, Shape::ALL.iter().collect());
    }
}
