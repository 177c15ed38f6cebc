//! Doing what [`step()`] says, until the job is over and recorded.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Publish, Wait};
use hearback_core::port::executor::{Executor, RunEvent, Running, StartRequest};
use hearback_core::port::process::{LaunchAnswer, LaunchSignal, LauncherLink};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{
    Begin, BegunBy, CommandLine, Durability, End, Extra, FORMAT, Fact, JobId, Kill, KilledBy, Leftovers,
    Limits, LostReason, Outcome, Output, Read, Spec, StartError, StartErrorKind, Target,
};

use super::step::{Action, Cause, Ending, Event, Seen, State, step};
use crate::reconcile::SWEEP_WITHIN;
use crate::{Ports, answer, reconcile};

/// Between tries to record an end that the disk would not take.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);

/// Owns one job from the launcher's word to the recorded end.
pub struct Supervisor<'a> {
    ports: &'a Ports,
    executor: &'a dyn Executor,
    wire: &'a mut dyn LauncherLink,
    id: JobId,
    spec: Option<Spec>,
    /// Held until the begin is published, if the launcher is gone.
    launching: Option<Lock>,
    /// Held from before the begin until the end is durable.
    alive: Option<Lock>,
    running: Option<Box<dyn Running>>,
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
        executor: &'a dyn Executor,
        wire: &'a mut dyn LauncherLink,
        meanwhile: &'a dyn Fn(&JobId),
        id: JobId,
    ) -> Self {
        Self {
            ports,
            executor,
            wire,
            id,
            spec: None,
            launching: None,
            alive: None,
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
            Action::FlushSpec => {
                // Without the flush the job is as safe as its machine; not to run it would be worse.
                if self.durability() == Durability::Power
                    && let Err(error) = self.ports.store.flush_spec(&self.id)
                {
                    self.note(&format!("the spec could not be flushed: {error}"));
                }
                None
            }
            Action::Claim => Some(match self.claim() {
                Ok(published) => Event::Claimed(published),
                Err(error) => Event::Unable(error.to_string()),
            }),
            Action::Start => Some(match self.start() {
                Ok(pid) => Event::Started { at: self.ports.clock.awake(), pid },
                Err(error) => Event::StartFailed(error.shortened()),
            }),
            Action::Announce { pid } => {
                let bound_to = self.record_target();
                // Whoever launches may fill the disk next.
                self.make_first_lease_lock();
                self.wire.answer(&LaunchAnswer::Started { pid, bound_to });
                // Somebody may have asked before there was a bell to ring.
                self.hear();
                None
            }
            Action::Ask => {
                self.running.as_mut()?.ask();
                None
            }
            Action::Force => {
                let running = self.running.as_mut()?;
                let survivors = running.force(SWEEP_WITHIN);
                // Force has reaped whatever it ended; that is told at once or not at all.
                let seen = match running.next(Some(Duration::ZERO)) {
                    RunEvent::Exited { exit, usage } => {
                        Some(Seen { exit, usage, at: self.ports.clock.awake() })
                    }
                    _ => None,
                };
                Some(Event::Forced { seen, survivors })
            }
            Action::End(ending) => {
                self.record_end(ending, None);
                self.record_answer();
                None
            }
            Action::Keep => {
                self.keep();
                None
            }
            Action::Drain => {
                self.running.as_mut()?.drain();
                None
            }
            Action::AnswerFailed(error) => {
                self.alive = None;
                self.wire.answer(&LaunchAnswer::FailedToStart { error });
                None
            }
            Action::Refuse(message) => {
                self.alive = None;
                // Nothing ran, and the launcher takes the folder away: whoever settled it now would race with that.
                self.spec = None;
                self.wire.answer(&LaunchAnswer::Refused { message });
                None
            }
            Action::AnswerTaken => {
                self.wire.answer(&LaunchAnswer::Taken);
                None
            }
        }
    }

    fn next_event(&mut self) -> Event {
        let limits = self.limits();
        loop {
            let running = self.running.as_mut().expect("a state that waits has a target");
            let deadline = self.state.deadline(&limits, running.last_output());
            let happened = running.next(deadline);
            let at = self.ports.clock.awake();
            match happened {
                RunEvent::Exited { exit, usage } => {
                    let left = running.members();
                    return Event::Exited { seen: Seen { exit, usage, at }, left };
                }
                RunEvent::Emptied => return Event::Emptied,
                RunEvent::Deadline => return Event::Deadline { at, last_output: running.last_output() },
                RunEvent::OverCap => return Event::OverCap { at },
                RunEvent::Stop => {
                    let cause = Cause::Kill { by: KilledBy::System, reason: None };
                    return Event::Asked { cause, grace: Duration::from_millis(limits.grace_ms), at };
                }
                RunEvent::Bell => self.hear(),
            }
            if let Some(event) = self.events.pop_front() {
                return event;
            }
        }
    }

    /// Reads what was asked since the bell was last rung.
    fn hear(&mut self) {
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

    fn start(&mut self) -> Result<u32, StartError> {
        let spec = self.spec.as_ref().expect("a job that was claimed has a spec");
        let script = match &spec.command {
            // The executor refuses a kind that it does not know.
            CommandLine::Argv(_) | CommandLine::Unknown(_) => None,
            CommandLine::Shell { shell: text, program } => {
                let script = self.executor.script(text, program.as_deref(), &spec.cwd)?;
                let written = self.ports.store.write_script(&self.id, &script);
                Some(written.map_err(|error| StartError {
                    kind: StartErrorKind::Other,
                    message: format!("the text for the shell could not be written: {error}"),
                })?)
            }
        };
        let log = self.ports.store.log_path(&self.id);
        let answer = spec.answer.then(|| self.ports.store.answer_path(&self.id));
        let running = self.executor.start(&StartRequest {
            job: &self.id,
            command: &spec.command,
            cwd: &spec.cwd,
            withhold: &spec.withhold,
            answer: answer.as_deref(),
            log: &log,
            log_tail: &self.ports.store.log_tail_path(&self.id),
            log_cap: spec.limits.log_cap,
            script: script.as_deref(),
            bell: &self.ports.store.bell_path(&self.id),
        })?;
        let pid = running.process().pid;
        self.running = Some(running);
        Ok(pid)
    }

    /// Records who the target is, and tells what it ends with.
    fn record_target(&mut self) -> Option<String> {
        let running = self.running.as_ref()?;
        let detachment = running.detachment();
        let target = Target {
            format: FORMAT,
            process: running.process().clone(),
            at_ms: self.ports.clock.wall(),
            survives: detachment.survives,
            bound_to: detachment.bound_to.clone(),
            extra: Extra::new(),
        };
        // The job runs; who looks for it without this finds it by its mark.
        if let Err(error) = self.ports.store.publish(&self.id, &Fact::Target(target), self.durability()) {
            self.note(&format!("the target could not be recorded: {error}"));
        }
        detachment.bound_to
    }

    /// Made while there is room: on a disk that is full by the end, it shows others that somebody is at the first
    /// attempt.
    fn make_first_lease_lock(&self) {
        if self.spec.as_ref().is_some_and(|spec| !spec.sinks.is_empty()) {
            let lock = self.ports.store.lock(&self.id, JobLock::Lease(1), LockMode::Exclusive, Wait::Try);
            if let Err(error) = lock {
                self.note(&format!("there is no room for a lock of the first attempt: {error}"));
            }
        }
    }

    /// Records the end, however long it takes: the result and the lock are kept until the disk takes it.
    fn record_end(&mut self, ending: Ending, note: Option<String>) {
        // Whatever becomes of the output, how the job ended is recorded.
        let drained = catch_unwind(AssertUnwindSafe(|| self.running.as_mut().map(|running| running.drain())));
        let end = self.end(ending, drained.ok().flatten().unwrap_or_default(), note);
        let mut pause = RETRY_FIRST;
        let mut noted = String::new();
        loop {
            match self.ports.store.publish(&self.id, &Fact::End(Box::new(end.clone())), self.durability()) {
                Ok(Publish::New | Publish::Exists) => return,
                // Somebody removed the folder: there is nothing left to record it in.
                Err(error) if error.is_gone() => return,
                Err(error) => {
                    let line = format!("the end could not be recorded, trying again: {error}");
                    // Said once, and not every few seconds for as long as a disk is full.
                    if line != noted {
                        self.note(&line);
                        noted = line;
                    }
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(RETRY_MOST);
        }
    }

    /// Works the answer out, if there is to be one, before anybody learns that there is nothing more to come. Best
    /// effort: whoever looks at the job after us does it as well.
    fn record_answer(&self) {
        if self.spec.as_ref().is_some_and(|spec| spec.answer)
            && let Err(error) = answer::record(self.ports, &self.id)
        {
            self.note(&format!("the answer could not be recorded: {error}"));
        }
    }

    fn end(&self, ending: Ending, output: Output, note: Option<String>) -> End {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let what_became = match self.limits().leftovers {
            Leftovers::Kill | Leftovers::Unknown => "ended with it",
            Leftovers::Keep => "kept",
        };
        let left_behind = match ending.left_behind {
            0 => None,
            1 => Some(format!("1 process that it left behind was {what_became}")),
            n => Some(format!("{n} processes that it left behind were {what_became}")),
        };
        // An end that nobody asked for.
        let by_itself = matches!(ending.outcome, Outcome::Exited { .. } | Outcome::Signaled { .. });
        let suspicion = self.running.as_ref().filter(|_| by_itself).and_then(|running| running.suspicion());
        let seen: Vec<_> = suspicion.into_iter().chain(left_behind).collect();
        End {
            ran_ms: ending.ran.map(millis),
            usage: ending.usage,
            output,
            survivors: ending.survivors,
            note: note.or_else(|| (!seen.is_empty()).then(|| seen.join("; "))),
            at: Some(self.ports.clock.stamp()),
            ..End::new(ending.outcome, self.ports.clock.wall())
        }
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
            let target = running.process().clone();
            // A target that caused the failure may cause it again; then it is not known to be gone.
            catch_unwind(AssertUnwindSafe(|| running.force(SWEEP_WITHIN))).unwrap_or_else(|_| vec![target])
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

    fn limits(&self) -> Limits {
        self.spec.as_ref().map(|spec| spec.limits).unwrap_or_default()
    }

    fn durability(&self) -> Durability {
        self.spec.as_ref().map(Spec::durability).unwrap_or_default()
    }

    fn note(&self, line: &str) {
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
    use hearback_core::port::record::RecordStore;
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, Script, sample};
    use hearback_core::{Exit, Facts, JobState, LockView, fold};

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
        let store = FakeStore::default();
        let id = sample::id(1);
        let launched = Facts { spec: Read::Present(sample::unowned(&id)), ..Facts::default() };
        store.put(&id, facts.unwrap_or(launched));
        let ports = Ports::new(store.clone(), FakeProcesses::default(), FakeClock::default());
        let executor = FakeExecutor::default();
        *executor.0.lock().unwrap() = script;
        let mut wire = FakeWire(word, vec![]);
        Supervisor::new(&ports, &executor, &mut wire, &|_| {}, id).run();
        (store, executor, wire.1)
    }

    fn exits(code: u32) -> Script {
        let exit = Exit::Exited { code };
        Script { events: [RunEvent::Exited { exit, usage: None }].into(), ..Script::default() }
    }

    #[test]
    fn a_job_is_run_recorded_answered_and_settled() {
        let (store, executor, answers) = supervise(LaunchSignal::Durable, exits(3), None);
        assert_eq!(answers, [LaunchAnswer::Started { pid: 101, bound_to: Some("fake.service".into()) }]);
        assert_eq!(executor.0.lock().unwrap().calls, ["start"]);
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
            assert!(executor.0.lock().unwrap().calls.is_empty());
        }
    }

    #[test]
    fn a_job_whose_launcher_is_gone_is_run_unless_somebody_launches_it_again() {
        let (store, executor, _) = supervise(LaunchSignal::Gone, exits(3), None);
        assert_eq!(executor.0.lock().unwrap().calls, ["start"]);
        assert!(store.facts(&sample::id(1)).end.present().is_some());

        let (store, id) = (FakeStore::default(), sample::id(1));
        store.put(&id, Facts { spec: Read::Present(sample::unowned(&id)), ..Facts::default() });
        let again = store.lock(&id, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
        let late = std::thread::spawn({
            let store = store.clone();
            move || {
                let ports = Ports::new(store, FakeProcesses::default(), FakeClock::default());
                let executor = FakeExecutor::default();
                let mut wire = FakeWire(LaunchSignal::Gone, vec![]);
                Supervisor::new(&ports, &executor, &mut wire, &|_| {}, sample::id(1)).run();
                executor.0.lock().unwrap().calls.len()
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
        assert!(executor.0.lock().unwrap().calls.is_empty());
        assert!(store.facts(&sample::id(1)).begin.is_absent());
    }

    #[test]
    fn a_supervisor_that_fails_ends_the_job_and_invents_no_exit() {
        let script = Script { leftovers: vec![sample::process(101)], force_works: true, ..Script::default() };
        let (store, executor, _) = supervise(LaunchSignal::Durable, script, None);
        assert_eq!(executor.0.lock().unwrap().calls, ["start", "force"]);
        let facts = store.facts(&sample::id(1));
        let end = facts.end.present().unwrap();
        assert_eq!(end.outcome, Outcome::Lost { reason: LostReason::SupervisorDied });
        assert!(end.note.as_ref().unwrap().contains("the script has come to its end"), "{:?}", end.note);
        assert!(!store.notes().is_empty());
    }

    #[test]
    fn a_supervisor_that_fails_after_the_exit_still_tells_it() {
        let script = Script { leftovers: vec![sample::process(102)], force_works: true, ..exits(7) };
        let (store, ..) = supervise(LaunchSignal::Durable, script, None);
        let facts = store.facts(&sample::id(1));
        let JobState::Ended { outcome, .. } = fold(&facts, LockView::FREE).state else { panic!("not ended") };
        assert_eq!(outcome, Outcome::Exited { code: 7 });
    }
}
