//! Where the events of this command go: standard error, and for a monitor its log as well.

use std::io::{self, IsTerminal};

use hearback::Hearback;
use hearback::diagnostics::{self, Filter, Form, LevelFilter, LogOutput};

use crate::args::MonitorRunArgs;
use crate::output::Output;

/// What decides about the events of one command.
pub(crate) struct Log<'a> {
    /// How often `-v` was given.
    verbose: u8,
    /// The filter of the environment.
    asked: Option<Filter>,
    output: &'a Output,
}

impl<'a> Log<'a> {
    /// Reads the filter of the environment. One that is not valid is reported and ignored.
    pub(crate) fn new(verbose: u8, output: &'a Output) -> Self {
        let asked = Filter::from_environment().unwrap_or_else(|error| {
            output.warn(&format!("{} is ignored: {error}", diagnostics::LOG_VARIABLE));
            None
        });
        Self { verbose, asked, output }
    }

    /// Shows the events of a command, if its caller wants to see them.
    pub(crate) fn show(&self) {
        if let Some(filter) = self.verbosity().or_else(|| self.asked.clone()) {
            diagnostics::install(vec![self.standard_error(filter, Form::Brief)]);
        }
    }

    /// Logs the events of a monitor, and shows them where they are read: on a terminal, or in a service's journal.
    pub(crate) fn log_monitor(&self, hearback: &Hearback, args: &MonitorRunArgs) {
        let is_read = args.service || io::stderr().is_terminal();
        let usual = || is_read.then_some(Filter::level(LevelFilter::INFO));
        let shown = self.verbosity().or_else(|| {
            let unasked = || self.asked.clone().or_else(usual);
            if args.quiet { None } else { unasked() }
        });
        // A journal knows the time, and so does a caller that waits for the end.
        let form = if args.service || args.once { Form::Brief } else { Form::Timed };
        let logged = self.asked.clone().unwrap_or(Filter::level(LevelFilter::INFO));
        let mut outputs = vec![LogOutput::monitor_log(hearback, logged)];
        outputs.extend(shown.map(|filter| self.standard_error(filter, form)));
        diagnostics::install(outputs);
    }

    /// What `-v` asks for.
    fn verbosity(&self) -> Option<Filter> {
        let level = match self.verbose {
            0 => return None,
            1 => LevelFilter::INFO,
            2 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        Some(Filter::level(level))
    }

    fn standard_error(&self, filter: Filter, form: Form) -> LogOutput {
        let output = *self.output;
        LogOutput::new(filter, form, move |line| output.say(line))
    }
}
