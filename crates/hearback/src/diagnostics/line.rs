//! An event as one line of text: when, how bad, where from, what, and its fields.

use std::fmt::{self, Write};

use hearback_core::Timestamp;
use hearback_core::message::clean_line;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// More than this is not shown of a field: an error may quote anything.
const VALUE_BYTES: usize = 2048;

/// What a line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For a file: the time, the level and the module.
    Full,
    /// For a terminal that is watched for long: the time and the level.
    Timed,
    /// For the output of one command, or a journal, which knows the time: the level.
    Brief,
}

/// Writes an event as one line, without its end.
pub(super) fn line(event: &Event<'_>, now: Timestamp, form: Form) -> String {
    let mut line = String::new();
    let (level, target) = (event.metadata().level(), event.metadata().target());
    let begun = match form {
        Form::Full => write!(line, "{now} {level:>5} {target}:"),
        Form::Timed => write!(line, "{now} {level:>5}"),
        Form::Brief => write!(line, "{}:", word(level)),
    };
    debug_assert!(begun.is_ok(), "a string takes everything");
    let mut fields = Fields { message: String::new(), others: String::new() };
    event.record(&mut fields);
    for part in [&fields.message, &fields.others] {
        if !part.is_empty() {
            line.push(' ');
            line.push_str(part);
        }
    }
    line
}

fn word(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// The message, and the other fields as `name=value`.
struct Fields {
    message: String,
    others: String,
}

impl Fields {
    fn add(&mut self, field: &Field, value: &str) {
        // Errors quote stored text and answers of other programs, which may hold control characters and line ends.
        let mut value = clean_line(value);
        value.truncate(value.floor_char_boundary(VALUE_BYTES));
        if field.name() == "message" {
            self.message = value;
            return;
        }
        let is_bare = !value.is_empty() && !value.contains([' ', '"', '=']);
        let gap = if self.others.is_empty() { "" } else { " " };
        let name = field.name();
        let added = match is_bare {
            true => write!(self.others, "{gap}{name}={value}"),
            false => write!(self.others, "{gap}{name}={value:?}"),
        };
        debug_assert!(added.is_ok(), "a string takes everything");
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::diagnostics::subscriber::tests::Capture;

    /// The lines that are written while `work` runs.
    fn lines(form: Form, work: impl FnOnce()) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let capture = Capture(move |event: &Event<'_>| {
            seen.lock().unwrap().push(line(event, Timestamp::from_millis(0), form));
        });
        tracing::subscriber::with_default(capture, work);
        std::mem::take(&mut *lines.lock().unwrap())
    }

    #[test]
    fn a_line_has_time_level_module_message_and_fields() {
        let lines = lines(Form::Full, || {
            tracing::info!(job = %"abc", pid = 7, "target started");
            tracing::warn!(error = %"no such file", empty = "", none = None::<u32>, "not recorded");
        });
        let target = module_path!();
        assert_eq!(
            lines,
            [
                format!("1970-01-01T00:00:00.000Z  INFO {target}: target started job=abc pid=7"),
                format!(
                    "1970-01-01T00:00:00.000Z  WARN {target}: not recorded error=\"no such file\" empty=\"\""
                ),
            ]
        );
    }

    #[test]
    fn other_forms_begin_with_less() {
        let event = || tracing::error!(n = 1, "given up");
        assert_eq!(lines(Form::Brief, event), ["error: given up n=1"]);
        assert_eq!(lines(Form::Timed, event), ["1970-01-01T00:00:00.000Z ERROR given up n=1"]);
    }

    #[test]
    fn a_value_stays_on_its_line_and_within_bounds() {
        let lines = lines(Form::Brief, || {
            tracing::info!(error = %"two\nlines \u{1b}[31mred", long = %"x".repeat(10_000), "said \"so\"");
        });
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("info: said \"so\" error=\"two"), "{}", lines[0]);
        assert!(!lines[0].contains(['\n', '\u{1b}']) && lines[0].len() < 3 * VALUE_BYTES, "{}", lines[0]);
    }
}
