//! What an owner is told of a job's output.

use hearback_core::message::{Excerpt, clean_line};
use hearback_core::{JobView, NoticeBytes, Observed};

use crate::Ports;

/// Cuts what a job printed to a budget. That it cannot be read keeps nobody from hearing how the job ended: a note
/// says so.
pub fn printed(ports: &Ports, seen: &Observed, budget: NoticeBytes, job: &mut JobView) -> Excerpt {
    match ports.store.excerpt(seen, budget.head(), budget.tail()) {
        Ok(excerpt) => budget.cut(excerpt),
        Err(error) => {
            job.notes.push(format!("what it printed cannot be read: {}", clean_line(&error.to_string())));
            Excerpt { head: Vec::new(), tail: Vec::new(), omitted: job.output.bytes }
        }
    }
}
