//! Writes the golden store of format 1 anew: `cargo run -p hearback-tests --example golden`.
//!
//! Every file is written by the store itself, over a disk in memory whose ids and times are fixed; so the same build
//! always writes the same bytes. Only until the first release: after it, `tests/golden/format-1` is never written
//! again, and a new format gets a folder of its own.
#![allow(clippy::disallowed_methods, reason = "it writes into the source tree, and no store is there")]

use std::cell::Cell;
use std::path::Path;

use fs_err as fs;
use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::record::{FactStore, Housekeeping, JobFiles, JobLock, KeyClaim};
use hearback_core::port::session::SessionStore;
use hearback_core::session::{Interruption, MessageFact, MessageHow, TurnCause, TurnFact, TurnHow};
use hearback_core::testing::{FakeDisk, sample};
use hearback_core::{
    Begin, BegunBy, CommandLine, Durability, End, EndAuthor, Exit, Extra, FORMAT, Fact, GapReason, HostBegin,
    HostFact, JobId, Key, KilledBy, Lease, LeaseResult, Limits, LogCap, LostReason, NotifyPolicy, OsText,
    Outcome, Output, Reader, Receipt, ReceiptHow, RequestedBy, Session, Settled, Spec, StartError,
    StartErrorKind, StopDone, StopKind, StopRequest, StopTaken, Timestamp, Usage,
};
use hearback_store::Store;

const POWER: Durability = Durability::Power;
const HOME: &str = "/home";

fn main() {
    let disk = FakeDisk::default();
    let store = Store::open(disk.clone(), Path::new(HOME)).unwrap();
    let golden = Golden { store, disk, launched: Cell::new(sample::at()) };
    golden.jobs_that_are_open();
    golden.jobs_that_ended();
    golden.jobs_with_a_follow_up();
    golden.jobs_of_history();
    golden.sessions();
    golden.host();
    golden.save(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/format-{FORMAT}")));
}

struct Golden {
    disk: FakeDisk,
    store: Store<FakeDisk>,
    /// When the last job was launched: ids sort by it.
    launched: Cell<Timestamp>,
}

impl Golden {
    /// A job of session `main` with this label, of which nothing is known but its spec.
    fn launch(&self, label: &str, change: impl FnOnce(&mut Spec)) -> JobId {
        let now = Timestamp::from_millis(self.launched.get().as_millis() + 1_000);
        self.launched.set(now);
        let id = self.store.create(now).unwrap();
        let label = Some(label.to_owned());
        let mut spec = Spec { id: id.clone(), label, launched_at_ms: now, ..sample::spec("main") };
        change(&mut spec);
        drop(self.store.lock(&id, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap());
        self.publish(&id, Fact::Spec(Box::new(spec)));
        id
    }

    /// A job that was begun, and whose target ran.
    fn run(&self, label: &str, change: impl FnOnce(&mut Spec)) -> JobId {
        let id = self.launch(label, change);
        drop(self.store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap());
        self.publish(&id, Fact::Begin(sample::begin()));
        self.publish(&id, Fact::Target(sample::target()));
        id
    }

    /// A job that ran and ended so.
    fn ended(&self, label: &str, outcome: Outcome, change: impl FnOnce(&mut Spec)) -> JobId {
        let id = self.run(label, change);
        self.end(&id, End { ran_ms: Some(1_500), ..End::new(outcome, sample::at()) });
        id
    }

    fn end(&self, id: &JobId, end: End) {
        self.publish(id, Fact::End(Box::new(End { at: Some(sample::stamp()), ..end })));
    }

    fn publish(&self, id: &JobId, fact: Fact) {
        assert_eq!(self.store.publish(id, &fact, POWER).unwrap(), Publish::New, "{fact:?}");
    }

    fn write_log(&self, id: &JobId, text: &str) {
        self.disk.plant(&self.store.log_path(id), text.as_bytes());
    }

    /// Does what reconcile does with a job of which nothing is pending.
    fn settle(&self, id: &JobId) {
        let facts = Box::new(self.store.observe(id).unwrap().unwrap().facts);
        let settled = Settled { format: FORMAT, at: sample::stamp(), facts, extra: Extra::new() };
        self.publish(id, Fact::Settled(settled));
        assert!(self.store.archive(id).unwrap());
    }

    fn jobs_that_are_open(&self) {
        self.launch("never begun", |spec| {
            spec.command =
                CommandLine::Shell { shell: "make | tee log".into(), program: Some("bash".into()) };
        });
        let running = self.run("running when its supervisor died", |spec| {
            spec.limits = Limits {
                timeout_ms: Some(60_000),
                idle_timeout_ms: Some(5_000),
                log_cap: Some(LogCap::MIN),
                ..Limits::default()
            };
            spec.bound = true;
            spec.depth = 2;
            spec.cwd = OsText::Bytes { bytes: b"/caf\xe9".to_vec() };
        });
        self.store.reserve(&running).unwrap();
        self.write_log(&running, "one\ntwo\n");
        self.publish(&running, Fact::Kill(1, sample::kill()));
    }

    fn jobs_that_ended(&self) {
        let usage = Usage { user_ms: 700, system_ms: 30, peak_memory_bytes: 9_000_000 };
        let mut output = Output { bytes: 1_000, ..Output::default() };
        output.lose(8..992, GapReason::Cap);
        let done = self.run("exited, with output that was capped", |spec| spec.notify = NotifyPolicy::Never);
        let end = End { usage: Some(usage), output, ..End::new(Outcome::Exited { code: 0 }, sample::at()) };
        self.end(&done, End { ran_ms: Some(2_500), ..end });
        let killed = Exit::Signaled { signal: 9, core: false };
        let by_session = KilledBy::Session(Session::parse("main").unwrap());
        let outcomes = [
            ("exited with 3", Outcome::Exited { code: 3 }),
            ("ended by a signal", Outcome::Signaled { signal: 11, core: true }),
            ("timed out", Outcome::TimedOut { limit_ms: 60_000, exit: Some(killed) }),
            ("silent for too long", Outcome::IdleTimedOut { limit_ms: 5_000, exit: None }),
            (
                "killed by its session",
                Outcome::Killed { by: by_session, reason: Some("too slow".into()), exit: Some(killed) },
            ),
            ("killed by a person", Outcome::Killed { by: KilledBy::Person, reason: None, exit: None }),
            ("killed by the system", Outcome::Killed { by: KilledBy::System, reason: None, exit: None }),
            ("killed by the host", Outcome::Killed { by: KilledBy::Host, reason: None, exit: None }),
            ("over its cap", Outcome::Killed { by: KilledBy::OutputLimit, reason: None, exit: None }),
        ];
        for (label, outcome) in outcomes {
            self.ended(label, outcome, |_| {});
        }
        let refused = StartError { kind: StartErrorKind::NotFound, message: "no such program: mkae".into() };
        let failed = self.launch("failed to start", |_| {});
        self.publish(&failed, Fact::Begin(sample::begin()));
        self.end(&failed, End::new(Outcome::FailedToStart { error: refused }, sample::at()));
        let abandoned = self.launch("abandoned", |_| {});
        self.publish(&abandoned, Fact::Begin(Begin::new(BegunBy::Abandoned, sample::at())));
        let lost = self.run("lost, with a survivor", |_| {});
        let outcome = Outcome::Lost { reason: LostReason::SupervisorDied };
        let author = EndAuthor::Reconciler;
        let note = Some("one process could not be ended".into());
        let survivors = vec![sample::process(103)];
        self.end(&lost, End { author, survivors, note, ..End::new(outcome, sample::at()) });
    }

    fn jobs_with_a_follow_up(&self) {
        let failed = || Outcome::Exited { code: 1 };
        let to_sinks = |spec: &mut Spec| spec.sinks = vec!["first".into(), "second".into()];
        let tried = self.ended("tried once, and waits", failed(), to_sinks);
        self.attempt(&tried, 1, LeaseResult { error: Some("refused".into()), ..sample::lease_result(false) });
        let leased = self.ended("leased, and never heard of again", failed(), to_sinks);
        self.publish(&leased, Fact::Lease(1, sample::lease()));
        let dead = self.ended("dead letter", failed(), to_sinks);
        let busy = LeaseResult { busy: true, ..sample::lease_result(false) };
        self.attempt(&dead, 1, busy);
        let gone =
            LeaseResult { gone: true, error: Some("no such session".into()), ..sample::lease_result(true) };
        self.attempt(&dead, 2, gone);
        let delivered = self.ended("delivered, and not settled yet", failed(), to_sinks);
        self.publish(&delivered, Fact::Lease(1, sample::lease()));
        self.publish(&delivered, Fact::Receipt(sample::receipt(ReceiptHow::Delivered)));
    }

    fn attempt(&self, id: &JobId, n: u32, result: LeaseResult) {
        let sink = n - 1;
        self.publish(id, Fact::Lease(n, Lease { attempts_used: n, sink, ..sample::lease() }));
        self.publish(id, Fact::LeaseResult(n, result));
    }

    fn jobs_of_history(&self) {
        for how in [ReceiptHow::Delivered, ReceiptHow::Read, ReceiptHow::Discarded, ReceiptHow::Expired] {
            let id = self.ended(&format!("settled: {how:?}"), Outcome::Exited { code: 0 }, |_| {});
            self.write_log(&id, "all is well\n");
            self.publish(&id, Fact::Receipt(Receipt::new(how, sample::stamp())));
            self.settle(&id);
        }
        let asked = self.run("a prompt job, with its answer", |spec| spec.answer = true);
        self.end(&asked, sample::end(0));
        self.publish(&asked, Fact::Answer(sample::answer("42")));
        self.publish(&asked, Fact::Receipt(sample::receipt(ReceiptHow::Read)));
        self.settle(&asked);
        for reader in [None, Reader::parse("reviewer").ok()] {
            let noted = self.store.acknowledge(&asked, reader.as_ref(), &sample::stamp(), POWER).unwrap();
            assert_eq!(noted, Publish::New);
        }
        for (session, name) in [(None, "of no session"), (Session::parse("main").ok(), "nightly build")] {
            let key = Key::parse(name).unwrap();
            let id = self.ended(&format!("key: {name}"), Outcome::Exited { code: 0 }, |spec| {
                spec.session = session.clone();
                spec.key = Some(key.clone());
                spec.notify = NotifyPolicy::Never;
            });
            assert_eq!(self.store.claim_key(session.as_ref(), &key, &id).unwrap(), KeyClaim::Ours);
            self.settle(&id);
        }
    }

    fn sessions(&self) {
        let main = Session::parse("main").unwrap();
        let turn = |n, fact: TurnFact| {
            assert_eq!(self.store.publish_turn(&main, n, &fact, POWER).unwrap(), Publish::New, "{fact:?}");
        };
        let causes = [
            TurnCause::Command,
            TurnCause::FollowUp { delivery: "a-job.end".into(), others: Vec::new() },
            TurnCause::Message { n: 1, attempt: 2 },
            TurnCause::Resume { turn: 2 },
        ];
        let ends = [
            Some(TurnHow::Done),
            Some(TurnHow::Failed { error: "exit code 1".into() }),
            Some(TurnHow::Interrupted { reason: Interruption::Restart }),
            None,
        ];
        for (n, (cause, end)) in (1..).zip(causes.into_iter().zip(ends)) {
            let mut begin = sample::turn_begin("main", cause);
            begin.sink = Some("first".into());
            begin.destination = Some("thread 7".into());
            begin.cwd = Some("/project".into());
            turn(n, TurnFact::Begin(Box::new(begin)));
            if let Some(how) = end {
                turn(n, TurnFact::end(sample::stamp(), how));
            }
        }
        turn(3, TurnFact::resumable(sample::stamp(), Interruption::Restart, true));
        turn(3, TurnFact::interrupt(sample::stamp(), Interruption::Restart));
        let inbox = Session::parse("only an inbox/ü").unwrap();
        let said = |n, fact: MessageFact| {
            let published = self.store.publish_message(&inbox, n, &fact, POWER).unwrap();
            assert_eq!(published, Publish::New, "{fact:?}");
        };
        let hows = [MessageHow::Delivered, MessageHow::Expired, MessageHow::Overtaken, MessageHow::Discarded];
        for how in hows {
            let n = self.store.queue(&sample::message(inbox.as_str(), "settled"), POWER).unwrap();
            said(n, MessageFact::receipt(sample::stamp(), how));
        }
        for (text, next) in [("dead letter", None), ("waits after a failure", Some(5_000))] {
            let n = self.store.queue(&sample::message(inbox.as_str(), text), POWER).unwrap();
            said(n, MessageFact::result(1, sample::stamp(), "no".into(), true, next));
        }
        self.store.queue(&sample::message(inbox.as_str(), "waits"), POWER).unwrap();
    }

    fn host(&self) {
        let (at, extra) = (sample::stamp, Extra::new);
        let (process, version) = (sample::process(7), "0.1.0".to_owned());
        let begin = HostBegin { format: FORMAT, process, at: at(), service: true, version, extra: extra() };
        let by = RequestedBy { session: Session::parse("main").unwrap(), turn: 3 };
        let restart = StopRequest {
            by: Some(by),
            sequence: Some(41),
            within_ms: Some(10_000),
            ..StopRequest::new(StopKind::Restart, at())
        };
        let facts = [
            (1, HostFact::Begin(begin)),
            (1, HostFact::Request(restart)),
            (1, HostFact::Taken(StopTaken { format: FORMAT, at: at(), awaited: 2, extra: extra() })),
            (1, HostFact::Done(StopDone { format: FORMAT, at: at(), interrupted: Some(1), extra: extra() })),
            (2, HostFact::Request(StopRequest::new(StopKind::Stop, at()))),
            (3, HostFact::Request(StopRequest::new(StopKind::Drain, at()))),
        ];
        for (n, fact) in facts {
            assert_eq!(self.store.publish_host(n, &fact, POWER).unwrap(), Publish::New, "{fact:?}");
        }
    }

    /// Writes every file below `folder`, and removes what was there. Folders without a file are made when a store is
    /// opened.
    fn save(&self, folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        for (path, content) in self.disk.image() {
            let (Some(bytes), Ok(rest)) = (content, path.strip_prefix(HOME)) else { continue };
            let path = folder.join(rest);
            fs::create_dir_all(path.parent().expect("it is below the folder")).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
}
