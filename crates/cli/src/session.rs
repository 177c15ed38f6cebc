//! Which session this process belongs to.

use hearback_core::Session;

/// Our own variable first, then those that agents set for their children.
const VARIABLES: [&str; 6] = [
    "HEARBACK_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "QWEN_CODE_SESSION_ID",
    "GEMINI_SESSION_ID",
    "AGENT_SESSION_ID",
];

/// The session that the environment names, if any. An empty variable names none.
pub fn current_session() -> Option<Session> {
    VARIABLES.iter().find_map(|name| Session::parse(std::env::var(name).ok()?).ok())
}
