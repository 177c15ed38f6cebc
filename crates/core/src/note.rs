//! The note that an agent gets after an interrupted turn, and the decision whether it gets one.
//!
//! hearback does not see the conversation. The host says what its history ends with; this file decides, without I/O,
//! whether that needs a note.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::session::{Interruption, SessionState, TurnCause};
use crate::{DOCUMENT_FORMAT, Stamp};

/// What the history of a conversation ends with, as the host reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum HistoryEnd {
    /// The host does not report it.
    #[default]
    Unknown,
    /// Tool results that the agent has not processed.
    ToolResults,
    /// A message of the agent or its user.
    Text,
    /// The history is empty.
    Empty,
}

/// How long the conversation has been silent, if known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silence(pub Option<Duration>);

impl Silence {
    /// Whether that is recent enough to continue. Unknown counts as recent, and a window of zero has no limit.
    fn is_fresh(self, window: Duration) -> bool {
        window.is_zero() || self.0.is_none_or(|age| age <= window)
    }
}

/// A note before the next message of a session, about an interrupted turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// The version of this document.
    pub format: u32,
    /// The number of the interrupted turn, if hearback recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Why it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Interruption>,
    /// What the turn was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<TurnCause>,
    /// Whether the turn itself requested the restart that interrupted it.
    pub requested_restart: bool,
    /// All of this as text for a model.
    pub text: String,
}

impl Note {
    /// The note of a turn that repeats what an earlier one was cut short over, for a session that starts afresh or has
    /// had a good turn since.
    pub fn repeat(reason: Interruption) -> Self {
        let text = format!(
            "[hearback: this was handed to you before, and that turn was interrupted before it ended ({reason}). \
             Its last step may already have taken effect, even a restart or anything else that must not be done \
             twice. Verify what was done before you repeat it.]"
        );
        let (format, reason) = (DOCUMENT_FORMAT, Some(reason));
        Self { format, turn: None, reason, cause: None, requested_restart: false, text }
    }

    /// Puts the note before a message, which is not changed.
    pub fn before(&self, message: &str) -> String {
        if message.is_empty() {
            return self.text.clone();
        }
        format!("{}\n\n{message}", self.text)
    }
}

/// Decides whether the next turn of a session begins with a note, and builds it.
///
/// `silence` is how long the conversation has been silent, as the host reports it; if hearback recorded the
/// interruption, that record counts instead.
pub fn decide(
    state: &SessionState<'_>,
    history: HistoryEnd,
    silence: Silence,
    now: &Stamp,
    window: Duration,
) -> Option<Note> {
    // A session that was interrupted again and again starts afresh: continuing has failed.
    if state.suspended().is_some() {
        return None;
    }
    match (history, &state.interrupted) {
        (HistoryEnd::Text | HistoryEnd::Empty, _) | (HistoryEnd::Unknown, None) => return None,
        _ => {}
    }
    let recorded = state.interrupted.as_ref().and_then(|turn| turn.at);
    let silence = recorded.map_or(silence, |at| Silence(Some(Duration::from_millis(at.age_ms(now)))));
    if !silence.is_fresh(window) {
        return None;
    }
    let turn = state.interrupted.as_ref();
    let requested_restart = turn.is_some_and(|turn| turn.asked);
    let why = turn.map_or_else(|| "the reason is unknown".to_owned(), |turn| turn.reason.to_string());
    let mut text = format!("[hearback: your last turn was interrupted before it ended ({why}).");
    text.push_str(if requested_restart {
        " It requested the restart, which has happened: do not request it again."
    } else {
        " Its last step may already have taken effect, even a restart or anything else that must not be done twice."
    });
    text.push_str(" Verify what was done before you repeat it, then continue from there.]");
    Some(Note {
        format: DOCUMENT_FORMAT,
        turn: turn.map(|turn| turn.turn),
        reason: turn.map(|turn| turn.reason),
        cause: turn.and_then(|turn| turn.begin).map(|begin| begin.cause.clone()),
        requested_restart,
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Interrupted;
    use crate::testing::sample;

    const HOUR: Duration = Duration::from_secs(3600);
    const QUIET: SessionState<'static> = SessionState { in_turn: None, interrupted: None, interruptions: 0 };

    fn ago(duration: Duration) -> Silence {
        Silence(Some(duration))
    }

    fn note(history: HistoryEnd, silence: Silence, window: Duration) -> Option<Note> {
        decide(&QUIET, history, silence, &sample::stamp(), window)
    }

    fn cut(at: &Stamp, interruptions: usize, asked: bool) -> SessionState<'_> {
        let reason = Interruption::Restart;
        let interrupted = Some(Interrupted { turn: 7, reason, at: Some(at), begin: None, asked });
        SessionState { interrupted, interruptions, ..QUIET }
    }

    #[test]
    fn scenario_98_unprocessed_results_get_one_note_before_a_message_that_stays_as_it_is() {
        let note = note(HistoryEnd::ToolResults, ago(Duration::from_secs(60)), HOUR).unwrap();
        let text = note.before("and  then?\n");
        assert!(text.ends_with("\n\nand  then?\n") && text.starts_with("[hearback: "), "{text}");
        assert_eq!(text.matches("[hearback: ").count(), 1);
        assert!(text.contains("may already have taken effect") && text.contains("Verify"), "{text}");
    }

    #[test]
    fn scenario_99_text_or_nothing_gets_no_note() {
        for history in [HistoryEnd::Text, HistoryEnd::Empty, HistoryEnd::Unknown] {
            assert_eq!(note(history, ago(Duration::ZERO), HOUR), None, "{history:?}");
        }
        let at = sample::stamp();
        let told = |history| decide(&cut(&at, 1, false), history, Silence::default(), &at, HOUR);
        assert_eq!(told(HistoryEnd::Text), None, "the host knows better than our records");
        assert!(told(HistoryEnd::Unknown).is_some(), "and where it says nothing, they count");
    }

    #[test]
    fn scenario_100_what_is_too_old_gets_no_note_and_a_window_of_zero_is_endless() {
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(note(HistoryEnd::ToolResults, ago(day), HOUR), None);
        assert!(note(HistoryEnd::ToolResults, ago(day), Duration::ZERO).is_some());
        assert!(note(HistoryEnd::ToolResults, Silence(None), HOUR).is_some(), "unknown counts as fresh");
        let then = sample::stamp();
        let mut later = then.clone();
        later.since_boot_ms += 2 * 3_600_000;
        let recorded = cut(&then, 1, false);
        assert_eq!(decide(&recorded, HistoryEnd::Unknown, Silence::default(), &later, HOUR), None);
        assert!(decide(&recorded, HistoryEnd::Unknown, Silence::default(), &later, 3 * HOUR).is_some());
    }

    #[test]
    fn scenario_101_suspended_beats_resumable() {
        let at = sample::stamp();
        let told = |n| decide(&cut(&at, n, false), HistoryEnd::ToolResults, Silence::default(), &at, HOUR);
        assert!(told(2).is_some());
        assert_eq!(told(3), None, "it starts afresh");
    }

    #[test]
    fn scenario_106_whoever_asked_for_the_restart_is_told_that_it_has_happened() {
        let at = sample::stamp();
        let told =
            |asked| decide(&cut(&at, 1, asked), HistoryEnd::Unknown, Silence::default(), &at, HOUR).unwrap();
        assert!(told(true).requested_restart && told(true).text.contains("do not request it again"));
        assert!(told(false).text.contains("a restart or anything else that must not be done twice"));
    }
}
