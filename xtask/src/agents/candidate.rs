//! The agents that are tried: how each is installed and started, and what is expected of it.

use super::settings::{self, Configure, Variables};
use super::stage::Stage;
use super::trial::Trial;

/// An agent that is tried.
pub(super) struct Candidate {
    /// The name of its preset.
    pub(super) name: &'static str,
    pub(super) package: Package,
    /// Its program.
    pub(super) program: &'static str,
    /// The variables with which it is started: the model on loopback, no account.
    pub(super) variables: fn(&Stage) -> Variables,
    /// The variables with which only hearback's hook reaches an open session; none if it has no hook.
    pub(super) only_hook: Option<fn(&Stage) -> Variables>,
    /// Writes its settings: no questions, and the MCP server if one is wanted.
    pub(super) configure: Configure,
    /// One turn without a terminal, in a new session. `{prompt}` is replaced.
    pub(super) headless: &'static [&'static str],
    /// A session in a terminal. `{home}` is replaced.
    pub(super) open: &'static [&'static str],
    /// What its screen shows when it waits for a prompt.
    pub(super) ready: &'static str,
    /// What makes it quit, if it outlives its terminal.
    pub(super) quit: &'static str,
    /// How its model names the session in a launch, where the agent does not.
    pub(super) names_session: &'static str,
    /// Variables of its own that it keeps from the commands of its model, and that a woken agent needs here.
    pub(super) keeps_back: &'static [&'static str],
    /// What is expected while it is open.
    pub(super) when_open: WhenOpen,
    /// Whether it names its session to MCP servers.
    pub(super) mcp_knows_session: bool,
    /// Trials that are not made, each with the reason.
    pub(super) not_tried: &'static [(Trial, &'static str)],
}

/// Where an agent comes from, with the version that this was written for.
#[derive(Clone, Copy)]
pub(super) enum Package {
    Npm(&'static str),
    Pip(&'static str),
}

/// What is expected while a session is open in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenOpen {
    /// The screen shows the wake-up, and the answer to it.
    Woken,
    /// It has no way in. Nothing counts as delivered until it is closed; then it is woken.
    Waits,
}

/// A session that a candidate is told to use.
const CHOSEN: &str = "11111111-1111-4111-8111-111111111111";

/// What most have in common.
const DEFAULT: Candidate = Candidate {
    name: "",
    package: Package::Npm(""),
    program: "",
    variables: |_| Vec::new(),
    only_hook: None,
    configure: |_, _| Ok(()),
    headless: &[],
    open: &[],
    ready: "",
    quit: "",
    names_session: "",
    keeps_back: &[],
    when_open: WhenOpen::Waits,
    mcp_knows_session: true,
    not_tried: &[],
};

/// All of them.
pub(super) const CANDIDATES: &[Candidate] = &[
    Candidate {
        name: "claude",
        package: Package::Npm("@anthropic-ai/claude-code@2.1.326"),
        program: "claude",
        variables: settings::claude_variables,
        only_hook: Some(settings::claude_without_socket),
        configure: settings::claude,
        headless: &["claude", "-p", "--allowedTools", "Bash,mcp__trial", "--", "{prompt}"],
        open: &["claude", "--permission-mode", "default", "--allowedTools", "Bash"],
        ready: "? for shortcuts",
        when_open: WhenOpen::Woken,
        ..DEFAULT
    },
    Candidate {
        name: "codex",
        package: Package::Npm("@openai/codex@0.169.0"),
        program: "codex",
        variables: |_| vec![("STUB_KEY", "dummy".into())],
        configure: settings::codex,
        headless: &["codex", "exec", "--skip-git-repo-check", "{prompt}"],
        open: &["codex"],
        ready: "? for shortcuts",
        when_open: WhenOpen::Woken,
        ..DEFAULT
    },
    Candidate {
        name: "opencode",
        package: Package::Npm("opencode-ai@1.18.33"),
        program: "opencode",
        variables: settings::opencode_variables,
        configure: settings::opencode,
        headless: &["opencode", "run", "{prompt}"],
        open: &["opencode"],
        ready: "Ask anything",
        when_open: WhenOpen::Woken,
        mcp_knows_session: false,
        ..DEFAULT
    },
    Candidate {
        name: "qwen",
        package: Package::Npm("@qwen-code/qwen-code@0.24.4"),
        program: "qwen",
        variables: settings::qwen_variables,
        configure: settings::qwen,
        headless: &["qwen", "--approval-mode", "yolo", "{prompt}"],
        open: &["qwen", "--approval-mode", "yolo", "--input-file", "{home}/input.jsonl"],
        ready: "Type your message",
        when_open: WhenOpen::Woken,
        ..DEFAULT
    },
    Candidate {
        name: "gemini",
        package: Package::Npm("@google/gemini-cli@0.61.0"),
        program: "gemini",
        variables: settings::gemini_variables,
        configure: settings::gemini,
        headless: &["gemini", "--approval-mode", "yolo", "--session-id", CHOSEN, "-p", "{prompt}"],
        open: &["gemini", "--approval-mode", "yolo", "--session-id", CHOSEN],
        ready: "Type your message",
        quit: "/quit",
        names_session: "--session 11111111-1111-4111-8111-111111111111",
        mcp_knows_session: false,
        ..DEFAULT
    },
    Candidate {
        name: "copilot",
        package: Package::Npm("@github/copilot@1.0.102"),
        program: "copilot",
        variables: settings::copilot_variables,
        configure: settings::copilot,
        headless: &["copilot", "--allow-all", "--no-auto-update", "-p", "{prompt}"],
        // It loads extensions, and hearback's with them, only so.
        open: &["copilot", "--allow-all", "--no-auto-update", "--experimental"],
        ready: "/ commands",
        when_open: WhenOpen::Woken,
        keeps_back: &["COPILOT_PROVIDER_BASE_URL", "COPILOT_PROVIDER_API_KEY"],
        ..DEFAULT
    },
    Candidate {
        name: "goose",
        package: Package::Npm("@aaif/goose@0.20.1"),
        program: "goose",
        variables: settings::goose_variables,
        configure: settings::goose,
        headless: &["goose", "run", "-t", "{prompt}"],
        open: &["goose", "session"],
        ready: "goose is ready",
        // Its sessions are numbered by day, and each trial has a home of its own.
        names_session: "--session $(date +%Y%m%d)_1",
        ..DEFAULT
    },
    Candidate {
        name: "hermes",
        package: Package::Pip("hermes-agent==0.19.0"),
        program: "hermes",
        configure: settings::hermes,
        headless: &["hermes", "chat", "-Q", "-q", "{prompt}"],
        open: &["hermes", "chat"],
        ready: "Type your message",
        not_tried: &[(Trial::Mcp, "its package has no MCP client")],
        ..DEFAULT
    },
];
