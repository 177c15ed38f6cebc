//! How a job begins: the launcher's signal, the claim, the surroundings of the target, the target.

use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::executor::StartRequest;
use hearback_core::port::process::{LaunchAnswer, LaunchSignal};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::port::surroundings::{OutsideEvent, Ready, SurroundRequest};
use hearback_core::{Begin, BegunBy, CommandLine, Durability, Fact, Read, StartError, StartErrorKind};
use tracing::{debug, info, warn};

use super::drive::Supervisor;
use super::step::Event;

impl Supervisor<'_> {
    /// Gets ready while the launcher flushes the spec, then waits for its signal and reads the spec.
    pub(super) fn first_event(&mut self) -> Event {
        let reserved = self.ports.store.reserve(&self.id);
        let signal = self.wire.word();
        debug!(job = %self.id, ?signal, "signal of the launcher");
        if signal == LaunchSignal::Failed {
            return Event::LaunchSignal(signal);
        }
        if let Err(error) = reserved {
            return Event::Unable(error.to_string());
        }
        if signal == LaunchSignal::Gone {
            match self.is_unclaimed() {
                Ok(true) => {}
                Ok(false) => return Event::LaunchSignal(LaunchSignal::Failed),
                Err(error) => return Event::Unable(error.to_string()),
            }
        }
        match self.ports.store.spec(&self.id) {
            Ok(Read::Present(spec)) => {
                self.command = self.wire.command();
                if spec.command_is_masked && self.command.is_none() {
                    return Event::Unable("its launcher did not hand over the command".into());
                }
                self.spec = Some(spec);
                Event::LaunchSignal(signal)
            }
            // The launcher died before it recorded what to run: there is no job.
            Ok(Read::Absent) => Event::LaunchSignal(LaunchSignal::Failed),
            Ok(_) => Event::Unable("the spec cannot be read back".into()),
            Err(error) => Event::Unable(error.to_string()),
        }
    }

    /// Whether no process has begun a job whose launcher has died.
    ///
    /// Another launcher may be launching it again under its key, with a supervisor of its own. The process that holds
    /// the launch lock first decides; the other one finds a begin.
    fn is_unclaimed(&mut self) -> Result<bool, StoreError> {
        self.launching = self.ports.store.lock(&self.id, JobLock::Launch, LockMode::Shared, Wait::Block)?;
        Ok(self.ports.store.observe(&self.id)?.is_some_and(|seen| seen.facts.begin.is_absent()))
    }

    pub(super) fn claim(&mut self) -> Result<Publish, StoreError> {
        // Blocking: if many processes probe the lock at this moment, a try could fail.
        self.alive = self.ports.store.lock(&self.id, JobLock::Alive, LockMode::Exclusive, Wait::Block)?;
        let me = self.ports.processes.me()?;
        let begin = Begin::new(BegunBy::Supervisor(me), self.ports.clock.wall());
        let published = self.ports.store.publish(&self.id, &Fact::Begin(begin), self.durability());
        self.launching = None;
        published
    }

    /// Makes the surroundings of the target, and reads the kill requests that came before there was a bell.
    pub(super) fn surround(&mut self) -> Event {
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
                warn!(job = %self.id, %error, "log or bell cannot be made");
                let message = format!("cannot prepare to run: {error}");
                return Event::StartFailed(StartError { kind: StartErrorKind::Other, message }.shortened());
            }
        };
        if let Err(error) = store.share_log(&self.id) {
            debug!(job = %self.id, %error, "the path of the log will change when the job is settled");
        }
        let stop = around.take_event().filter(|event| *event == OutsideEvent::Stop);
        self.around = Some(around);
        self.read_requests();
        if let Some(stop) = stop {
            self.queue(stop);
        }
        Event::Surrounded
    }

    pub(super) fn start(&mut self) -> Result<(), StartError> {
        let spec = self.spec.as_ref().expect("a job that was claimed has a spec");
        // Not kept longer than it is needed.
        let handed_over = self.command.take();
        let command = handed_over.as_ref().unwrap_or(&spec.command);
        let around = self.around.as_ref().expect("a target has surroundings");
        let executor = self.ports.executors.find(&spec.executor)?;
        let script = match command {
            // The executor refuses a kind of command that it does not know.
            CommandLine::Argv(_) | CommandLine::Unknown(_) => None,
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
        let input = spec.takes_input.then(|| self.ports.store.input_path(&self.id));
        self.running = Some(executor.start(&StartRequest {
            job: &self.id,
            command,
            cwd: &spec.cwd,
            withhold: &spec.withhold,
            answer: answer.as_deref(),
            script: script.as_deref(),
            input: input.as_deref(),
            output: &around.log(),
            samples: &self.ports.store.samples_path(&self.id),
        })?);
        Ok(())
    }

    /// Queues that the executor has accepted the target, and that it runs, if it runs at once.
    pub(super) fn accept(&mut self) {
        self.events.push_back(Event::Accepted);
        if let Some(event) = self.running.as_mut().and_then(|running| running.poll(Ready::NONE)) {
            let event = self.event_of_target(event);
            self.events.push_back(event);
        }
    }

    /// Records the target, and answers that it was started.
    pub(super) fn announce(&mut self) {
        let bound_to = self.record_target();
        // Now, because another process may fill the disk later.
        self.make_first_lease_lock();
        let pid = self.running.as_ref().and_then(|running| running.handle().pid());
        info!(job = %self.id, pid, "target started");
        self.wire.answer(&LaunchAnswer::Started { pid, bound_to });
    }

    pub(super) fn flush_spec(&self) {
        // Without the flush, a power cut may lose the spec. Not to run the job would be worse.
        if self.durability() == Durability::Power
            && let Err(error) = self.ports.store.flush_spec(&self.id)
        {
            warn!(job = %self.id, %error, "spec not flushed");
        }
    }

    /// Answers the launcher when nothing runs and nothing will.
    pub(super) fn answer_at_the_end(&mut self, answer: &LaunchAnswer) {
        // The launcher may move or remove the folder as soon as it has the answer, so no file in it stays open.
        self.around = None;
        self.alive = None;
        self.wire.answer(answer);
    }
}
