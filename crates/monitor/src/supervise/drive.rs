//! Doing what [`step()`] says, until the job has ended and that is recorded.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::executor::{RunEvent, Running, StartRequest};
use hearback_core::port::process::{LaunchAnswer, LaunchSignal, LauncherLink};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::surroundings::{
    Happened, OutsideEvent, Ready, Surround, SurroundRequest, Surroundings, next_event,
};
use hearback_core::{
    Begin, BegunBy, CommandLine, Durability, Fact, JobId, Kill, KilledBy, Limits, LostReason, Outcome, Read,
    Spec, StartError, StartErrorKind,
};

use super::step::{Action, Cause, Ending, Event, Seen, State, step};
use crate::reconcile::SWEEP_WITHIN;
use crate::{Ports, reconcile};

/// Owns one job from the launcher's word to the recorded end.
pub struct Supervisor<'a> {
    pub(super) ports: &'a Ports,
    surround: &'a dyn Surround,
    wire: &'a mut dyn LauncherLink,
    pub(super) id: JobId,
    pub(super) spec: Option<Spec>,
    /// Held until the begin is published, if the launcher is gone.
    launching: Option<Lock>,
    /// Held from before the begin until the end is durable.
    alive: Option<Lock>,
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
    events: VecDeque<Event>,
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

    /// Gets ready while the launcher flushes the spec, then hears the word and reads what to do.
    fn first_event(&mut self) -> Event {
        let reserved = self.ports.store.reserve_end(&self.id);
        let word = self.wire.word();
        if word == LaunchSignal::Failed {
            return Event::LaunchSignal(word);
        }
        if let Err(error) = reserved {
            return Event::Unable(error.to_string());
        }
        if word == LaunchSignal::Gone {
            match self.is_forsaken() {
                Ok(true) => {}
                Ok(false) => return Event::LaunchSignal(LaunchSignal::Failed),
                Err(error) => return Event::Unable(error.to_string()),
            }
        }
        match self.ports.store.spec(&self.id) {
            Ok(Read::Present(spec)) => {
                self.spec = Some(spec);
                Event::LaunchSignal(word)
            }
            // Its launcher died before it had said what to run: there is no job.
            Ok(Read::Absent) => Event::LaunchSignal(LaunchSignal::Failed),
            Ok(_) => Event::Unable("the spec cannot be read back".into()),
            Err(error) => Event::Unable(error.to_string()),
        }
    }

    /// Whether a job whose launcher is gone is still nobody's.
    ///
    /// Somebody may be launching it again under its key, with a supervisor of their own: whoever is first to hold
    /// the launch lock decides, and the other finds a begin.
    fn is_forsaken(&mut self) -> Result<bool, StoreError> {
        self.launching = self.ports.store.lock(&self.id, JobLock::Launch, LockMode::Shared, Wait::Block)?;
        Ok(self.ports.store.observe(&self.id)?.is_some_and(|seen| seen.facts.begin.is_absent()))
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
                Err(error) => return Some(Event::StartFailed(error.shortened())),
            },
            Action::Announce => self.announce(),
            Action::Terminate => self.running.as_mut()?.terminate(),
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
            let last_output = around.last_output();
            let deadline = self.state.deadline(&limits, last_output);
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

    fn heard_of_target(&mut self, event: RunEvent) -> Event {
        let at = self.ports.clock.awake();
        match event {
            RunEvent::Started => Event::Started { at },
            RunEvent::Emptied => Event::Emptied,
            RunEvent::Exited { exit, usage } => {
                let left = self.running.as_mut().map(|running| running.members()).unwrap_or_default();
                Event::Exited { seen: Seen { exit, usage, at }, left }
            }
        }
    }

    /// Notes what an event around the target means for the job.
    fn hear(&mut self, event: OutsideEvent) {
        let at = self.ports.clock.awake();
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
    fn read_requests(&mut self) {
        let kills = match self.ports.store.kills(&self.id, self.heard) {
            Ok(kills) => kills,
            Err(error) => return self.note(&format!("what was asked cannot be read: {error}")),
        };
        let at = self.ports.clock.awake();
        for (n, kill) in kills {
            self.heard = n;
            if let Read::Present(Kill { by, reason, grace_ms, .. }) = kill {
                let grace = Duration::from_millis(grace_ms);
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

    fn claim(&mut self) -> Result<Publish, StoreError> {
        // By blocking: a crowd of probes could refuse a try.
        self.alive = self.ports.store.lock(&self.id, JobLock::Alive, LockMode::Exclusive, Wait::Block)?;
        let me = self.ports.processes.me()?;
        let begin = Begin::new(BegunBy::Supervisor(me), self.ports.clock.wall());
        let published = self.ports.store.publish(&self.id, &Fact::Begin(begin), self.durability());
        self.launching = None;
        published
    }

    /// Makes what surrounds the target, and hears what was requested before there was a bell to ring.
    fn surround(&mut self) -> Event {
        let store = &self.ports.store;
        let request = SurroundRequest {
            bell: &store.bell_path(&self.id),
            log: &store.log_path(&self.id),
            log_tail: &store.log_tail_path(&self.id),
            log_cap: self.limits().log_cap,
        };
        let mut around = match self.surround.surround(&request) {
            Ok(around) => around,
            Err(error) => {
                let message = format!("cannot prepare to run: {error}");
                return Event::StartFailed(StartError { kind: StartErrorKind::Other, message }.shortened());
            }
        };
        let stop = around.take_event().filter(|event| *event == OutsideEvent::Stop);
        self.around = Some(around);
        self.read_requests();
        stop.into_iter().for_each(|stop| self.hear(stop));
        Event::Surrounded
    }

    fn start(&mut self) -> Result<(), StartError> {
        let spec = self.spec.as_ref().expect("a job that was claimed has a spec");
        let around = self.around.as_ref().expect("a target has surroundings");
        let executor = self.ports.executors.find(&spec.executor)?;
        let script = match &spec.command {
            CommandLine::Argv(_) => None,
            CommandLine::Shell { shell: text, program } => {
                let script = executor.script(text, program.as_deref(), &spec.cwd)?;
                let written = self.ports.store.write_script(&self.id, &script);
                Some(written.map_err(|error| StartError {
                    kind: StartErrorKind::Other,
                    message: format!("the text for the shell could not be written: {error}"),
                })?)
            }
        };
        let answer = spec.answer.then(|| self.ports.store.answer_path(&self.id));
        self.running = Some(executor.start(&StartRequest {
            job: &self.id,
            command: &spec.command,
            cwd: &spec.cwd,
            withhold: &spec.withhold,
            answer: answer.as_deref(),
            script: script.as_deref(),
            output: &around.log(),
        })?);
        Ok(())
    }

    /// Notes that the executor has the target, and since when it runs, if it runs at once.
    fn accept(&mut self) {
        self.events.push_back(Event::Accepted);
        if let Some(event) = self.running.as_mut().and_then(|running| running.poll(Ready::NONE)) {
            let event = self.heard_of_target(event);
            self.events.push_back(event);
        }
    }

    /// Records the target, and answers that it was started.
    fn announce(&mut self) {
        let bound_to = self.record_target();
        // Another process may fill the disk next.
        self.make_first_lease_lock();
        let pid = self.running.as_ref().and_then(|running| running.handle().pid());
        self.wire.answer(&LaunchAnswer::Started { pid, bound_to });
    }

    fn kill(&mut self) -> Option<Event> {
        let running = self.running.as_mut()?;
        let survivors = running.kill(SWEEP_WITHIN);
        // The kill has reaped what it ended; that is reported at once or not at all.
        let seen = match running.poll(Ready::NONE) {
            Some(RunEvent::Exited { exit, usage }) => {
                Some(Seen { exit, usage, at: self.ports.clock.awake() })
            }
            _ => None,
        };
        Some(Event::Killed { seen, survivors })
    }

    fn flush_spec(&self) {
        // Without the flush the job is as safe as its machine; not to run it would be worse.
        if self.durability() == Durability::Power
            && let Err(error) = self.ports.store.flush_spec(&self.id)
        {
            self.note(&format!("the spec could not be flushed: {error}"));
        }
    }

    /// Answers when nothing runs and nothing will.
    fn answer_at_the_end(&mut self, answer: &LaunchAnswer) {
        self.alive = None;
        self.wire.answer(answer);
    }

    /// The supervisor itself has failed: ends the job and says so.
    fn fail(&mut self, why: &str) {
        let why = format!("the supervisor failed: {why}");
        self.note(&why);
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
        let _ = reconcile::job(self.ports, &self.id);
    }

    pub(super) fn limits(&self) -> Limits {
        self.spec.as_ref().map(|spec| spec.limits).unwrap_or_default()
    }

    pub(super) fn durability(&self) -> Durability {
        self.spec.as_ref().map(|spec| spec.durability).unwrap_or_default()
    }

    pub(super) fn note(&self, line: &str) {
        // Nobody watches a supervisor's terminal, and a disk that is full cannot take this either.
        let _ = self.ports.store.note(&self.id, &format!("{} {line}", self.ports.clock.wall()));
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
    use hearback_core::port::executor::Executors;
    use hearback_core::port::record::RecordStore;
    use hearback_core::testing::{
        FakeClock, FakeExecutor, FakeProcesses, FakeStore, FakeSurround, Heard, Script, sample,
    };
    use hearback_core::{ExecutorName, Exit, Facts, JobState, LockView, fold};

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
        let (store, executor, _) = supervise(LaunchSignal::Durable, script, None);
        assert_eq!(executor.calls(), ["start", "kill"]);
        let facts = store.facts(&sample::id(1));
        let end = facts.end.present().unwrap();
        assert_eq!(end.outcome, Outcome::Lost { reason: LostReason::SupervisorDied });
        assert!(end.note.as_ref().unwrap().contains("the script has come to its end"), "{:?}", end.note);
        assert!(!store.notes().is_empty());
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
