//! Doing what [`step()`] says, until the job has ended and that is recorded.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Wait};
use hearback_core::port::executor::{RunEvent, Running};
use hearback_core::port::process::{LaunchAnswer, LauncherLink};
use hearback_core::port::record::JobLock;
use hearback_core::port::surroundings::{Happened, OutsideEvent, Ready, Surround, Surroundings, next_event};
use hearback_core::{Durability, JobId, Kill, KilledBy, Limits, LostReason, Outcome, Read, Spec};
use tracing::{debug, error, info, warn};

use super::step::{Action, Cause, Ending, Event, Seen, State, step};
use crate::reconcile::SWEEP_WITHIN;
use crate::{Ports, reconcile};

/// Owns one job from the launcher's word to the recorded end.
pub struct Supervisor<'a> {
    pub(super) ports: &'a Ports,
    pub(super) surround: &'a dyn Surround,
    pub(super) wire: &'a mut dyn LauncherLink,
    pub(super) id: JobId,
    pub(super) spec: Option<Spec>,
    /// Held until the begin is published, if the launcher is gone.
    pub(super) launching: Option<Lock>,
    /// Held from before the begin until the end is durable.
    pub(super) alive: Option<Lock>,
    /// What surrounds the target; there from before it is started until its end is recorded.
    pub(super) around: Option<Box<dyn Surroundings>>,
    pub(super) running: Option<Box<dyn Running>>,
    /// Held while what was left behind is kept.
    keeper: Option<Lock>,
    /// Sees the follow-up through while this process still keeps what leftovers print.
    meanwhile: &'a dyn Fn(&JobId),
    /// Requests to end the job that were heard.
    heard: u32,
    /// What happened and was not decided on yet.
    pub(super) events: VecDeque<Event>,
    state: State,
}

impl<'a> Supervisor<'a> {
    /// A supervisor that has not been told anything yet.
    pub fn new(
        ports: &'a Ports,
        surround: &'a dyn Surround,
        wire: &'a mut dyn LauncherLink,
        meanwhile: &'a dyn Fn(&JobId),
        id: JobId,
    ) -> Self {
        Self {
            ports,
            surround,
            wire,
            id,
            spec: None,
            launching: None,
            alive: None,
            around: None,
            running: None,
            keeper: None,
            meanwhile,
            heard: 0,
            events: VecDeque::new(),
            state: State::Waiting,
        }
    }

    /// Runs the job. Returns when its end is recorded, or when it is somebody else's.
    ///
    /// A failure of the supervisor itself ends the job too, and is recorded as what it is: an exit that was seen is
    /// still told, and one that was not is never invented.
    pub fn run(mut self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.drive())) {
            self.fail(&panic_text(&*panic));
        }
        self.running = None;
        self.around = None;
        self.keeper = None;
        // Only now may others conclude that there is nothing more to come.
        self.alive = None;
        self.retire();
    }

    fn drive(&mut self) {
        let mut event = self.first_event();
        loop {
            let limits = self.limits();
            let (state, actions) = step(&limits, std::mem::replace(&mut self.state, State::Over), event);
            self.state = state;
            let followed_by: Vec<_> = actions.into_iter().filter_map(|action| self.act(action)).collect();
            self.events.extend(followed_by);
            event = match (self.events.pop_front(), &self.state) {
                (Some(event), _) => event,
                (None, State::Over) => return,
                (None, _) => self.next_event(),
            };
        }
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::FlushSpec => self.flush_spec(),
            Action::Claim => {
                return Some(match self.claim() {
                    Ok(published) => Event::Claimed(published),
                    Err(error) => Event::Unable(error.to_string()),
                });
            }
            Action::Surround => return Some(self.surround()),
            Action::Start => match self.start() {
                Ok(()) => self.accept(),
                Err(error) => {
                    // Its message may quote the command.
                    info!(job = %self.id, kind = ?error.kind, "target not started");
                    return Some(Event::StartFailed(error.shortened()));
                }
            },
            Action::Announce => self.announce(),
            Action::Terminate => {
                info!(job = %self.id, "terminating target");
                self.running.as_mut()?.terminate();
            }
            Action::Kill => return self.kill(),
            Action::End(ending) => {
                self.record_end(ending, None);
                self.record_answer();
            }
            Action::Keep => self.keep(),
            Action::Drain => drop(self.drain()),
            Action::AnswerFailed(error) => self.answer_at_the_end(&LaunchAnswer::FailedToStart { error }),
            Action::AnswerKilled => self.answer_at_the_end(&LaunchAnswer::Killed),
            Action::Refuse(message) => {
                // Nothing ran, and the launcher removes the folder: settling the job would race with that.
                self.spec = None;
                self.answer_at_the_end(&LaunchAnswer::Refused { message });
            }
            Action::AnswerTaken => self.wire.answer(&LaunchAnswer::Taken),
        }
        None
    }

    /// Waits for what decides about the job next.
    fn next_event(&mut self) -> Event {
        let limits = self.limits();
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let around = self.around.as_mut().expect("a state that waits has surroundings");
            let deadline = self.state.deadline(&limits, around.last_output());
            match next_event(&mut **around, self.running.as_deref_mut(), deadline) {
                Happened::Target(event) => return self.heard_of_target(event),
                Happened::Outside(event) => self.hear(event),
                Happened::Deadline => {
                    let last_output = around.last_output();
                    return Event::Deadline { at: self.ports.clock.awake(), last_output };
                }
            }
        }
    }

    pub(super) fn heard_of_target(&mut self, event: RunEvent) -> Event {
        let at = self.ports.clock.awake();
        match event {
            RunEvent::Started => Event::Started { at },
            RunEvent::Emptied => Event::Emptied,
            RunEvent::Exited { exit, usage } => {
                debug!(job = %self.id, %exit, "target exited");
                let left = self.running.as_mut().map(|running| running.members()).unwrap_or_default();
                Event::Exited { seen: Seen { exit, usage, at }, left }
            }
        }
    }

    /// Notes what an event around the target means for the job.
    pub(super) fn hear(&mut self, event: OutsideEvent) {
        let at = self.ports.clock.awake();
        debug!(job = %self.id, ?event, "event around the target");
        match event {
            OutsideEvent::OverCap => self.events.push_back(Event::OverCap { at }),
            OutsideEvent::Stop => {
                let cause = Cause::Kill { by: KilledBy::System, reason: None };
                let grace = Duration::from_millis(self.limits().grace_ms);
                self.events.push_back(Event::Asked { cause, grace, at });
            }
            OutsideEvent::Bell => self.read_requests(),
        }
    }

    /// Reads the requests to end the job that are new.
    pub(super) fn read_requests(&mut self) {
        let kills = match self.ports.store.kills(&self.id, self.heard) {
            Ok(kills) => kills,
            Err(error) => return warn!(job = %self.id, %error, "kill requests cannot be read"),
        };
        let at = self.ports.clock.awake();
        for (n, kill) in kills {
            self.heard = n;
            if let Read::Present(Kill { by, reason, grace_ms, .. }) = kill {
                let grace = Duration::from_millis(grace_ms);
                info!(job = %self.id, %by, grace_ms, "kill requested");
                self.events.push_back(Event::Asked { cause: Cause::Kill { by, reason }, grace, at });
            }
        }
    }

    /// The end is recorded; from here on others may settle the job, but not move it.
    fn keep(&mut self) {
        self.keeper = self.ports.share(&self.id, JobLock::Keeper).ok().flatten();
        self.alive = None;
        (self.meanwhile)(&self.id);
    }

    fn kill(&mut self) -> Option<Event> {
        let running = self.running.as_mut()?;
        let survivors = running.kill(SWEEP_WITHIN);
        info!(job = %self.id, survivors = survivors.len(), "target killed");
        // The kill has reaped what it ended; that is reported at once or not at all.
        let seen = match running.poll(Ready::NONE) {
            Some(RunEvent::Exited { exit, usage }) => {
                Some(Seen { exit, usage, at: self.ports.clock.awake() })
            }
            _ => None,
        };
        Some(Event::Killed { seen, survivors })
    }

    /// The supervisor itself has failed: ends the job and says so.
    fn fail(&mut self, why: &str) {
        let why = format!("the supervisor failed: {why}");
        error!(job = %self.id, error = %why, "supervisor failed");
        if self.alive.is_none() {
            self.wire.answer(&LaunchAnswer::Refused { message: why });
            return;
        }
        let survivors = self.running.as_mut().map_or_else(Vec::new, |running| {
            let target = running.handle().process();
            // A target that caused the failure may cause it again; then it is not known to be gone.
            let killed = catch_unwind(AssertUnwindSafe(|| running.kill(SWEEP_WITHIN)));
            killed.unwrap_or_else(|_| target.into_iter().collect())
        });
        let unseen = || Ending::of(Outcome::Lost { reason: LostReason::SupervisorDied });
        let ending = self.state.known_ending().unwrap_or_else(unseen);
        self.record_end(Ending { survivors, ..ending }, Some(why));
        self.record_answer();
    }

    /// Settles the job and moves it out of the way, so that nobody else has to.
    fn retire(&mut self) {
        if self.spec.is_none() {
            return;
        }
        // The launcher lets go as soon as it has its answer; a folder that it holds cannot move.
        let waited = self.ports.store.lock(&self.id, JobLock::Launch, LockMode::Shared, Wait::Block);
        drop(waited);
        // Best effort: whatever is left undone, every later command does.
        if let Err(error) = reconcile::job(self.ports, &self.id) {
            warn!(job = %self.id, %error, "job not settled");
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.spec.as_ref().map(|spec| spec.limits).unwrap_or_default()
    }

    pub(super) fn durability(&self) -> Durability {
        self.spec.as_ref().map(Spec::durability).unwrap_or_default()
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "for no stated reason".into())
}

impl std::fmt::Debug for Supervisor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::disk::Publish;
    use hearback_core::port::executor::Executors;
    use hearback_core::port::process::LaunchSignal;
    use hearback_core::port::record::{FactStore, JobFiles};
    use hearback_core::testing::{
        FakeClock, FakeExecutor, FakeProcesses, FakeStore, FakeSurround, Heard, Script, sample,
    };
    use hearback_core::{ExecutorName, Exit, Fact, Facts, JobState, LockView, fold};

    use crate::testing::Events;

    /// A launcher that says one word and keeps the answer.
    struct FakeWire(LaunchSignal, Vec<LaunchAnswer>);

    impl LauncherLink for FakeWire {
        fn word(&mut self) -> LaunchSignal {
            self.0
        }
        fn answer(&mut self, answer: &LaunchAnswer) {
            self.1.push(answer.clone());
        }
    }

    fn supervise(
        word: LaunchSignal,
        script: Script,
        facts: Option<Facts>,
    ) -> (FakeStore, FakeExecutor, Vec<LaunchAnswer>) {
        supervise_in(&FakeSurround::default(), word, script, facts)
    }

    fn supervise_in(
        surround: &FakeSurround,
        word: LaunchSignal,
        script: Script,
        facts: Option<Facts>,
    ) -> (FakeStore, FakeExecutor, Vec<LaunchAnswer>) {
        let store = FakeStore::default();
        let id = sample::id(1);
        store.put(&id, facts.unwrap_or(launched()));
        let executor = FakeExecutor::plays(script);
        let executors = Executors::local(executor.clone());
        let ports = Ports::new(store.clone(), FakeProcesses::default(), FakeClock::default(), executors);
        let mut wire = FakeWire(word, vec![]);
        Supervisor::new(&ports, surround, &mut wire, &|_| {}, id).run();
        (store, executor, wire.1)
    }

    fn launched() -> Facts {
        Facts { spec: Read::Present(sample::unowned(&sample::id(1))), ..Facts::default() }
    }

    fn outcome(store: &FakeStore) -> Outcome {
        store.facts(&sample::id(1)).end.present().unwrap().outcome.clone()
    }

    fn exits(code: u32) -> Script {
        let exit = Exit::Exited { code };
        let events = [RunEvent::Exited { exit, usage: None }].into();
        Script { events, prints: b"hello".into(), ..Script::default() }
    }

    #[test]
    fn a_job_is_run_recorded_answered_and_settled() {
        let (store, executor, answers) = supervise(LaunchSignal::Durable, exits(3), None);
        assert_eq!(
            answers,
            [LaunchAnswer::Started { pid: Some(101), bound_to: Some("fake.service".into()) }]
        );
        assert_eq!(executor.calls(), ["start"]);
        let facts = store.facts(&sample::id(1));
        let end = facts.end.present().unwrap();
        assert_eq!(end.outcome, Outcome::Exited { code: 3 });
        assert_eq!(end.output.bytes, 5);
        assert!(facts.settled.present().is_some());
    }

    #[test]
    fn a_job_that_was_abandoned_is_not_run() {
        let facts = Facts {
            spec: Read::Present(sample::unowned(&sample::id(1))),
            begin: Read::Present(sample::abandoned()),
            ..Facts::default()
        };
        // One whose launcher is gone has nobody to answer.
        for (word, told) in [(LaunchSignal::Durable, vec![LaunchAnswer::Taken]), (LaunchSignal::Gone, vec![])]
        {
            let (_, executor, answers) = supervise(word, exits(0), Some(facts.clone()));
            assert_eq!(answers, told);
            assert!(executor.calls().is_empty());
        }
    }

    #[test]
    fn a_job_whose_launcher_is_gone_is_run_unless_somebody_launches_it_again() {
        let (store, executor, _) = supervise(LaunchSignal::Gone, exits(3), None);
        assert_eq!(executor.calls(), ["start"]);
        assert!(store.facts(&sample::id(1)).end.present().is_some());

        let (store, id) = (FakeStore::default(), sample::id(1));
        store.put(&id, Facts { spec: Read::Present(sample::unowned(&id)), ..Facts::default() });
        let again = store.lock(&id, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
        let late = std::thread::spawn({
            let store = store.clone();
            move || {
                let executor = FakeExecutor::default();
                let executors = Executors::local(executor.clone());
                let ports = Ports::new(store, FakeProcesses::default(), FakeClock::default(), executors);
                let mut wire = FakeWire(LaunchSignal::Gone, vec![]);
                let surround = FakeSurround::default();
                Supervisor::new(&ports, &surround, &mut wire, &|_| {}, sample::id(1)).run();
                executor.calls().len()
            }
        });
        // The supervisor of the second launch begins before its launcher lets go.
        let begin = Fact::Begin(sample::begin());
        assert_eq!(store.publish(&id, &begin, Durability::Power).unwrap(), Publish::New);
        drop(again);
        assert_eq!(late.join().unwrap(), 0, "it was run twice");
    }

    #[test]
    fn a_folder_without_a_spec_is_no_job() {
        let (store, executor, answers) = supervise(LaunchSignal::Gone, exits(0), Some(Facts::default()));
        assert!(answers.is_empty());
        assert!(executor.calls().is_empty());
        assert!(store.facts(&sample::id(1)).begin.is_absent());
    }

    #[test]
    fn a_supervisor_that_fails_ends_the_job_and_invents_no_exit() {
        let script = Script { leftovers: vec![sample::process(101)], kill_works: true, ..Script::default() };
        let events = Events::default();
        let (store, executor, _) = events.of(|| supervise(LaunchSignal::Durable, script, None));
        assert_eq!(executor.calls(), ["start", "kill"]);
        let facts = store.facts(&sample::id(1));
        let end = facts.end.present().unwrap();
        assert_eq!(end.outcome, Outcome::Lost { reason: LostReason::SupervisorDied });
        assert!(end.note.as_ref().unwrap().contains("the script has come to its end"), "{:?}", end.note);
        assert_eq!(events.with("supervisor failed").len(), 1, "{events:?}");
        assert!(events.with("supervisor failed")[0].contains(sample::id(1).as_str()), "{events:?}");
    }

    #[test]
    fn a_supervisor_that_fails_after_the_exit_still_tells_it() {
        let script = Script { leftovers: vec![sample::process(102)], kill_works: true, ..exits(7) };
        let (store, ..) = supervise(LaunchSignal::Durable, script, None);
        let facts = store.facts(&sample::id(1));
        let JobState::Ended { outcome, .. } = fold(&facts, LockView::FREE).state else { panic!("not ended") };
        assert_eq!(outcome, Outcome::Exited { code: 7 });
    }

    #[test]
    fn a_kill_that_comes_before_the_target_is_heard_and_nothing_runs() {
        let kills = vec![(1, Read::Present(sample::kill()))];
        let facts = Facts { kills, ..launched() };
        let (store, executor, answers) = supervise(LaunchSignal::Durable, exits(0), Some(facts));
        assert!(executor.calls().is_empty(), "nothing was started");
        assert_eq!(answers, [LaunchAnswer::Killed]);
        assert!(matches!(outcome(&store), Outcome::Killed { exit: None, .. }));

        let stop = FakeSurround::hears([Heard::Event(OutsideEvent::Stop)]);
        let (store, executor, answers) = supervise_in(&stop, LaunchSignal::Durable, exits(0), None);
        assert!(executor.calls().is_empty(), "a system that shuts down starts nothing");
        assert_eq!(answers, [LaunchAnswer::Killed]);
        assert!(matches!(outcome(&store), Outcome::Killed { by: KilledBy::System, .. }));
    }

    #[test]
    fn a_system_that_shuts_down_terminates_the_tree_then_kills_it() {
        let script = Script { leftovers: vec![sample::process(101)], ..Script::default() };
        let heard = [Heard::Deadline, Heard::Event(OutsideEvent::Stop), Heard::Deadline];
        let (store, executor, _) =
            supervise_in(&FakeSurround::hears(heard), LaunchSignal::Durable, script, None);
        assert_eq!(executor.calls(), ["start", "terminate", "kill"]);
        let facts = store.facts(&sample::id(1));
        assert_eq!(facts.end.present().unwrap().survivors, [sample::process(101)]);
    }

    #[test]
    fn what_cannot_be_surrounded_or_has_no_executor_fails_to_start() {
        let refuse = FakeSurround { refuse: true, ..FakeSurround::default() };
        let (store, executor, answers) = supervise_in(&refuse, LaunchSignal::Durable, exits(0), None);
        assert!(executor.calls().is_empty());
        assert!(matches!(outcome(&store), Outcome::FailedToStart { .. }));
        assert!(matches!(&answers[..], [LaunchAnswer::FailedToStart { .. }]));

        let executor = ExecutorName::parse("elsewhere").unwrap();
        let spec = Spec { executor, ..sample::unowned(&sample::id(1)) };
        let facts = Facts { spec: Read::Present(spec), ..Facts::default() };
        let (store, ..) = supervise(LaunchSignal::Durable, exits(0), Some(facts));
        let Outcome::FailedToStart { error } = outcome(&store) else { panic!("{:?}", outcome(&store)) };
        assert!(error.message.contains("no executor named `elsewhere`"), "{error}");
    }
}
