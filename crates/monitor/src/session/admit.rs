//! What becomes of a message that comes in now: a pure function of who is busy and of what the host is about to do.

use hearback_core::{Busy, StopKind};

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is put behind all others.
    Queue,
    /// It is put behind all others, and the turn that is under way is cut short for it.
    Interrupt,
    /// It is not taken.
    Refuse(Refusal),
}

/// Why a message is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host takes nothing new.
    #[error("hearback is about to {0}, and takes nothing new for now")]
    TakesNothingNew(StopKind),
    /// The session is in its last turn.
    #[error("hearback is about to {0}: the session is in a turn, and no further turn is taken")]
    NoFurtherTurn(StopKind),
}

/// Decides. `stopping` is what the host is about to do, `in_turn` whether the session is busy.
pub fn admit(stopping: Option<StopKind>, busy: Busy, in_turn: bool) -> Admission {
    match (stopping, busy, in_turn) {
        (None, Busy::Interrupt, true) => Admission::Interrupt,
        (None, ..) => Admission::Queue,
        // It is there afterwards, and so is the message.
        (Some(StopKind::Restart), Busy::Queue, true) => Admission::Queue,
        (Some(kind), _, true) => Admission::Refuse(Refusal::NoFurtherTurn(kind)),
        (Some(kind), _, false) => Admission::Refuse(Refusal::TakesNothingNew(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_a_restart_the_busy_are_queued_for_and_everybody_else_is_refused() {
        let restart = Some(StopKind::Restart);
        assert_eq!(admit(restart, Busy::Queue, true), Admission::Queue);
        assert!(matches!(admit(restart, Busy::Queue, false), Admission::Refuse(Refusal::TakesNothingNew(_))));
        assert!(matches!(
            admit(restart, Busy::Interrupt, true),
            Admission::Refuse(Refusal::NoFurtherTurn(_))
        ));
        for kind in [StopKind::Stop, StopKind::Drain] {
            let refused = admit(Some(kind), Busy::Queue, true);
            assert!(matches!(refused, Admission::Refuse(Refusal::NoFurtherTurn(_))), "{kind}");
        }
    }

    #[test]
    fn otherwise_a_message_waits_or_interrupts() {
        assert_eq!(admit(None, Busy::Queue, true), Admission::Queue);
        assert_eq!(admit(None, Busy::Interrupt, true), Admission::Interrupt);
        assert_eq!(admit(None, Busy::Interrupt, false), Admission::Queue);
    }
}
