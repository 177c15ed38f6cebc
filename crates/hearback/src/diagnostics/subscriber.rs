//! The subscriber of hearback's own processes: it formats an event and appends it, and keeps nothing in memory.
//!
//! A supervisor has a budget of 200 KiB. So there is no registry of spans, no buffer and no thread here.

use std::cell::Cell;
use std::fmt;

use hearback_core::JobId;
use hearback_core::port::clock::Clock;
use hearback_core::port::record::StoreError;
use hearback_platform::Native;
use hearback_store::Store;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber, dispatcher};

use super::filter::Filter;
use super::line::{Form, line};
use crate::Hearback;

/// A place where events are written, each as one line.
pub struct LogOutput {
    filter: Filter,
    form: Form,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

impl LogOutput {
    /// Lets `write` have a line, without its end, for each event that the filter allows.
    pub fn new(filter: Filter, form: Form, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { filter, form, write: Box::new(write) }
    }

    /// Writes to `monitor.log` of this store, whose size is bounded.
    pub fn monitor_log(hearback: &Hearback, filter: Filter) -> Self {
        Self::to_monitor_log(hearback.store.clone(), filter)
    }

    pub(crate) fn to_monitor_log(store: Store<Native>, filter: Filter) -> Self {
        Self::new(filter, Form::Full, move |line| forgive(store.append_monitor_log(line)))
    }

    /// Writes to `supervisor.log` of a job, whose size is bounded.
    pub(crate) fn to_supervisor_log(store: Store<Native>, id: JobId, filter: Filter) -> Self {
        Self::new(filter, Form::Full, move |line| forgive(store.append_supervisor_log(&id, line)))
    }
}

/// A log that cannot be written, on a full disk or in a folder that was removed, has nowhere to say so.
fn forgive(_written: Result<(), StoreError>) {}

impl fmt::Debug for LogOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogOutput").field("filter", &self.filter).field("form", &self.form).finish()
    }
}

/// Whether the outputs are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// Events of this process go to them.
    Yes,
    /// This process has a subscriber of its own, which stays.
    AnotherIsThere,
}

/// Sends the events of this process to these outputs, from now until it ends.
///
/// hearback calls this itself only in a process that was started to supervise a job or to hand over messages.
pub fn install(outputs: Vec<LogOutput>) -> Installed {
    match dispatcher::set_global_default(Dispatch::new(Lines { outputs })) {
        Ok(()) => Installed::Yes,
        Err(_) => Installed::AnotherIsThere,
    }
}

/// Installs the log of a process that hearback started. The environment may name its filter.
pub(crate) fn install_own(usual: LevelFilter, output: impl FnOnce(Filter) -> LogOutput) {
    let (filter, invalid) = match Filter::from_environment() {
        Ok(filter) => (filter.unwrap_or(Filter::level(usual)), None),
        Err(error) => (Filter::level(usual), Some(error)),
    };
    let installed = install(vec![output(filter)]);
    if let (Installed::Yes, Some(error)) = (installed, invalid) {
        tracing::warn!(%error, variable = super::LOG_VARIABLE, "log filter ignored");
    }
}

/// Writes events as lines. Spans have no meaning to it.
struct Lines {
    outputs: Vec<LogOutput>,
}

thread_local! {
    /// Whether this thread is writing a line. What it does for that is not worth an event.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let allows = |output: &LogOutput| output.filter.allows(metadata.target(), metadata.level());
        metadata.is_event() && self.outputs.iter().any(allows)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.outputs.iter().map(|output| output.filter.most()).max()
    }

    fn event(&self, event: &Event<'_>) {
        // A thread that ends has no such variable any more.
        if WRITES.try_with(|writes| writes.replace(true)).unwrap_or(true) {
            return;
        }
        let (metadata, now) = (event.metadata(), Native::default().wall());
        for output in &self.outputs {
            if output.filter.allows(metadata.target(), metadata.level()) {
                (output.write)(&line(event, now, output.form));
            }
        }
        WRITES.set(false);
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Gives each event to a function.
    pub(in crate::diagnostics) struct Capture<F>(pub(in crate::diagnostics) F);

    impl<F: Fn(&Event<'_>) + 'static> Subscriber for Capture<F> {
        fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
            true
        }

        fn event(&self, event: &Event<'_>) {
            (self.0)(event);
        }

        fn new_span(&self, _span: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _span: &Id, _values: &Record<'_>) {}

        fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

        fn enter(&self, _span: &Id) {}

        fn exit(&self, _span: &Id) {}
    }

    fn output(filter: &str, lines: &Arc<Mutex<Vec<String>>>) -> LogOutput {
        let lines = Arc::clone(lines);
        LogOutput::new(Filter::parse(filter).unwrap(), Form::Brief, move |line| {
            // What a writer says itself leads nowhere.
            tracing::error!("writing");
            lines.lock().unwrap().push(line.to_owned());
        })
    }

    #[test]
    fn each_output_has_its_own_filter_and_a_writer_does_not_hear_itself() {
        let (loud, calm) = <(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<String>>>)>::default();
        let lines = Lines { outputs: vec![output("debug", &loud), output("warn,elsewhere=trace", &calm)] };
        assert_eq!(lines.max_level_hint(), Some(LevelFilter::TRACE));
        tracing::subscriber::with_default(lines, || {
            tracing::debug!(n = 1, "probed");
            tracing::warn!("worked around");
            tracing::trace!("detail");
        });
        assert_eq!(*loud.lock().unwrap(), ["debug: probed n=1", "warning: worked around"]);
        assert_eq!(*calm.lock().unwrap(), ["warning: worked around"]);
    }
}
