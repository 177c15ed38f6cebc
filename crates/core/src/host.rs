//! The host (the monitor of a store) and the requests to it: numbered facts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::variant::reads_newer_variants;
use crate::{Extra, FORMAT, LockState, ProcessIdentity, Read, Session, Stamp};

/// So long a request that comes again with an old number is known for what it is.
pub const REDELIVERY_WINDOW: Duration = Duration::from_secs(5 * 60);

/// A host has begun to look after the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostBegin {
    /// The format of this fact.
    pub format: u32,
    /// Who.
    pub process: ProcessIdentity,
    /// When.
    pub at: Stamp,
    /// Whether a service manager starts it again when it exits with
    /// [`RESTART_EXIT_CODE`](crate::service::RESTART_EXIT_CODE).
    #[serde(default)]
    pub service: bool,
    /// The hearback that it is.
    pub version: String,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the monitor can be requested to do. In each case it accepts no new work and lets turns end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StopKind {
    /// Restart: turns may run until the limit, and continue afterwards.
    Restart,
    /// Stop: turns may run until the limit.
    Stop,
    /// Stop when every turn has ended, no matter how long that takes.
    Drain,
    /// A kind that only a newer build knows; taken for [`StopKind::Stop`], which promises least.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(StopKind);

impl fmt::Display for StopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Drain => "drain",
            Self::Unknown => "stop of a newer kind",
        })
    }
}

/// A host is asked to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopRequest {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// To what end.
    pub kind: StopKind,
    /// By which a request that is delivered again is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The turn that asks, which is not waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<RequestedBy>,
    /// How long turns have, where it is not what the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl StopRequest {
    /// A request without a session.
    pub fn new(kind: StopKind, at: Stamp) -> Self {
        Self { format: FORMAT, at, kind, sequence: None, by: None, within_ms: None, extra: Extra::new() }
    }
}

/// A turn that asks for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedBy {
    /// Whose.
    pub session: Session,
    /// Which.
    pub turn: u32,
}

/// The host has accepted the request, and has marked the sessions in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopTaken {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// How many turns it waits for.
    pub awaited: u32,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Nothing more comes of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopDone {
    /// The format of this fact.
    pub format: u32,
    /// When.
    pub at: Stamp,
    /// How many turns were cut short; nothing when the host died over it.
    pub interrupted: Option<u32>,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A fact about the host.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is the type that it holds")]
pub enum HostFact {
    Begin(HostBegin),
    Request(StopRequest),
    Taken(StopTaken),
    Done(StopDone),
}

/// What the disk says about one request.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the fact of the same name")]
pub struct RequestFacts {
    pub request: Read<StopRequest>,
    pub taken: Read<StopTaken>,
    pub done: Read<StopDone>,
}

/// What the disk says about the host, in the order of numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// Hosts that have begun; the newest is the one that runs, if any does.
    pub begins: Vec<(u32, Read<HostBegin>)>,
    /// What they were asked.
    pub requests: Vec<(u32, RequestFacts)>,
}

/// What to do with a request to stop or restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Publish the request under this number.
    Publish(u32),
    /// No monitor is running.
    NoHost,
    /// A request is already in progress.
    UnderWay(StopKind),
    /// It is an old one that came again, and has been done.
    Redelivered,
}

impl HostFacts {
    /// The newest host that can be read.
    pub fn last_begin(&self) -> Option<&HostBegin> {
        self.begins.iter().rev().find_map(|(_, begin)| begin.present())
    }

    /// The request that is not done yet.
    pub fn open_request(&self) -> Option<(u32, &RequestFacts)> {
        let open = |(_, facts): &&(u32, RequestFacts)| facts.done.is_absent();
        self.requests.iter().rev().find(open).map(|(n, facts)| (*n, facts))
    }

    /// What is under way, if a host runs.
    pub fn stopping(&self, lock: LockState) -> Option<StopKind> {
        let (_, facts) = self.open_request().filter(|_| lock == LockState::Held)?;
        // One that cannot be read is a request all the same; the one that promises least is assumed.
        Some(facts.request.present().map_or(StopKind::Stop, |request| request.kind))
    }

    /// Decides about a request. `sequence` is the number that its sender gave it, if any.
    pub fn judge(&self, lock: LockState, sequence: Option<u64>, now: &Stamp) -> Verdict {
        // A request that was not accepted before its host was gone has not been done.
        let heard = |facts: &&RequestFacts| facts.taken.present().is_some() || facts.done.is_absent();
        let requests = self.requests.iter().map(|(_, facts)| facts).filter(heard);
        let mut requests = requests.filter_map(|facts| facts.request.present());
        let is_old = |request: &StopRequest| {
            let age = Duration::from_millis(request.at.age_ms(now));
            request.sequence >= sequence && age < REDELIVERY_WINDOW
        };
        if sequence.is_some() && requests.any(is_old) {
            return Verdict::Redelivered;
        }
        match self.stopping(lock) {
            Some(kind) => Verdict::UnderWay(kind),
            None if lock != LockState::Held => Verdict::NoHost,
            None => Verdict::Publish(self.requests.last().map_or(0, |(n, _)| *n) + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;

    fn asked(sequence: Option<u64>, done: bool) -> HostFacts {
        let request = StopRequest { sequence, ..StopRequest::new(StopKind::Restart, sample::stamp()) };
        let end = StopDone { format: FORMAT, at: sample::stamp(), interrupted: Some(0), extra: Extra::new() };
        let (at, extra) = (sample::stamp(), Extra::new());
        let facts = RequestFacts {
            request: Read::Present(request),
            taken: Read::Present(StopTaken { format: FORMAT, at, awaited: 0, extra }),
            done: if done { Read::Present(end) } else { Read::Absent },
        };
        HostFacts { requests: vec![(4, facts)], ..HostFacts::default() }
    }

    fn after(seconds: u64) -> Stamp {
        let mut stamp = sample::stamp();
        stamp.since_boot_ms += seconds * 1000;
        stamp
    }

    #[test]
    fn a_second_wish_is_refused_while_the_first_is_under_way() {
        let now = sample::stamp();
        let facts = asked(None, false);
        assert_eq!(facts.judge(LockState::Held, None, &now), Verdict::UnderWay(StopKind::Restart));
        assert_eq!(
            facts.judge(LockState::Free, None, &now),
            Verdict::NoHost,
            "the host of the request is dead"
        );
        assert_eq!(asked(None, true).judge(LockState::Held, None, &now), Verdict::Publish(5));
        assert_eq!(HostFacts::default().judge(LockState::Held, None, &now), Verdict::Publish(1));
    }

    #[test]
    fn scenario_105_an_old_number_within_five_minutes_is_ignored() {
        let facts = asked(Some(10), true);
        let judge = |sequence, seconds| facts.judge(LockState::Held, Some(sequence), &after(seconds));
        assert_eq!(judge(10, 10), Verdict::Redelivered);
        assert_eq!(judge(9, 10), Verdict::Redelivered);
        assert_eq!(judge(11, 10), Verdict::Publish(5), "a newer one is not");
        assert_eq!(judge(10, 301), Verdict::Publish(5), "nor is one that meets an old marker");
        assert_eq!(
            facts.judge(LockState::Held, None, &after(10)),
            Verdict::Publish(5),
            "without a number none is"
        );
    }
}
