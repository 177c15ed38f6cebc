//! Carries out what [`step()`] decides, until the end of the job is recorded.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Wait};
use hearback_core::port::executor::{RunEvent, Running};
use hearback_core::port::process::{LaunchAnswer, LauncherLink};
use hearback_core::port::record::JobLock;
use hearback_core::port::surroundings::{Happened, OutsideEvent, Ready, Surround, Surroundings, next_event};
use hearback_core::{
    CommandLine, Durability, JobId, Kill, KilledBy, Limits, LostReason, Observed, Outcome, Place, Read, Spec,
};
use tracing::{debug, error, info, warn};

use super::ending::{Cause, Ending, MainExit};
use super::step::{Action, Event, State, step};
use crate::reconcile::SWEEP_WITHIN;
use crate::{Ports, reconcile};

/// What a supervisor leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a job that is left behind may have a follow-up"]
pub enum Supervised {
    /// A job, whose follow-up may be pending.
    Job,
    /// Nothing: no job was recorded, or its launcher removes it.
    Nothing,
}

/// Owns one job from the launcher's signal to the recorded end.
pub struct Supervisor<'a> {
    pub(super) ports: &'a Ports,
    pub(super) surround: &'a dyn Surround,
    pub(super) wire: &'a mut dyn LauncherLink,
    pub(super) id: JobId,
    pub(super) spec: Option<Spec>,
    /// What runs, until it does, if the launcher handed it over.
    pub(super) command: Option<CommandLine>,
    /// Held until the begin is published, if the launcher has died.
    pub(super) launching: Option<Lock>,
    /// Held from before the begin until the end is durable.
    pub(super) alive: Option<Lock>,
    /// What surrounds the target: made before it starts, dropped when its end is recorded.
    pub(super) around: Option<Box<dyn Surroundings>>,
    pub(super) running: Option<Box<dyn Running>>,
    /// Held while leftover processes are kept.
    keeper: Option<Lock>,
    /// Delivers the follow-up while this process still takes the output of leftover processes.
    meanwhile: &'a dyn Fn(&JobId),
    /// The number of the last kill request that was read.
    last_request: u32,
    /// Events that no step has decided on yet.
    pub(super) events: VecDeque<Event>,
    state: State,
}

impl<'a> Supervisor<'a> {
    /// A supervisor that has not heard from its launcher yet.
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
            command: None,
            launching: None,
            alive: None,
            around: None,
            running: None,
            keeper: None,
            meanwhile,
            last_request: 0,
            events: VecDeque::new(),
            state: State::Waiting,
        }
    }

    /// Runs the job. Returns when its end is recorded, or when another process has claimed it.
    ///
    /// A failure of the supervisor itself also ends the job and is recorded as such. An exit that was seen is still
    /// recorded; an exit that was not seen is never invented.
    pub fn run(mut self) -> Supervised {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.drive())) {
            self.fail(&panic_text(&*panic));
        }
        self.running = None;
        self.around = None;
        self.keeper = None;
        // Last: from here on, other processes conclude that this supervisor records nothing more.
        self.alive = None;
        if self.spec.is_none() {
            return Supervised::Nothing;
        }
        settle(self.ports, &self.id);
        Supervised::Job
    }

    fn drive(&mut self) {
        let mut event = self.first_event();
        loop {
            let limits = self.limits();
            let (state, actions) = step(&limits, std::mem::replace(&mut self.state, State::Done), event);
            self.state = state;
            let followed_by: Vec<_> = actions.into_iter().filter_map(|action| self.act(action)).collect();
            self.events.extend(followed_by);
            event = match (self.events.pop_front(), &self.state) {
                (Some(event), _) => event,
                (None, State::Done) => return,
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
                    return Some(Event::StartFailed(self.recorded_error(error).shortened()));
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
                self.remove_script();
            }
            Action::Keep => self.keep(),
            Action::Drain => drop(self.drain()),
            Action::AnswerFailed(error) => self.answer_at_the_end(&LaunchAnswer::FailedToStart { error }),
            Action::AnswerKilled => self.answer_at_the_end(&LaunchAnswer::Killed),
            Action::Refuse(message) => {
                // Nothing ran, and the launcher removes the folder. Settling the job would race with that.
                self.spec = None;
                self.answer_at_the_end(&LaunchAnswer::Refused { message });
            }
            Action::AnswerTaken => self.wire.answer(&LaunchAnswer::Taken),
        }
        None
    }

    /// Waits for the next event.
    fn next_event(&mut self) -> Event {
        let limits = self.limits();
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            let around = self.around.as_mut().expect("a state that waits has surroundings");
            let deadline = self.state.deadline(&limits, around.last_output());
            match next_event(&mut **around, self.running.as_deref_mut(), deadline) {
                Happened::Target(event) => return self.event_of_target(event),
                Happened::Outside(event) => self.queue(event),
                Happened::Deadline => {
                    let last_output = around.last_output();
                    return Event::Deadline { at: self.ports.clock.awake(), last_output };
                }
            }
        }
    }

    pub(super) fn event_of_target(&mut self, event: RunEvent) -> Event {
        let at = self.ports.clock.awake();
        match event {
            RunEvent::Started => Event::Started { at },
            RunEvent::Emptied => Event::Emptied,
            RunEvent::Exited { exit, usage } => {
                debug!(job = %self.id, %exit, "target exited");
                let left = self.running.as_mut().map(|running| running.members()).unwrap_or_default();
                Event::Exited { main: MainExit { exit, usage, at }, left }
            }
        }
    }

    /// Queues what an event around the target means for the job.
    pub(super) fn queue(&mut self, event: OutsideEvent) {
        let at = self.ports.clock.awake();
        debug!(job = %self.id, ?event, "event around the target");
        match event {
            OutsideEvent::OverCap => self.events.push_back(Event::OverCap { at }),
            OutsideEvent::Stop => {
                let cause = Cause::Kill { by: KilledBy::System, reason: None };
                let grace = Duration::from_millis(self.limits().grace_ms);
                self.events.push_back(Event::StopRequested { cause, grace, at });
            }
            OutsideEvent::Bell => {
                self.read_requests();
                if let Some(running) = &mut self.running {
                    running.check_input();
                }
            }
        }
    }

    /// Reads the kill requests that are new.
    pub(super) fn read_requests(&mut self) {
        let kills = match self.ports.store.kills(&self.id, self.last_request) {
            Ok(kills) => kills,
            Err(error) => return warn!(job = %self.id, %error, "kill requests cannot be read"),
        };
        let at = self.ports.clock.awake();
        for (n, kill) in kills {
            self.last_request = n;
            if let Read::Present(Kill { by, reason, grace_ms, .. }) = kill {
                let grace = Duration::from_millis(grace_ms);
                info!(job = %self.id, %by, grace_ms, "kill requested");
                self.events.push_back(Event::StopRequested { cause: Cause::Kill { by, reason }, grace, at });
            }
        }
    }

    /// The end is recorded. From here on other processes may settle the job, but not move it.
    fn keep(&mut self) {
        self.keeper = self.ports.share(&self.id, JobLock::Keeper).ok().flatten();
        self.alive = None;
        (self.meanwhile)(&self.id);
    }

    fn kill(&mut self) -> Option<Event> {
        let running = self.running.as_mut()?;
        let survivors = running.kill(SWEEP_WITHIN);
        info!(job = %self.id, survivors = survivors.len(), "target killed");
        // The kill has reaped the main process: its exit is reported now or never.
        let main = match running.poll(Ready::NONE) {
            Some(RunEvent::Exited { exit, usage }) => {
                Some(MainExit { exit, usage, at: self.ports.clock.awake() })
            }
            _ => None,
        };
        Some(Event::Killed { main, survivors })
    }

    /// The supervisor itself has failed: ends the job and records why.
    fn fail(&mut self, why: &str) {
        let why = format!("the supervisor failed: {why}");
        error!(job = %self.id, error = %why, "supervisor failed");
        if self.alive.is_none() {
            self.wire.answer(&LaunchAnswer::Refused { message: why });
            return;
        }
        let survivors = self.running.as_mut().map_or_else(Vec::new, |running| {
            let target = running.handle().process();
            // A target that caused the failure may cause it again. Then it is not known to have ended.
            let killed = catch_unwind(AssertUnwindSafe(|| running.kill(SWEEP_WITHIN)));
            killed.unwrap_or_else(|_| target.into_iter().collect())
        });
        let unseen = || Ending::of(Outcome::Lost { reason: LostReason::SupervisorDied });
        let ending = self.state.known_ending().unwrap_or_else(unseen);
        self.record_end(Ending { survivors, ..ending }, Some(why));
        self.record_answer();
    }

    pub(super) fn limits(&self) -> Limits {
        self.spec.as_ref().map(|spec| spec.limits).unwrap_or_default()
    }

    pub(super) fn durability(&self) -> Durability {
        self.spec.as_ref().map(Spec::durability).unwrap_or_default()
    }
}

/// Settles a job that has ended and moves it to history, so that no other process has to. For a supervisor that has
/// delivered the follow-up: a launcher that is stopped may hold its lock for long, and keeps only the folder in place.
pub fn retire(ports: &Ports, id: &JobId) {
    if !matches!(ports.store.observe(id), Ok(Some(Observed { place: Place::Open, .. }))) {
        return;
    }
    // A folder cannot move while the launcher holds its lock, which it does until it has its answer.
    drop(ports.store.lock(id, JobLock::Launch, LockMode::Shared, Wait::Block));
    settle(ports, id);
}

fn settle(ports: &Ports, id: &JobId) {
    // Best effort: every later command completes what is left undone.
    if let Err(error) = reconcile::job(ports, id) {
        warn!(job = %id, %error, "job not settled");
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

impl std::fmt::Debug for Supervisor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
