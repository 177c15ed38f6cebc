//! Which session this process belongs to.

use std::ffi::OsString;

use hearback_core::{NameError, RequestedBy, Session, agents};
use hearback_platform::Native;

/// Names the session to the processes of a turn.
pub const VARIABLE: &str = "HEARBACK_SESSION";
/// Names the turn to its processes.
pub const TURN_VARIABLE: &str = "HEARBACK_TURN";
/// The note for an agent whose last turn was cut short.
pub const NOTE_VARIABLE: &str = "HEARBACK_NOTE";

/// The variable of hearback first, then those that agents set for their children.
fn variables() -> impl Iterator<Item = &'static str> {
    std::iter::once(VARIABLE).chain(agents::session_variables())
}

/// The variables of this process that name another session than this one: a program that is started for one session
/// must not be taken for part of another.
pub(crate) fn variables_of_others(session: Option<&Session>) -> impl Iterator<Item = &'static str> {
    let ours = session.map(|session| std::ffi::OsStr::new(session.as_str()));
    variables()
        .filter(move |name| std::env::var_os(name).is_some_and(|value| Some(value.as_os_str()) != ours))
}

/// How many follow-ups led to what runs here.
pub(crate) const DEPTH_VARIABLE: &str = "HEARBACK_DEPTH";

/// How many follow-ups and messages led to this process; zero if none started it.
pub fn current_depth() -> u32 {
    std::env::var(DEPTH_VARIABLE).ok().and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// How many follow-ups and messages lead to a message that this process sends. One that a turn or a job sends may be
/// part of a chain in which each message makes an agent send the next; one that a person sends is not.
pub(crate) fn depth_of_message() -> u32 {
    let variables = [TURN_VARIABLE, DEPTH_VARIABLE, hearback_platform::Names::HEARBACK.job];
    let is_ours = variables.iter().any(|name| std::env::var_os(name).is_some());
    current_depth().saturating_add(u32::from(is_ours))
}

/// The turn that this process runs in, if hearback began one.
pub fn current_turn() -> Option<RequestedBy> {
    let turn = std::env::var(TURN_VARIABLE).ok()?.parse().ok()?;
    let session = Session::parse(std::env::var(VARIABLE).ok()?).ok()?;
    Some(RequestedBy { session, turn })
}

/// Of several variables, the one that counts: hearback's own, else that of the nearest agent above this process, since
/// everything below an agent inherits its variables, another agent as well.
fn innermost(set: Vec<(&'static str, OsString)>) -> Option<(&'static str, OsString)> {
    let is_ours = set.first().is_some_and(|(name, _)| *name == VARIABLE);
    if set.len() > 1 && !is_ours {
        let nearest = crate::agent::nearest(Native::default());
        let of_nearest =
            |name: &str| nearest.as_ref().is_some_and(|(agent, _)| agent.session_variables.contains(&name));
        if let Some(found) = set.iter().find(|(name, _)| of_nearest(name)) {
            return Some(found.clone());
        }
    }
    set.into_iter().next()
}

/// A variable that names an invalid session.
///
/// It is an error and is not ignored: without a session, a caller sees the jobs of all sessions.
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
/// When a variable names an invalid session.
pub fn current_session() -> Result<Option<Session>, SessionError> {
    let set: Vec<_> = variables()
        .filter_map(|name| Some((name, std::env::var_os(name).filter(|text| !text.is_empty())?)))
        .collect();
    let Some((variable, text)) = innermost(set) else { return Ok(None) };
    match text.into_string().map_err(|_| NameError::NotText("session")).and_then(Session::parse) {
        Ok(session) => Ok(Some(session)),
        Err(source) => Err(SessionError { variable, source }),
    }
}
