//! What happened to jobs and sessions, told from their facts. Each fact that tells something has a key, by which a
//! reader knows it again.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::session::{MessageFacts, MessageHow, SessionFacts, TurnCause, TurnFacts, TurnHow};
use crate::{Facts, JobId, KilledBy, LeaseResult, Observed, ReceiptHow, Session, Timestamp};

/// Whom something happened to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventSubject {
    /// A job.
    Job(JobId),
    /// A session.
    Session(Session),
}

/// What names one thing that happened, for ever: its subject and its fact.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKey {
    /// Whom it happened to.
    pub subject: EventSubject,
    /// Which of its facts.
    pub fact: String,
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, fact } = self;
        match subject {
            EventSubject::Job(id) => write!(f, "job/{id}/{fact}"),
            EventSubject::Session(session) => write!(f, "session/{session}/{fact}"),
        }
    }
}

impl EventKey {
    /// Reads what was displayed; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('/')?;
        // The name of a session may have slashes, a fact has none.
        let (name, fact) = rest.rsplit_once('/')?;
        let subject = match kind {
            "job" => EventSubject::Job(JobId::parse(name).ok()?),
            "session" => EventSubject::Session(Session::parse(name).ok()?),
            _ => return None,
        };
        Some(Self { subject, fact: fact.to_owned() })
    }
}

/// The fact after which nothing happens to a job any more.
pub const LAST_FACT: &str = "settled";

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Happened {
    /// A job is on disk: its owner will hear of it.
    Launched,
    /// Its command runs.
    Started,
    /// A kill was requested.
    KillRequested {
        /// By whom.
        by: KilledBy,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It has printed more. There is no fact behind it, so it is told once, and only to a reader that is there and
    /// asks for it.
    Output {
        /// The last line that is not blank, cut to 200 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_line: Option<String>,
    },
    /// It has ended.
    Ended,
    /// Its owner was not reached, and another attempt will be made.
    NotTold {
        /// The number of the attempt.
        attempt: u32,
        /// The sink.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sink: Option<String>,
        /// Why not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Its owner was not reached, and no further attempt will be made until a person acts.
    DeadLetter {
        /// The number of the attempt.
        attempt: u32,
        /// The sink.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sink: Option<String>,
        /// Why not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person had a dead letter tried again.
    Retried,
    /// Its owner has it, or will not get it.
    Told {
        /// How.
        how: ToldHow,
    },
    /// Nothing more will happen to the job.
    Settled,
    /// A turn of a session has begun.
    TurnBegun {
        /// Its number.
        turn: u32,
        /// What it is for.
        cause: TurnCause,
    },
    /// A turn of a session has ended.
    TurnEnded {
        /// Its number.
        turn: u32,
        /// How.
        how: TurnHow,
    },
    /// A message waits for a session.
    MessageQueued {
        /// Its number.
        message: u32,
    },
    /// A message was not delivered.
    MessageNotDelivered {
        /// Its number.
        message: u32,
        /// Why not.
        reason: String,
        /// Whether a person has to act before another attempt is made.
        dead_letter: bool,
    },
    /// Nothing more is to be done about a message.
    MessageClosed {
        /// Its number.
        message: u32,
        /// What became of it.
        how: MessageHow,
    },
}

/// How the delivery of a follow-up ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum ToldHow {
    /// A sink accepted it.
    Delivered,
    /// The agent keeps it in a queue of its own.
    Queued,
    /// The owner has read the result itself.
    Read,
    /// A caller discarded it.
    Discarded,
    /// It was not delivered within `expire_after`.
    Expired,
    /// In a way that a newer hearback knows.
    Other,
}

impl From<ReceiptHow> for ToldHow {
    fn from(how: ReceiptHow) -> Self {
        match how {
            ReceiptHow::Delivered => Self::Delivered,
            ReceiptHow::Queued => Self::Queued,
            ReceiptHow::Read => Self::Read,
            ReceiptHow::Discarded => Self::Discarded,
            ReceiptHow::Expired => Self::Expired,
            ReceiptHow::Unknown => Self::Other,
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// Which of the facts tells it.
    pub fact: String,
    /// When, as the fact says.
    pub at: Timestamp,
    /// What.
    pub what: Happened,
}

impl Observed {
    /// What has happened to the job, in the order in which it can happen.
    pub fn happenings(&self) -> Vec<Happening> {
        let facts = &self.facts;
        let mut all = Vec::new();
        let mut add = |fact: String, at: Timestamp, what: Happened| all.push(Happening { fact, at, what });
        if let Some(spec) = facts.spec.present() {
            add("launched".into(), spec.launched_at_ms, Happened::Launched);
        }
        if let Some(target) = facts.target.present() {
            add("started".into(), target.at_ms, Happened::Started);
        }
        for (n, kill) in present(&facts.kills) {
            let what = Happened::KillRequested { by: kill.by.clone(), reason: kill.reason.clone() };
            add(format!("kill.{n}"), kill.at_ms, what);
        }
        if let Some(end) = facts.end.present() {
            add("ended".into(), end.at_ms, Happened::Ended);
        }
        for (n, lease) in present(&facts.leases) {
            if lease.attempts_used == 0 {
                add(format!("lease.{n}"), lease.at.wall_ms, Happened::Retried);
            }
            if let Some(result) = facts.result(n) {
                add(format!("result.{n}"), result.at.wall_ms, not_told(facts, n, lease.sink, result));
            }
        }
        if let Some(receipt) = facts.receipt.present() {
            add("receipt".into(), receipt.at.wall_ms, Happened::Told { how: receipt.how.into() });
        }
        if let Some(settled) = facts.settled.present() {
            add(LAST_FACT.into(), settled.at.wall_ms, Happened::Settled);
        }
        all
    }
}

fn not_told(facts: &Facts, attempt: u32, sink: u32, result: &LeaseResult) -> Happened {
    let sinks = facts.spec.present().map(|spec| &*spec.sinks).unwrap_or_default();
    let sink = usize::try_from(sink).ok().and_then(|place| sinks.get(place).cloned());
    let reason = result.error.clone();
    match result.gave_up {
        true => Happened::DeadLetter { attempt, sink, reason },
        false => Happened::NotTold { attempt, sink, reason },
    }
}

fn present<T>(numbered: &[(u32, crate::Read<T>)]) -> impl Iterator<Item = (u32, &T)> {
    numbered.iter().filter_map(|(n, fact)| Some((*n, fact.present()?)))
}

impl SessionFacts {
    /// What has happened in the session, as far as it is kept: its newest turns and its open messages.
    pub fn happenings(&self) -> Vec<Happening> {
        let mut all = Vec::new();
        for (n, turn) in &self.turns {
            all.extend(of_turn(*n, turn));
        }
        for (n, message) in &self.messages {
            all.extend(of_message(*n, message));
        }
        all
    }
}

fn of_turn(turn: u32, facts: &TurnFacts) -> Vec<Happening> {
    let begun = facts.begin.present().map(|begin| Happening {
        fact: format!("turn.{turn}.begun"),
        at: begin.at.wall_ms,
        what: Happened::TurnBegun { turn, cause: begin.cause.clone() },
    });
    let ended = facts.end.present().map(|end| Happening {
        fact: format!("turn.{turn}.ended"),
        at: end.at.wall_ms,
        what: Happened::TurnEnded { turn, how: end.how.clone() },
    });
    begun.into_iter().chain(ended).collect()
}

fn of_message(message: u32, facts: &MessageFacts) -> Vec<Happening> {
    let queued = facts.message.present().map(|queued| Happening {
        fact: format!("message.{message}.queued"),
        at: queued.at.wall_ms,
        what: Happened::MessageQueued { message },
    });
    let failed =
        present(&facts.results).filter(|(_, result)| !result.released).map(|(n, result)| Happening {
            fact: format!("message.{message}.result.{n}"),
            at: result.at.wall_ms,
            what: Happened::MessageNotDelivered {
                message,
                reason: result.error.clone(),
                dead_letter: result.gave_up,
            },
        });
    let closed = facts.receipt.present().map(|receipt| Happening {
        fact: format!("message.{message}.closed"),
        at: receipt.at.wall_ms,
        what: Happened::MessageClosed { message, how: receipt.how.clone() },
    });
    queued.into_iter().chain(failed).chain(closed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use crate::{LockView, Output, Place, Read};

    #[test]
    fn a_key_is_read_as_it_was_written() {
        for text in
            ["job/1m7paqntfa9bqggs/ended", "session/a/b c/turn.3.begun", "session/s/message.1.result.2"]
        {
            assert_eq!(EventKey::parse(text).map(|key| key.to_string()).as_deref(), Some(text));
        }
        for text in
            ["", "job/x/ended", "job/1m7paqntfa9bqggs", "other/1m7paqntfa9bqggs/ended", "session//ended"]
        {
            assert_eq!(EventKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_fact_that_tells_something_is_one_event() {
        let facts = Facts {
            spec: Read::Present(sample::spec("s")),
            begin: Read::Present(sample::begin()),
            end: Read::Present(sample::end(0)),
            leases: vec![(1, Read::Present(sample::lease())), (2, Read::Present(sample::lease()))],
            results: vec![
                (1, Read::Present(sample::lease_result(false))),
                (2, Read::Present(sample::lease_result(true))),
            ],
            ..Facts::default()
        };
        let (locks, place, output) = (LockView::FREE, Place::Open, Output::default());
        let seen = Observed { id: sample::id(1), facts, locks, place, output };
        let told: Vec<_> = seen.happenings().into_iter().map(|one| one.fact).collect();
        assert_eq!(told, ["launched", "ended", "result.1", "result.2"]);
        let last = seen.happenings().pop().map(|one| one.what);
        assert!(matches!(last, Some(Happened::DeadLetter { attempt: 2, .. })), "{last:?}");
    }
}
