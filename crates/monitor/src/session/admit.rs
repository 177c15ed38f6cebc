//! What to do with a message that arrives now: a pure function of the session's state and the host's.

use hearback_core::{Busy, LockState, StopKind};

/// What to do with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is queued behind all others.
    Queue,
    /// It is queued behind all others, and the current turn is interrupted for it.
    Interrupt,
    /// It is refused.
    Refuse(Refusal),
}

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host is about to end, and takes no message.
    #[error("hearback is about to {0}, and takes nothing new for now")]
    TakesNothingNew(StopKind),
    /// The host is about to end, and the session is in a turn.
    #[error("hearback is about to {0}: the session is in a turn, and no further turn is taken")]
    NoFurtherTurn(StopKind),
}

/// Decides. `stopping` is what the host is about to do, `turn` the lock of the session's turn: held while it is in one.
pub fn admit(stopping: Option<StopKind>, busy: Busy, turn: LockState) -> Admission {
    match (stopping, busy, turn) {
        (None, Busy::Interrupt, LockState::Held) => Admission::Interrupt,
        (None, ..) => Admission::Queue,
        // The session continues after the restart, and the message waits for it.
        (Some(StopKind::Restart), Busy::Queue, LockState::Held) => Admission::Queue,
        (Some(kind), _, LockState::Held) => Admission::Refuse(Refusal::NoFurtherTurn(kind)),
        (Some(kind), _, LockState::Free) => Admission::Refuse(Refusal::TakesNothingNew(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_a_restart_a_message_waits_for_a_busy_session_and_is_refused_otherwise() {
        let restart = Some(StopKind::Restart);
        assert_eq!(admit(restart, Busy::Queue, LockState::Held), Admission::Queue);
        assert!(matches!(
            admit(restart, Busy::Queue, LockState::Free),
            Admission::Refuse(Refusal::TakesNothingNew(_))
        ));
        assert!(matches!(
            admit(restart, Busy::Interrupt, LockState::Held),
            Admission::Refuse(Refusal::NoFurtherTurn(_))
        ));
        for kind in [StopKind::Stop, StopKind::Drain] {
            let refused = admit(Some(kind), Busy::Queue, LockState::Held);
            assert!(matches!(refused, Admission::Refuse(Refusal::NoFurtherTurn(_))), "{kind}");
        }
    }

    #[test]
    fn otherwise_a_message_waits_or_interrupts() {
        assert_eq!(admit(None, Busy::Queue, LockState::Held), Admission::Queue);
        assert_eq!(admit(None, Busy::Interrupt, LockState::Held), Admission::Interrupt);
        assert_eq!(admit(None, Busy::Interrupt, LockState::Free), Admission::Queue);
    }
}
