//! Sessions: their turns, of which there is one at a time, and the messages that wait for one.
//!
//! Facts again, each written once: what a session *is* follows from its newest turns and from who holds its lock.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::variant::reads_newer_variants;
use crate::{Extra, FORMAT, JobId, LockState, OsText, ProcessIdentity, Read, Session, Stamp};

/// So many interruptions without a good turn in between, and a session is not continued any more. So many in a row of
/// the turn of one message or follow-up, and it is held for a person.
pub const INTERRUPTIONS_MAX: usize = 3;

/// Why a message or follow-up is held for a person, if it is. `times` is how often in a row its turn was cut short, the
/// last time for this `reason`.
pub fn held(times: usize, reason: Interruption) -> Option<String> {
    (times >= INTERRUPTIONS_MAX)
        .then(|| format!("held for a person: its turn was cut short {times} times in a row (last: {reason})"))
}

/// A turn has begun. Written under the session's lock, before its agent runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnBegin {
    /// The format of this fact.
    pub format: u32,
    /// Whose turn it is; its folder is named by a hash.
    pub session: Session,
    /// When.
    pub at: Stamp,
    /// Who holds the session's lock for it.
    pub by: ProcessIdentity,
    /// By which every process of the agent is known.
    pub mark: JobId,
    /// What it is for.
    pub cause: TurnCause,
    /// The sink that runs the agent, if it was one: what comes next goes there as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// Where the host shows what the agent says: two threads of one chat are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The directory of the agent: some look for their sessions there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a turn is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TurnCause {
    /// `hearback turn` runs an agent.
    Command,
    /// A job has ended, or several at about the same time.
    FollowUp {
        /// The delivery.
        delivery: String,
        /// The deliveries that are told in the same turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
    },
    /// A message arrived.
    Message {
        /// Its number.
        n: u32,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// An earlier turn was interrupted.
    Resume {
        /// Its number.
        turn: u32,
    },
    /// A cause that only a newer build knows.
    #[serde(other)]
    Unknown,
}

/// Why a turn was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Interruption {
    /// The host was restarted.
    Restart,
    /// The host was stopped.
    Shutdown,
    /// A message arrived, and the setting `busy` is `interrupt`.
    Message,
    /// The process that ran it died.
    Crash,
    /// A reason that only a newer build knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(Interruption);

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restart => "the host was restarted",
            Self::Shutdown => "the host was stopped",
            Self::Message => "a message came in",
            Self::Crash => "the process that ran it died",
            Self::Unknown => "for a reason that a newer hearback knows",
        })
    }
}

/// If this turn is interrupted, it must be continued. Written before the host waits for the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumable {
    /// The format of this fact.
    pub format: u32,
    /// When it was marked.
    pub at: Stamp,
    /// Why.
    pub reason: Interruption,
    /// Whether this very turn asked for it: then that is nothing to be done again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The turn is being cut short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// Why.
    pub reason: Interruption,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The turn is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The format of this fact.
    pub format: u32,
    /// When that was seen.
    pub at: Stamp,
    /// How it ended.
    pub how: TurnHow,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The ways in which a turn ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TurnHow {
    /// The agent did what it was asked.
    Done,
    /// It did not.
    Failed {
        /// Why.
        error: String,
    },
    /// It was cut short.
    Interrupted {
        /// Why.
        reason: Interruption,
    },
    /// A way that only a newer build knows. The turn has ended all the same.
    #[serde(other)]
    Unknown,
}

/// A fact of one turn.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type that it holds")]
pub enum TurnFact {
    Begin(Box<TurnBegin>),
    Resumable(Resumable),
    Interrupt(Interrupt),
    End(TurnEnd),
}

impl TurnFact {
    /// This turn is to be continued unless it ends well.
    pub fn resumable(at: Stamp, reason: Interruption, asked: bool) -> Self {
        Self::Resumable(Resumable { format: FORMAT, at, reason, asked, extra: Extra::new() })
    }

    /// This turn is cut short.
    pub fn interrupt(at: Stamp, reason: Interruption) -> Self {
        Self::Interrupt(Interrupt { format: FORMAT, at, reason, extra: Extra::new() })
    }

    /// This turn is over.
    pub fn end(at: Stamp, how: TurnHow) -> Self {
        Self::End(TurnEnd { format: FORMAT, at, how, extra: Extra::new() })
    }
}

/// What the disk says about one turn.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the fact of the same name")]
pub struct TurnFacts {
    pub begin: Read<TurnBegin>,
    pub resumable: Read<Resumable>,
    pub interrupt: Read<Interrupt>,
    pub end: Read<TurnEnd>,
}

impl TurnFacts {
    /// Why it was, or is about to be, interrupted, if that was recorded.
    pub fn reason(&self) -> Interruption {
        let asked = self.interrupt.present().map(|interrupt| interrupt.reason);
        asked.or_else(|| self.resumable.present().map(|mark| mark.reason)).unwrap_or(Interruption::Crash)
    }

    /// When it was interrupted: the recorded time, else when it began.
    fn interrupted_at(&self) -> Option<&Stamp> {
        let asked = self.interrupt.present().map(|interrupt| &interrupt.at);
        let marked = self.resumable.present().map(|mark| &mark.at);
        asked.or(marked).or_else(|| self.begin.present().map(|begin| &begin.at))
    }
}

/// A message for a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The format of this fact.
    pub format: u32,
    /// Whom it is for.
    pub session: Session,
    /// When it was sent.
    pub at: Stamp,
    /// What it says.
    pub text: String,
    /// The sink that it goes to, fixed when it was sent.
    pub sink: String,
    /// Where the host shows what the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The directory of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
    /// How many follow-ups and messages led to it; zero for one that a person or another program sent.
    #[serde(default)]
    pub depth: u32,
    /// How many messages turns have sent to the session lately, this one included. Each message carries the count on,
    /// because messages are forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainCount>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How many messages turns have sent to a session since some moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainCount {
    /// Since when.
    pub since: Stamp,
    /// How many.
    pub sent: u32,
}

/// What an attempt at a message came to, when it did not arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageResult {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// Why not.
    pub error: String,
    /// Whether it counts towards giving up.
    pub spent: bool,
    /// How long after `at` the next attempt is due.
    pub next_ms: u64,
    /// There will be no further attempt: a person has to act.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// Why its turn was cut short, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interruption>,
    /// This was no attempt: a person released the message, and what was before counts no more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl MessageResult {
    fn at(at: Stamp) -> Self {
        Self {
            format: FORMAT,
            at,
            error: String::new(),
            spent: false,
            next_ms: 0,
            gave_up: false,
            interrupted: None,
            released: false,
            extra: Extra::new(),
        }
    }
}

/// Nothing more is to be done about a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageReceipt {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// What became of it.
    pub how: MessageHow,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MessageHow {
    /// The agent accepted it.
    Delivered,
    /// It was not delivered within `expire_after`.
    Expired,
    /// A newer message interrupted its turn.
    Overtaken,
    /// A caller discarded it.
    Discarded,
    /// An end that only a newer build knows. Nothing more is to be done about it all the same.
    #[serde(other)]
    Unknown,
}

/// What is said about one message.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    missing_docs,
    reason = "each variant is the type that it holds; a result has the number of its attempt"
)]
pub enum MessageFact {
    Result(u32, MessageResult),
    Receipt(MessageReceipt),
}

impl MessageFact {
    /// An attempt did not get it there.
    pub fn result(attempt: u32, at: Stamp, error: String, spent: bool, next: Option<u64>) -> Self {
        let (gave_up, next_ms) = (next.is_none(), next.unwrap_or(0));
        Self::Result(attempt, MessageResult { error, spent, next_ms, gave_up, ..MessageResult::at(at) })
    }

    /// The turn of an attempt was cut short, after `before` times in a row. The message comes again at once, and no
    /// attempt is spent; or it is held.
    pub fn interrupted(attempt: u32, at: Stamp, reason: Interruption, before: usize) -> Self {
        let held = held(before + 1, reason);
        let gave_up = held.is_some();
        let error = held.unwrap_or_else(|| format!("interrupted: {reason}"));
        let interrupted = Some(reason);
        Self::Result(attempt, MessageResult { error, gave_up, interrupted, ..MessageResult::at(at) })
    }

    /// A person released a dead letter. That takes the number of an attempt.
    pub fn released(attempt: u32, at: Stamp) -> Self {
        let error = "released".to_owned();
        Self::Result(attempt, MessageResult { error, released: true, ..MessageResult::at(at) })
    }

    /// Nothing more is to be done about it.
    pub fn receipt(at: Stamp, how: MessageHow) -> Self {
        Self::Receipt(MessageReceipt { format: FORMAT, at, how, extra: Extra::new() })
    }
}

/// What the disk says about one message.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the fact of the same name, results by attempt")]
pub struct MessageFacts {
    pub message: Read<Message>,
    pub results: Vec<(u32, Read<MessageResult>)>,
    pub receipt: Read<MessageReceipt>,
}

impl MessageFacts {
    /// The newest result that can be read.
    pub fn last_result(&self) -> Option<&MessageResult> {
        self.results.iter().rev().find_map(|(_, result)| result.present())
    }

    /// The results that count: those since a person released it last.
    pub fn counted(&self) -> &[(u32, Read<MessageResult>)] {
        let is_release = |result: &Read<MessageResult>| result.present().is_some_and(|it| it.released);
        let since = self.results.iter().rposition(|(_, result)| is_release(result)).map_or(0, |at| at + 1);
        self.results.get(since..).unwrap_or_default()
    }

    /// How many attempts were made.
    pub fn attempts(&self) -> usize {
        self.results.iter().filter(|(_, result)| !result.present().is_some_and(|it| it.released)).count()
    }

    /// How often in a row its turn was cut short. A busy session neither counts nor ends the row.
    pub fn cut_short_in_a_row(&self) -> usize {
        let results = self.counted().iter().rev().map_while(|(_, result)| result.present());
        let row = results.take_while(|result| result.interrupted.is_some() || !result.spent);
        row.filter(|result| result.interrupted.is_some()).count()
    }

    /// Why its turn was cut short, the last time that it was.
    pub fn last_cut_short(&self) -> Option<Interruption> {
        let results = self.results.iter().rev().filter_map(|(_, result)| result.present());
        results.filter(|result| !result.released).find_map(|result| result.interrupted)
    }

    /// Whether its delivery was given up, and a person has to act. Later messages do not wait for it.
    pub fn is_dead_letter(&self) -> bool {
        self.receipt.is_absent() && self.last_result().is_some_and(|last| last.gave_up)
    }
}

/// What the disk says about a session, in the order of numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionFacts {
    /// Its newest turns.
    pub turns: Vec<(u32, TurnFacts)>,
    /// Its messages: those that wait, and the newest.
    pub messages: Vec<(u32, MessageFacts)>,
}

impl SessionFacts {
    /// The number of the newest turn; zero before the first.
    pub fn last_turn(&self) -> u32 {
        self.turns.last().map_or(0, |(n, _)| *n)
    }

    /// The newest turn that can be read.
    pub fn last_begin(&self) -> Option<&TurnBegin> {
        self.turns.iter().rev().find_map(|(_, turn)| turn.begin.present())
    }

    /// The message of this number.
    pub fn message(&self, n: u32) -> Option<&MessageFacts> {
        self.messages.iter().find(|(number, _)| *number == n).map(|(_, message)| message)
    }

    /// The messages that still wait for delivery, oldest first, without dead letters.
    pub fn waiting(&self) -> impl Iterator<Item = (u32, &MessageFacts)> {
        let waits = |message: &MessageFacts| message.receipt.is_absent() && !message.is_dead_letter();
        self.messages.iter().filter(move |(_, message)| waits(message)).map(|(n, message)| (*n, message))
    }
}

/// What a session is. Derived, never stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionState<'a> {
    /// The turn that is under way.
    pub in_turn: Option<u32>,
    /// The newest turn that was cut short since the last good one.
    pub interrupted: Option<Interrupted<'a>>,
    /// How many were, since the last good one.
    pub interruptions: usize,
}

/// A turn that was cut short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interrupted<'a> {
    /// Its number.
    pub turn: u32,
    /// Why.
    pub reason: Interruption,
    /// When, as far as that is known.
    pub at: Option<&'a Stamp>,
    /// What it was for; nothing when that cannot be read.
    pub begin: Option<&'a TurnBegin>,
    /// Whether it had asked for the restart that cut it short.
    pub asked: bool,
}

impl SessionState<'_> {
    /// Why it is not continued any more, if it is not: it starts afresh with whatever comes next.
    pub fn suspended(&self) -> Option<String> {
        (self.interruptions >= INTERRUPTIONS_MAX).then(|| {
            format!("interrupted {} times in a row, without a good turn in between", self.interruptions)
        })
    }
}

/// Interprets the facts of a session. `lock` tells whether it is in a turn.
pub fn fold_session(facts: &SessionFacts, lock: LockState) -> SessionState<'_> {
    let newest = facts.turns.last();
    let in_turn = newest.filter(|(_, turn)| turn.end.is_absent() && lock == LockState::Held).map(|(n, _)| *n);
    let mut state = SessionState { in_turn, interrupted: None, interruptions: 0 };
    for (n, turn) in facts.turns.iter().rev().filter(|(n, _)| Some(*n) != in_turn) {
        let reason = match &turn.end {
            Read::Present(end) => match &end.how {
                TurnHow::Done => break,
                // What a newer build calls its end is neither a good turn nor one that is to go on.
                TurnHow::Failed { .. } | TurnHow::Unknown => continue,
                TurnHow::Interrupted { reason } => *reason,
            },
            Read::Absent => turn.reason(),
            // It ended in an unknown way: neither a reason to continue it nor a success.
            Read::Newer(_) | Read::Unreadable(_) => continue,
        };
        // A message that interrupts a turn is sent on purpose, so it does not count as a loop.
        state.interruptions += usize::from(reason != Interruption::Message);
        if state.interrupted.is_none() {
            state.interrupted = Some(Interrupted {
                turn: *n,
                reason,
                at: turn.interrupted_at(),
                begin: turn.begin.present(),
                asked: turn.resumable.present().is_some_and(|mark| mark.asked),
            });
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;

    const FREE: LockState = LockState::Free;

    fn session(ends: &[Option<TurnHow>]) -> SessionFacts {
        let turns = ends.iter().zip(1..).map(|(how, n)| {
            let end = how.clone().map_or(Read::Absent, |how| match TurnFact::end(sample::stamp(), how) {
                TurnFact::End(end) => Read::Present(end),
                _ => Read::Absent,
            });
            let begin = Read::Present(sample::turn_begin("s", TurnCause::Command));
            (n, TurnFacts { begin, end, ..TurnFacts::default() })
        });
        SessionFacts { turns: turns.collect(), messages: Vec::new() }
    }

    fn cut(reason: Interruption) -> Option<TurnHow> {
        Some(TurnHow::Interrupted { reason })
    }

    fn failed() -> Option<TurnHow> {
        Some(TurnHow::Failed { error: "no".into() })
    }

    #[test]
    fn a_turn_without_an_end_is_under_way_or_was_cut_short() {
        let facts = session(&[Some(TurnHow::Done), None]);
        let held = fold_session(&facts, LockState::Held);
        assert_eq!((held.in_turn, held.interrupted), (Some(2), None));
        let free = fold_session(&facts, FREE);
        assert_eq!(free.in_turn, None);
        let interrupted = free.interrupted.unwrap();
        assert_eq!((interrupted.turn, interrupted.reason), (2, Interruption::Crash));
    }

    #[test]
    fn scenario_104_only_a_good_turn_clears_the_mark() {
        let marked = |ends: &[_]| fold_session(&session(ends), FREE).interrupted.map(|turn| turn.turn);
        assert_eq!(marked(&[cut(Interruption::Restart)]), Some(1));
        assert_eq!(marked(&[cut(Interruption::Restart), failed()]), Some(1));
        assert_eq!(marked(&[cut(Interruption::Restart), cut(Interruption::Restart)]), Some(2));
        assert_eq!(marked(&[cut(Interruption::Restart), Some(TurnHow::Done)]), None);
        assert_eq!(marked(&[failed()]), None, "what failed by itself was not cut short");
    }

    #[test]
    fn scenario_102_three_interruptions_in_a_row_suspend_and_a_good_turn_resets() {
        let suspended = |ends: &[_]| fold_session(&session(ends), FREE).suspended();
        let restart = || cut(Interruption::Restart);
        assert_eq!(suspended(&[restart(), restart()]), None);
        let reason = suspended(&[restart(), failed(), restart(), cut(Interruption::Crash)]).unwrap();
        assert!(reason.contains("3 times in a row"), "{reason}");
        assert_eq!(suspended(&[restart(), restart(), Some(TurnHow::Done), restart()]), None);
        assert_eq!(suspended(&[cut(Interruption::Message), cut(Interruption::Message), restart()]), None);
    }
}
