//! Whether the host of a store does its work: what has been due for long says that it does not.

use hearback_core::LockState;
use hearback_core::port::record::StoreError;

use crate::delivery::{OVERDUE_AFTER, Retry, message_overdue};
use crate::{HostState, Ports};

/// Whether a host serves the store and does its work. One that runs and leaves a message of a session that is not in a
/// turn waiting for [`OVERDUE_AFTER`] does not.
///
/// # Errors
///
/// When the host or the sessions cannot be looked at.
pub fn host_state(ports: &Ports, retry: &Retry) -> Result<HostState, StoreError> {
    let state = ports.host_state()?;
    if state != HostState::Answers || ports.sessions.host()?.stopping(LockState::Held).is_some() {
        return Ok(state);
    }
    let now = ports.clock.stamp();
    for session in ports.sessions.sessions()? {
        // A session that cannot be looked at says nothing about the host.
        let Ok(facts) = ports.sessions.session(&session) else { continue };
        let is_overdue = message_overdue(&facts, &now, retry) >= OVERDUE_AFTER;
        if is_overdue && ports.turn_lock(&session)? == LockState::Free {
            return Ok(HostState::Silent);
        }
    }
    Ok(state)
}
