//! What the answer of a sink means: a pure function, for follow-ups and messages alike.

use std::time::Duration;

use hearback_core::ProcessIdentity;
use hearback_core::port::sink::SinkReply;
use hearback_core::session::{Interruption, held};

use super::due::Retry;

/// The response to a hand-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The sink answered.
    Replied(SinkReply),
    /// The sink is missing, failed, or did not answer in time.
    Failed(String),
    /// It was closed before anything was handed over.
    Closed,
    /// The turn in which it ran was interrupted.
    Interrupted(Interruption),
}

impl Response {
    /// The response as far as it is about one delivery.
    pub fn about(&self, delivery: &str) -> Self {
        let Self::Replied(SinkReply::Each { replies, error }) = self else { return self.clone() };
        match replies.iter().find(|(id, _)| id == delivery) {
            Some((_, reply)) => Self::Replied(reply.clone()),
            None => Self::Failed(error.clone().unwrap_or_else(|| "the sink gave no answer about it".into())),
        }
    }

    /// Why it was not delivered; none if it was.
    pub fn error(&self) -> Option<String> {
        let text = match self {
            Self::Replied(SinkReply::Delivered | SinkReply::Queued) => return None,
            Self::Replied(SinkReply::Busy { reason, .. }) if reason.is_empty() => "the session is busy",
            Self::Replied(SinkReply::Busy { reason, .. }) => reason,
            Self::Replied(SinkReply::Unreachable { reason, .. }) if reason.is_empty() => {
                "the session cannot be reached"
            }
            Self::Replied(SinkReply::Unreachable { reason, .. }) => reason,
            Self::Replied(SinkReply::RetryAfter { .. }) => "the sink requested a later time",
            Self::Replied(SinkReply::Gone { reason }) if reason.is_empty() => "the session is gone",
            Self::Replied(SinkReply::Gone { reason }) => reason,
            Self::Replied(SinkReply::Failed { reason }) if reason.is_empty() => "the sink failed",
            Self::Replied(SinkReply::Failed { reason }) => reason,
            Self::Replied(SinkReply::Each { error, .. }) => return error.clone(),
            // A later protocol may have more answers.
            Self::Replied(_) => "the sink gave an unknown answer",
            Self::Failed(error) => error,
            Self::Closed => "it was closed before it was handed over",
            Self::Interrupted(reason) => return Some(format!("interrupted: {reason}")),
        };
        Some(text.to_owned())
    }
}

/// Why a sink gets a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkRole<'a> {
    /// It is the one that the chain has come to.
    Own,
    /// The one that the chain has come to cannot reach the session.
    StandIn {
        /// Why it cannot.
        reason: &'a str,
        /// Whether this one starts a turn of the session itself: then the session has it, and not only a person.
        starts_turn: bool,
    },
}

/// What is known of the attempts so far, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History<'a> {
    /// Attempts that count towards giving up, this one included.
    pub attempts_used: u32,
    /// How often in a row, right before this attempt, the session was busy.
    pub busy_before: u32,
    /// How often in a row, right before this attempt, its turn was cut short.
    pub cut_short_before: usize,
    /// Whether the chain has another sink after this one.
    pub more_sinks: bool,
    /// For whom the sink gets it.
    pub role: SinkRole<'a>,
    /// Any number: it spreads the pauses of deliveries that failed together.
    pub chance: u64,
}

/// What is to be recorded of an attempt, and when the next one is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The owner has it.
    Delivered,
    /// The agent keeps it for its session.
    Queued,
    /// The session is busy. No attempt is spent, and the pause grows with each such answer, because each leaves a
    /// record.
    Busy {
        /// Why.
        error: String,
        /// The process in which the session is open, if that has to end first.
        process: Option<ProcessIdentity>,
        /// When to come back.
        pause: Duration,
    },
    /// The session is open where it cannot be reached. No attempt is spent. A later sink of the chain is told, if there
    /// is one that was not told, and this one is tried again.
    Unreachable {
        /// Why.
        error: String,
        /// The process in which it is open, if it is known.
        process: Option<ProcessIdentity>,
        /// When to come back.
        pause: Duration,
    },
    /// A sink was told in place of one that cannot reach the session, or was not. The session has not heard of it, and
    /// no attempt is spent.
    StandIn {
        /// Whether it has taken it.
        told: bool,
        /// Why the session cannot be reached, and why this sink has not taken it.
        error: String,
        /// When to come back to the session.
        pause: Duration,
    },
    /// The turn was interrupted. It continues as its own next attempt, and no attempt is spent.
    Interrupted {
        /// What interrupted it.
        reason: Interruption,
        /// Why.
        error: String,
        /// When to come back.
        pause: Duration,
    },
    /// It failed, and the attempt is spent.
    Retry {
        /// Why.
        error: String,
        /// When to try again.
        pause: Duration,
    },
    /// The session no longer exists there: the next sink of the chain is tried at once.
    NextSink {
        /// Why.
        error: String,
    },
    /// No further attempt is made: a dead letter, until a person acts.
    GiveUp {
        /// Why.
        error: String,
        /// Whether the reason is that the session no longer exists.
        gone: bool,
    },
}

impl Verdict {
    /// When the next attempt is due; none if there is no next one.
    pub fn next(&self) -> Option<Duration> {
        match self {
            Self::Delivered | Self::Queued | Self::GiveUp { .. } => None,
            Self::Busy { pause, .. }
            | Self::Unreachable { pause, .. }
            | Self::StandIn { pause, .. }
            | Self::Interrupted { pause, .. }
            | Self::Retry { pause, .. } => Some(*pause),
            Self::NextSink { .. } => Some(Duration::ZERO),
        }
    }

    /// Why it was not delivered; none if it was.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Delivered | Self::Queued => None,
            Self::Busy { error, .. }
            | Self::Unreachable { error, .. }
            | Self::StandIn { error, .. }
            | Self::Interrupted { error, .. }
            | Self::Retry { error, .. }
            | Self::NextSink { error }
            | Self::GiveUp { error, .. } => Some(error),
        }
    }
}

/// Decides what becomes of an attempt.
pub fn interpret(response: &Response, history: &History<'_>, retry: &Retry) -> Verdict {
    let pause = |attempts| retry.pause(attempts, history.chance);
    let busy_pause = || pause(history.busy_before.saturating_add(1));
    let error = match (response.error(), history.role) {
        (None, SinkRole::StandIn { starts_turn: false, reason }) => {
            return Verdict::StandIn { told: true, error: reason.to_owned(), pause: busy_pause() };
        }
        (None, _) if *response == Response::Replied(SinkReply::Queued) => return Verdict::Queued,
        (None, _) => return Verdict::Delivered,
        (Some(error), SinkRole::StandIn { reason, .. }) if !matches!(response, Response::Interrupted(_)) => {
            let error = format!("{reason}; the next sink was not told either: {error}");
            return Verdict::StandIn { told: false, error, pause: busy_pause() };
        }
        (Some(error), _) => error,
    };
    let is_last = history.attempts_used >= retry.attempts_max;
    match response {
        Response::Replied(SinkReply::Busy { process, retry_after_ms, .. }) => {
            let wanted = retry_after_ms.map(|millis| Duration::from_millis(millis).min(retry.most));
            Verdict::Busy { error, process: process.clone(), pause: wanted.unwrap_or_else(busy_pause) }
        }
        Response::Replied(SinkReply::Unreachable { process, .. }) => {
            Verdict::Unreachable { error, process: process.clone(), pause: busy_pause() }
        }
        Response::Replied(SinkReply::Gone { .. }) if history.more_sinks => Verdict::NextSink { error },
        Response::Replied(SinkReply::Gone { .. }) => Verdict::GiveUp { error, gone: true },
        // The message for which it was interrupted goes first.
        Response::Interrupted(reason @ Interruption::Message) => {
            Verdict::Interrupted { reason: *reason, error, pause: pause(1) }
        }
        // What cuts short every turn that gets it would go on for ever.
        Response::Interrupted(reason) => match held(history.cut_short_before + 1, *reason) {
            Some(error) => Verdict::GiveUp { error, gone: false },
            None => Verdict::Interrupted { reason: *reason, error, pause: Duration::ZERO },
        },
        Response::Replied(_) | Response::Failed(_) | Response::Closed if is_last => {
            Verdict::GiveUp { error, gone: false }
        }
        Response::Replied(SinkReply::RetryAfter { millis }) => {
            Verdict::Retry { error, pause: Duration::from_millis(*millis).min(retry.most) }
        }
        Response::Replied(_) | Response::Failed(_) | Response::Closed => {
            Verdict::Retry { error, pause: pause(history.attempts_used) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pauses are exact with it: a hundred percent.
    const CHANCE: u64 = 25;

    fn history(attempts_used: u32, busy_before: u32, more_sinks: bool) -> History<'static> {
        let role = SinkRole::Own;
        History { attempts_used, busy_before, cut_short_before: 0, more_sinks, role, chance: CHANCE }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn every_answer_has_one_meaning() {
        use SinkReply::{Delivered, Gone, RetryAfter, Unknown};
        let reply = Response::Replied;
        let gone = |reason: &str| reply(Gone { reason: reason.into() });
        let failed = || Response::Failed("no luck".into());
        let (busy, later) = ("the session is busy", "the sink requested a later time");
        let unknown = "the sink gave an unknown answer";
        let (error, first, third) = (String::from, history(1, 0, false), history(3, 0, false));
        let last = history(8, 0, false);
        let retry = |text, seconds| Verdict::Retry { error: error(text), pause: secs(seconds) };
        let is_busy = |seconds| Verdict::Busy { error: error(busy), process: None, pause: secs(seconds) };
        let give_up = |text, gone| Verdict::GiveUp { error: error(text), gone };
        let cut =
            |reason, text, seconds| Verdict::Interrupted { reason, error: error(text), pause: secs(seconds) };
        let cut_before = |times| History { cut_short_before: times, ..last };
        let held =
            "held for a person: its turn was cut short 3 times in a row (last: the host was restarted)";
        for (response, history, verdict) in [
            (reply(Delivered), last, Verdict::Delivered),
            (reply(SinkReply::busy()), first, is_busy(5)),
            (reply(SinkReply::busy()), history(1, 3, false), is_busy(40)),
            (reply(SinkReply::busy()), history(1, 1000, false), is_busy(3600)),
            (reply(SinkReply::busy()), last, is_busy(5)),
            (reply(RetryAfter { millis: 9_000 }), first, retry(later, 9)),
            (reply(RetryAfter { millis: u64::MAX }), first, retry(later, 3600)),
            (reply(RetryAfter { millis: 9_000 }), last, give_up(later, false)),
            (gone("deleted"), history(1, 0, true), Verdict::NextSink { error: error("deleted") }),
            (gone("deleted"), first, give_up("deleted", true)),
            (gone(""), first, give_up("the session is gone", true)),
            (reply(Unknown), third, retry(unknown, 20)),
            (reply(Unknown), last, give_up(unknown, false)),
            (failed(), first, retry("no luck", 5)),
            (failed(), third, retry("no luck", 20)),
            (failed(), last, give_up("no luck", false)),
            (failed(), history(9, 0, true), give_up("no luck", false)),
            (
                Response::Interrupted(Interruption::Restart),
                cut_before(1),
                cut(Interruption::Restart, "interrupted: the host was restarted", 0),
            ),
            (Response::Interrupted(Interruption::Restart), cut_before(2), give_up(held, false)),
            (
                Response::Interrupted(Interruption::Message),
                cut_before(9),
                cut(Interruption::Message, "interrupted: a message came in", 5),
            ),
        ] {
            let retry = Retry { attempts_max: 8, ..Retry::default() };
            assert_eq!(interpret(&response, &history, &retry), verdict, "{response:?} {history:?}");
        }
    }

    #[test]
    fn of_several_in_one_turn_each_has_a_reply_of_its_own() {
        let (busy, failed) = (SinkReply::busy(), SinkReply::Failed { reason: "no luck".into() });
        let replies = vec![
            ("a".to_owned(), SinkReply::Delivered),
            ("b".to_owned(), busy.clone()),
            ("c".to_owned(), failed.clone()),
        ];
        let each = Response::Replied(SinkReply::Each { replies, error: Some("it failed".into()) });
        assert_eq!(each.error().as_deref(), Some("it failed"), "the turn as a whole");
        assert_eq!(each.about("a"), Response::Replied(SinkReply::Delivered));
        assert_eq!(each.about("b"), Response::Replied(busy));
        assert_eq!(each.about("d"), Response::Failed("it failed".into()));
        let (first, retry) = (history(1, 0, false), Retry::default());
        let verdict = interpret(&each.about("c"), &first, &retry);
        assert_eq!(verdict, Verdict::Retry { error: "no luck".into(), pause: secs(5) });
        let soon = SinkReply::Busy { reason: String::new(), process: None, retry_after_ms: Some(40) };
        let verdict = interpret(&Response::Replied(soon), &history(1, 3, false), &retry);
        assert_eq!(
            verdict.next(),
            Some(Duration::from_millis(40)),
            "the sink knows better than a growing pause"
        );
    }

    #[test]
    fn scenario_141_only_a_sink_that_wakes_the_session_delivers_in_place_of_another() {
        let reason = "it is open elsewhere";
        let stand_in =
            |starts_turn| History { role: SinkRole::StandIn { reason, starts_turn }, ..history(8, 1, false) };
        let verdict = |response: &Response, starts_turn| {
            interpret(response, &stand_in(starts_turn), &Retry { attempts_max: 8, ..Retry::default() })
        };
        let taken = Response::Replied(SinkReply::Delivered);
        assert_eq!(verdict(&taken, true), Verdict::Delivered);
        let told = Verdict::StandIn { told: true, error: reason.into(), pause: secs(10) };
        assert_eq!(verdict(&taken, false), told, "a person has it, and the session has not");
        let gone = Response::Replied(SinkReply::Gone { reason: "closed".into() });
        for (response, why) in [(Response::Failed("no luck".into()), "no luck"), (gone, "closed")] {
            let error = format!("{reason}; the next sink was not told either: {why}");
            let missed = Verdict::StandIn { told: false, error, pause: secs(10) };
            assert_eq!(verdict(&response, false), missed, "the session is not given up because of it");
        }
        let process = Some(hearback_core::testing::sample::process(7));
        let reply = SinkReply::Unreachable { reason: reason.into(), process: process.clone() };
        let unreachable = Verdict::Unreachable { error: reason.into(), process, pause: secs(5) };
        let retry = Retry { attempts_max: 8, ..Retry::default() };
        assert_eq!(interpret(&Response::Replied(reply), &history(8, 0, true), &retry), unreachable);
    }

    #[test]
    fn only_what_goes_on_has_a_next_attempt() {
        let error = || "e".to_owned();
        for (verdict, next) in [
            (Verdict::Delivered, None),
            (Verdict::GiveUp { error: error(), gone: true }, None),
            (Verdict::NextSink { error: error() }, Some(Duration::ZERO)),
            (Verdict::Retry { error: error(), pause: secs(3) }, Some(secs(3))),
            (Verdict::Busy { error: error(), process: None, pause: secs(3) }, Some(secs(3))),
            (
                Verdict::Interrupted { reason: Interruption::Crash, error: error(), pause: secs(3) },
                Some(secs(3)),
            ),
        ] {
            assert_eq!(verdict.next(), next, "{verdict:?}");
            assert_eq!(verdict.error().is_none(), verdict == Verdict::Delivered);
        }
    }
}
