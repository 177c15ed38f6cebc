//! What a supervisor records: the target, the end, the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::record::JobLock;
use hearback_core::{End, Extra, FORMAT, Fact, Leftovers, Outcome, Output, Target};
use tracing::{info, warn};

use super::drive::Supervisor;
use super::step::Ending;
use crate::answer;

/// Between tries to record an end that the disk would not take.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// Records who the target is, and tells what it ends with.
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
        // The job runs; who looks for it without this finds it by its mark.
        if let Err(error) = self.ports.store.publish(&self.id, &Fact::Target(target), self.durability()) {
            warn!(job = %self.id, %error, "target not recorded");
        }
        detachment.bound_to
    }

    /// Made while there is room: on a disk that is full by the end, it shows others that somebody is at the first
    /// attempt.
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

    /// Records the end, however long it takes: the result and the lock are kept until the disk takes it.
    pub(super) fn record_end(&mut self, ending: Ending, note: Option<String>) {
        // Whatever becomes of the output, how the job ended is recorded.
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
                // Somebody removed the folder: there is nothing left to record it in.
                Err(error) if error.is_gone() => return,
                Err(error) => {
                    let error = error.to_string();
                    // Said once, and not every few seconds for as long as a disk is full.
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

    /// Works the answer out, if there is to be one, before anybody learns that there is nothing more to come. Best
    /// effort: whoever looks at the job after us does it as well.
    pub(super) fn record_answer(&self) {
        if self.spec.as_ref().is_some_and(|spec| spec.answer)
            && let Err(error) = answer::record(self.ports, &self.id)
        {
            warn!(job = %self.id, %error, "answer not recorded");
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
}
