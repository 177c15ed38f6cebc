//! What a supervisor records: the target, the end, the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hearback_core::credentials::mask_credentials;
use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::record::JobLock;
use hearback_core::{
    End, Extra, FORMAT, Fact, Leftovers, LockView, Observed, Outcome, Output, StartError, Target,
};
use tracing::{info, warn};

use super::drive::Supervisor;
use super::ending::Ending;
use crate::answer;

/// The pause between attempts to record an end on a disk that is full.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// Records the identity of the target, and returns what it is bound to.
    pub(super) fn record_target(&mut self) -> Option<String> {
        let running = self.running.as_ref()?;
        let detachment = running.detachment();
        let target = Target {
            format: FORMAT,
            handle: running.handle().clone(),
            at_ms: self.ports.clock.wall(),
            survives: detachment.survives,
            bound_to: detachment.bound_to.clone(),
            extra: Extra::new(),
        };
        // Not fatal: a process that looks for the target without this fact finds it by its mark.
        if let Err(error) = self.ports.store.publish(&self.id, &Fact::Target(target), self.durability()) {
            warn!(job = %self.id, %error, "target not recorded");
        }
        detachment.bound_to
    }

    /// Makes the lock of the first attempt while there is room. If the disk is full when the job ends, the lock alone
    /// shows other processes that the first attempt is being made.
    pub(super) fn make_first_lease_lock(&self) {
        if self.spec.as_ref().is_some_and(|spec| !spec.sinks.is_empty()) {
            let lock = self.ports.store.lock(&self.id, JobLock::Lease(1), LockMode::Exclusive, Wait::Try);
            if let Err(error) = lock {
                warn!(job = %self.id, %error, "no room for the lock of the first attempt");
            }
        }
    }

    /// Takes the output so far, and reports what the log holds.
    pub(super) fn drain(&mut self) -> Output {
        if let Some(running) = &mut self.running {
            running.drain();
        }
        self.around.as_mut().map(|around| around.finish_log()).unwrap_or_default()
    }

    /// Records the end, however long it takes. The supervisor keeps the result and the lock until the disk takes it.
    pub(super) fn record_end(&mut self, ending: Ending, note: Option<String>) {
        // The end is recorded even if taking the output fails.
        let output = catch_unwind(AssertUnwindSafe(|| self.drain())).unwrap_or_default();
        let end = self.end(ending, output, note);
        let mut pause = RETRY_FIRST;
        let mut noted = String::new();
        loop {
            match self.ports.store.publish(&self.id, &Fact::End(Box::new(end.clone())), self.durability()) {
                Ok(published @ (Publish::New | Publish::Exists)) => {
                    let ours = published == Publish::New;
                    info!(job = %self.id, exit_code = end.outcome.exit_code(), ours, "end recorded");
                    return;
                }
                // Another process removed the folder: there is no place left to record the end in.
                Err(error) if error.is_gone() => return,
                Err(error) => {
                    let error = error.to_string();
                    // Logged once, not every few seconds while the disk is full.
                    if error != noted {
                        warn!(job = %self.id, error, "end not recorded, trying again");
                        noted = error;
                    }
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(RETRY_MOST);
        }
    }

    /// Records the answer of a prompt job before the alive lock is released: while the lock is held, other processes
    /// know that more may come. Best effort: any process that reconciles the job later records a missing answer.
    pub(super) fn record_answer(&self) {
        if !self.spec.as_ref().is_some_and(|spec| spec.answer) {
            return;
        }
        // The lock that this process holds itself proves nothing.
        let recorded = self.ports.store.observe(&self.id).and_then(|seen| match seen {
            Some(seen) => answer::record_seen(self.ports, &Observed { locks: LockView::FREE, ..seen }),
            None => Ok(Publish::Exists),
        });
        if let Err(error) = recorded {
            warn!(job = %self.id, %error, "answer not recorded");
        }
    }

    /// Removes the text for the shell, if it holds secrets that the spec does not. Best effort: it goes with the
    /// settlement at the latest.
    pub(super) fn remove_script(&self) {
        if self.spec.as_ref().is_some_and(|spec| spec.command_is_masked)
            && let Err(error) = self.ports.store.remove_script(&self.id)
        {
            warn!(job = %self.id, %error, "script not removed");
        }
    }

    /// Why the target was not started, as it is recorded. The message may quote the command.
    pub(super) fn recorded_error(&self, error: StartError) -> StartError {
        if self.spec.as_ref().is_some_and(|spec| spec.keeps_credentials) {
            return error;
        }
        StartError { message: mask_credentials(&error.message).into_owned(), ..error }
    }

    fn end(&self, ending: Ending, output: Output, note: Option<String>) -> End {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let what_was_done = match self.limits().leftovers {
            Leftovers::Kill | Leftovers::Unknown => "ended with it",
            Leftovers::Keep => "kept",
        };
        let left_behind = match ending.left_behind {
            0 => None,
            1 => Some(format!("1 process that it left behind was {what_was_done}")),
            n => Some(format!("{n} processes that it left behind were {what_was_done}")),
        };
        // Neither a limit nor a request caused this end.
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
}
