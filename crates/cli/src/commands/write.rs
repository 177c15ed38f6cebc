//! `hearback write`

use std::io::Read;

use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::{Reply, WrittenDocument};
use hearback::{Capability, Guarded, Hearback, InputError, InputOptions};

use crate::args::WriteArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::table;

pub(crate) fn run(hearback: &Hearback, args: WriteArgs, output: &Output) -> Result<u32, CliError> {
    hearback.permissions().check(Capability::Write)?;
    let scope = super::scope(&args.scope)?;
    let id = hearback.find_to_kill(&args.job, &scope).map_err(|error| CliError::from(error).of(&args.job))?;
    let (newline, is_input) = (if args.newline { "\n" } else { "" }, args.text.as_deref() == Some("-"));
    let text = args.text.filter(|_| !is_input).unwrap_or_default();
    let mut source: Box<dyn Read> = match is_input {
        true => Box::new(std::io::stdin().lock().chain(newline.as_bytes())),
        false => Box::new(std::io::Cursor::new([text.as_bytes(), newline.as_bytes()].concat())),
    };
    let options = InputOptions::default().end(args.eof).within(args.timeout);
    let (bytes, error) = match hearback.write_input(&id, &mut source, options) {
        Ok(bytes) => (bytes, None),
        Err(Guarded::Failed(error)) => (error.bytes, Some(error)),
        Err(error) => return Err(error.into()),
    };
    let ended = args.eof && error.is_none();
    let error = error.map(|error| CliError::from(error).of(&id));
    if output.is_json() {
        let document = WrittenDocument { format: DOCUMENT_FORMAT, id, bytes, ended };
        output.object(&Reply { document, error: error.as_ref().map(CliError::detail) })?;
        return Ok(error.map_or(0, |error| error.exit_code()));
    }
    if let Some(error) = error {
        if bytes > 0 {
            output.warn(&format!("{} of it were written before that", table::bytes(bytes)));
        }
        return Err(error);
    }
    let end = if ended { ", and ended its input" } else { "" };
    output.hint(&format!("wrote {} to job `{id}`{end}", table::bytes(bytes)));
    Ok(0)
}

/// What to try when a job did not get its input.
pub(crate) fn tip(error: &InputError) -> Option<String> {
    use hearback::NoInput::{InputEnded, JobEnded, NotStarted, NotTaken, TimedOut, Unread};
    let id = &error.id;
    Some(match &error.why {
        NotTaken => "launch it again with `launch --stdin`".into(),
        JobEnded(_) => format!("`hearback show {id}` shows how it ended"),
        NotStarted => format!("`hearback show {id}` shows its state; try again when it runs"),
        InputEnded | Unread => format!("`hearback logs {id}` shows what it did with what it has read"),
        TimedOut => {
            format!("`hearback logs {id}` shows what it does; without `--timeout`, `write` waits for it")
        }
        _ => return None,
    })
}
