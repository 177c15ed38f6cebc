//! Composing a follow-up: the same for a sink and for an owner that fetches it.

use hearback_core::message::{Excerpt, clean_line};
use hearback_core::port::sink::Delivery;
use hearback_core::{Facts, JobView, NoticeBytes, Observed, Stamp};

use super::due::{Retry, age_of_end};
use crate::{Ports, answer};

/// Composes the follow-up of a job as it is now; none if there is no job.
pub fn compose(ports: &Ports, seen: &Observed, retry: &Retry, notice: NoticeBytes) -> Option<Delivery> {
    let log = ports.processes.path_text(&ports.store.shared_log_path(&seen.id));
    let mut job = JobView::new(seen, &ports.here, log)?;
    answer::complete(ports, seen, &mut job);
    let output = excerpt(ports, seen, notice, &mut job);
    let late = is_late(&seen.facts, &ports.clock.stamp(), retry);
    let depth = seen.facts.spec.present().map_or(0, |spec| spec.depth) + 1;
    // On a full disk the first attempt has no lease that could be counted.
    Some(Delivery::new(job, &output, seen.attempts().max(1), late, depth))
}

/// So much of the log is read at least, at either end: a progress bar is much longer there than in the follow-up.
const WINDOW: u64 = 64 * 1024;

/// Cuts a job's output to a budget. If the output cannot be read, a note says so, and the follow-up is still sent.
fn excerpt(ports: &Ports, seen: &Observed, budget: NoticeBytes, job: &mut JobView) -> Excerpt {
    let window = |part: u64| if part == 0 { 0 } else { part.max(WINDOW) };
    match ports.store.excerpt(seen, window(budget.head()), window(budget.tail())) {
        Ok(excerpt) => budget.cut(excerpt),
        Err(error) => {
            job.notes.push(format!("its output cannot be read: {}", clean_line(&error.to_string())));
            Excerpt { head: Vec::new(), tail: Vec::new(), omitted: job.output.bytes }
        }
    }
}

fn is_late(facts: &Facts, now: &Stamp, retry: &Retry) -> bool {
    age_of_end(facts, now).is_some_and(|age| age >= retry.late_after)
}
