//! The end of the output of the selected job, as it is shown.

use hearback::core::JobId;
use hearback::core::message::{Cleaner, Returns};
use hearback::{Hearback, Job};

/// How much of the output is shown; `logs` prints all of it.
const TAIL_BYTES: u64 = 32 * 1024;

/// What was read last.
#[derive(Debug, Default)]
pub(crate) struct ShownOutput {
    /// Of which job, and how much output and which end it had then.
    of: Option<(JobId, u64, bool)>,
    /// Harmless, and without secrets.
    pub(crate) text: String,
    /// How much output comes before it.
    pub(crate) omitted: u64,
}

impl ShownOutput {
    /// Reads the output again if there is more of it, or if it is another job's.
    pub(crate) fn read(&mut self, hearback: &Hearback, job: &Job, colours: bool) {
        let size = match hearback.log(job) {
            Ok(Some(mut log)) => log.size().unwrap_or_default(),
            _ => 0,
        };
        let of = Some((job.view.id.clone(), size, job.view.state.has_ended()));
        if self.of == of {
            return;
        }
        let mut text = String::new();
        match hearback.excerpt(job, 0, TAIL_BYTES) {
            Ok(excerpt) => {
                let mut cleaner = Cleaner::to_terminal(Returns::Replace, colours);
                cleaner.push(if excerpt.tail.is_empty() { &excerpt.head } else { &excerpt.tail }, &mut text);
                cleaner.finish(&mut text);
                let secrets = hearback.secrets();
                self.omitted = excerpt.omitted;
                self.text = match excerpt.omitted {
                    0 => secrets.masked(&text),
                    _ => secrets.masked_after_cut(&text),
                };
                self.of = of;
            }
            Err(error) => {
                *self = Self { of: None, text: format!("the output cannot be read: {error}"), omitted: 0 };
            }
        }
    }
}
