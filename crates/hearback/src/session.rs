//! Which session this process belongs to.
use hearback_core::RequestedBy;
use hearback_core::{NameError, Session};

/// Names the session to whatever runs in a turn of it.
pub const VARIABLE: &str = "HEARBACK_SESSION";
/// Names the turn to whatever runs in it.
pub const TURN_VARIABLE: &str = "HEARBACK_TURN";
/// What an agent is to be told first, because its last turn was cut short.
pub const NOTE_VARIABLE: &str = "HEARBACK_NOTE";

/// Our own variable first, then those that agents set for their children.
const VARIABLES: [&str; 6] = [
    VARIABLE,
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "QWEN_CODE_SESSION_ID",
    "GEMINI_SESSION_ID",
    "AGENT_SESSION_ID",
];

/// The variables of this process that name a session, but not this one: what is started for one must not take itself
/// for part of another.
pub(crate) fn variables_of_others(session: Option<&Session>) -> impl Iterator<Item = &'static str> {
    let ours = session.map(|session| std::ffi::OsStr::new(session.as_str()));
    VARIABLES
        .into_iter()
        .filter(move |name| std::env::var_os(name).is_some_and(|value| Some(value.as_os_str()) != ours))
}

/// How many follow-ups led to what runs here.
pub(crate) const DEPTH_VARIABLE: &str = "HEARBACK_DEPTH";

/// How many follow-ups led to this process; none when it was not woken by one.
pub fn current_depth() -> u32 {
    std::env::var(DEPTH_VARIABLE).ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// The turn that this process runs in, if it runs in one of ours.
pub fn current_turn() -> Option<RequestedBy> {
    let turn = std::env::var(TURN_VARIABLE).ok()?.parse().ok()?;
    let session = Session::parse(std::env::var(VARIABLE).ok()?).ok()?;
    Some(RequestedBy { session, turn })
}

/// A variable that should name a session and cannot.
///
/// It is not passed over: without a session a caller sees everybody's jobs.
#[derive(Debug, thiserror::Error)]
#[error("{variable} names no session")]
pub struct SessionError {
    variable: &'static str,
    source: NameError,
}

/// The session that the environment names, if any. An empty variable names none.
///
/// # Errors
///
/// When a variable is set to something that can be no session.
pub fn current_session() -> Result<Option<Session>, SessionError> {
    let set = VARIABLES
        .iter()
        .find_map(|name| Some((*name, std::env::var_os(name).filter(|text| !text.is_empty())?)));
    let Some((variable, text)) = set else { return Ok(None) };
    match text.into_string().map_err(|_| NameError::NotText("session")).and_then(Session::parse) {
        Ok(session) => Ok(Some(session)),
        Err(source) => Err(SessionError { variable, source }),
    }
}
