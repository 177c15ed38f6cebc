//! Which turns are marked and awaited, and which places are notified, when a host is to end: a pure function of the
//! turns that it runs.

use hearback_core::{Notice, RequestedBy, Session, StopRequest};

use crate::session::ActiveTurn;

/// What is to be done with the turns of a host that is to end. Marks come first, before the wait.
#[derive(Debug, Clone, PartialEq)]
pub struct DrainPlan {
    /// Turns that are continued later unless they end well, each with whether it requested this end itself.
    pub marks: Vec<(ActiveTurn, bool)>,
    /// One for each destination.
    pub notices: Vec<Notice>,
    /// Turns that are waited for. The turn that requested this is not among them: it would wait for itself.
    pub awaited: Vec<ActiveTurn>,
}

/// Decides.
pub fn plan(n: u32, request: &StopRequest, turns: &[ActiveTurn]) -> DrainPlan {
    let requested = |turn: &ActiveTurn| {
        let by = RequestedBy { session: turn.session.clone(), turn: turn.turn };
        request.by.as_ref() == Some(&by)
    };
    let mut destinations: Vec<(&str, Vec<Session>)> = Vec::new();
    for turn in turns {
        match destinations.iter_mut().find(|(place, _)| *place == turn.destination) {
            Some((_, sessions)) => sessions.push(turn.session.clone()),
            None => destinations.push((&turn.destination, vec![turn.session.clone()])),
        }
    }
    let notice = |(place, sessions): (&str, Vec<Session>)| Notice::new(n, request.kind, place, sessions);
    DrainPlan {
        marks: turns.iter().map(|turn| (turn.clone(), requested(turn))).collect(),
        notices: destinations.into_iter().map(notice).collect(),
        awaited: turns.iter().filter(|turn| !requested(turn)).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::StopKind;
    use hearback_core::testing::sample;

    fn turn(session: &str, destination: &str) -> ActiveTurn {
        let session = Session::parse(session).unwrap();
        ActiveTurn { session, turn: 3, mark: sample::id(1), destination: destination.to_owned() }
    }

    fn restart() -> StopRequest {
        StopRequest::new(StopKind::Restart, sample::stamp())
    }

    #[test]
    fn scenario_95_each_destination_is_notified_once() {
        let turns =
            [turn("a", "chat"), turn("b", "chat"), turn("c", "chat/thread-1"), turn("d", "chat/thread-2")];
        let plan = plan(1, &restart(), &turns);
        let notified: Vec<_> =
            plan.notices.iter().map(|notice| (notice.destination.as_str(), notice.sessions.len())).collect();
        assert_eq!(notified, [("chat", 2), ("chat/thread-1", 1), ("chat/thread-2", 1)]);
        assert_eq!(super::plan(1, &restart(), &[]).notices, [], "without a turn, no place is notified");
    }

    #[test]
    fn scenario_92_the_turn_that_requests_a_stop_is_marked_and_not_waited_for() {
        let requesting = turn("a", "a");
        let by = RequestedBy { session: requesting.session.clone(), turn: 3 };
        let request = StopRequest { by: Some(by), ..restart() };
        let plan = plan(1, &request, &[requesting.clone(), turn("b", "b")]);
        assert_eq!(plan.awaited, [turn("b", "b")]);
        assert_eq!(plan.marks, [(requesting, true), (turn("b", "b"), false)]);
        // An earlier turn of the same session has ended.
        let by = Some(RequestedBy { session: Session::parse("a").unwrap(), turn: 2 });
        let stale = StopRequest { by, ..restart() };
        assert_eq!(super::plan(1, &stale, &[turn("a", "a")]).awaited.len(), 1);
    }
}
