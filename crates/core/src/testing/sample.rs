//! One good example of every fact.

use crate::fold::Here;
use crate::session::{Message, TurnBegin, TurnCause};
use crate::{
    Answer, AnswerRecord, AnswerSource, AnswerText, Begin, BegunBy, BootId, CommandLine, Durability, End,
    ExecutorName, Extra, FORMAT, Facts, JobId, JobView, Kill, KilledBy, Lease, LeaseResult, Limits, LockView,
    NotifyPolicy, Observed, Outcome, Output, Place, ProcessIdentity, Read, Receipt, ReceiptHow, Session,
    Spec, Stamp, Swept, Target, TargetHandle, Timestamp,
};

/// The `n`-th of a row of ids.
pub fn id(n: u64) -> JobId {
    JobId::mint(1_763_000_000_000 + n, n)
}

/// A job of session `session`, launched in boot `boot-1`.
pub fn spec(session: &str) -> Spec {
    Spec {
        format: FORMAT,
        id: id(1),
        command: CommandLine::Argv(vec!["make".into(), "all targets".into()]),
        command_is_masked: false,
        keeps_credentials: false,
        cwd: "/project".into(),
        executor: ExecutorName::default(),
        session: Some(Session::parse(session).unwrap()),
        agent: None,
        mcp: false,
        label: None,
        key: None,
        notify: NotifyPolicy::Auto,
        sinks: Vec::new(),
        withhold: Vec::new(),
        depth: 0,
        bound: false,
        takes_input: false,
        answer: false,
        prompt: None,
        limits: Limits::default(),
        durability: Durability::Power,
        launched_at_ms: at(),
        boot: Some(BootId::new("boot-1")),
        machine: None,
        version: "0.1.0".into(),
        extra: Extra::new(),
    }
}

/// A spec without a session, so that no follow-up is wanted.
pub fn unowned(id: &JobId) -> Spec {
    Spec { id: id.clone(), session: None, ..spec("s") }
}

/// Noon.
pub fn at() -> Timestamp {
    Timestamp::from_millis(1_763_294_400_000)
}

/// Noon, 1,000 s after boot `boot-1`.
pub fn stamp() -> Stamp {
    Stamp { wall_ms: at(), boot: Some(BootId::new("boot-1")), since_boot_ms: 1_000_000 }
}

/// A process of boot `boot-1`.
pub fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity { pid, started: u64::from(pid) * 10, boot: Some(BootId::new("boot-1")), scope: None }
}

/// Begun by process 100.
pub fn begin() -> Begin {
    Begin::new(BegunBy::Supervisor(process(100)), at())
}

/// A turn of this session, begun by process 100.
pub fn turn_begin(session: &str, cause: TurnCause) -> TurnBegin {
    TurnBegin {
        format: FORMAT,
        session: Session::parse(session).unwrap(),
        at: stamp(),
        by: process(100),
        mark: id(9),
        cause,
        sink: None,
        destination: None,
        cwd: None,
        extra: Extra::new(),
    }
}

/// A message for this session, which goes to sink `a`.
pub fn message(session: &str, text: &str) -> Message {
    Message {
        format: FORMAT,
        session: Session::parse(session).unwrap(),
        at: stamp(),
        text: text.to_owned(),
        sink: "a".to_owned(),
        destination: None,
        cwd: None,
        depth: 0,
        chain: None,
        extra: Extra::new(),
    }
}

/// Never to be begun.
pub fn abandoned() -> Begin {
    Begin::new(BegunBy::Abandoned, at())
}

/// Process 101.
pub fn target() -> Target {
    Target {
        format: FORMAT,
        handle: TargetHandle::of_process(&process(101)),
        at_ms: at(),
        survives: vec!["parent".into()],
        bound_to: None,
        extra: Extra::new(),
    }
}

/// An exit with `code`.
pub fn end(code: u32) -> End {
    End::new(Outcome::Exited { code }, at())
}

/// Nothing is left.
pub fn swept() -> Swept {
    Swept::new(stamp())
}

/// An answer in these words.
pub fn answer(text: &str) -> AnswerRecord {
    let words = AnswerText { text: text.to_owned(), source: AnswerSource::Output, truncated: false };
    AnswerRecord::new(Answer::Text(words))
}

/// Asked for by a person.
pub fn kill() -> Kill {
    Kill {
        format: FORMAT,
        at_ms: at(),
        by: KilledBy::Person,
        reason: None,
        grace_ms: 5_000,
        extra: Extra::new(),
    }
}

/// A first attempt.
pub fn lease() -> Lease {
    Lease {
        format: FORMAT,
        at: stamp(),
        deadline_ms: 60_000,
        attempts_used: 1,
        sink: 0,
        next_ms: 5_000,
        turn: false,
        in_place_of: None,
        secret: None,
        extra: Extra::new(),
    }
}

/// A failed attempt.
pub fn lease_result(gave_up: bool) -> LeaseResult {
    LeaseResult {
        format: FORMAT,
        at: stamp(),
        gave_up,
        busy: false,
        interrupted: None,
        gone: false,
        unreachable: false,
        open_in: None,
        taken_in_place: false,
        next_ms: 5_000,
        error: None,
        extra: Extra::new(),
    }
}

/// A receipt.
pub fn receipt(how: ReceiptHow) -> Receipt {
    Receipt::new(how, stamp())
}

/// How a job with this outcome is shown.
pub fn view(outcome: Outcome) -> JobView {
    let end = End { outcome, ..end(0) };
    let facts = Facts {
        spec: Read::Present(spec("s")),
        begin: Read::Present(begin()),
        target: Read::Present(target()),
        end: Read::Present(end),
        ..Facts::default()
    };
    let seen =
        Observed { id: id(1), facts, locks: LockView::FREE, place: Place::Open, output: Output::default() };
    JobView::new(&seen, &Here::default(), "/log".into()).expect("there is a spec")
}
