//! `hearback logs`

use std::io::{Read, Seek, SeekFrom};

use hearback_core::port::disk::{ReadError, ReadSeek};
use hearback_core::{JobId, OutputView};
use hearback_store::Lines;

use crate::cli::args::LogsArgs;
use crate::cli::documents::LogDocument;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::table;
use crate::{FindError, Hearback};
use hearback_core::DOCUMENT_FORMAT;

/// The most that one JSON document holds; the rest is read on from its `end`.
const DOCUMENT_MAX: u64 = 1024 * 1024;
const BLOCK: usize = 64 * 1024;

pub(crate) fn run(hearback: &Hearback, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let id = hearback.find(&args.job, super::scope(&args.scope)?.as_ref())?;
    let job = hearback.job(&id)?.ok_or_else(|| FindError::NotFound(args.job.clone()))?;
    let printed = &job.view.output;
    let failed = |source: ReadError| CliError::Log { id: id.clone(), source };
    let Some(mut log) = hearback.log(&id).map_err(failed)? else {
        if output.is_json() {
            output.document(&document(&id, 0, 0, printed, &[]))?;
        }
        return Ok(0);
    };
    let (start, end) = range(&mut *log, args).map_err(|error| failed(error.into()))?;
    if output.is_json() {
        let asked = end;
        let end = asked.min(start + DOCUMENT_MAX);
        let mut bytes = Vec::new();
        let read =
            log.seek(SeekFrom::Start(start)).and_then(|_| log.take(end - start).read_to_end(&mut bytes));
        read.map_err(|error| failed(error.into()))?;
        if end < asked {
            drop_half_character(&mut bytes);
        }
        output.document(&document(&id, start, start + bytes.len() as u64, printed, &bytes))?;
        return Ok(0);
    }
    copy(&mut *log, start, end, output, failed)?;
    if printed.dropped > 0 {
        output.warn(&format!("{} of the output could not be kept", table::bytes(printed.dropped)));
    }
    Ok(0)
}

/// Which bytes were asked for.
fn range(log: &mut dyn ReadSeek, args: &LogsArgs) -> std::io::Result<(u64, u64)> {
    let size = log.seek(SeekFrom::End(0))?;
    Ok(match (args.head, args.tail, args.offset) {
        (Some(lines), ..) => (0, Lines::end_of_first(log, lines)?),
        (None, Some(lines), _) => (Lines::start_of_last(log, lines)?.min(size), size),
        (None, None, offset) => (offset.unwrap_or(0).min(size), size),
    })
}

fn copy(
    log: &mut dyn ReadSeek,
    start: u64,
    end: u64,
    output: &Output,
    failed: impl Fn(ReadError) -> CliError,
) -> Result<(), CliError> {
    let failed = |error: std::io::Error| failed(error.into());
    log.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut left = log.take(end - start);
    let mut block = vec![0; BLOCK];
    loop {
        match left.read(&mut block).map_err(failed)? {
            0 => return Ok(()),
            n => output.bytes(&block[..n])?,
        }
    }
}

/// Leaves a character that was cut in two to whoever reads on.
fn drop_half_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
}

fn document(id: &JobId, offset: u64, end: u64, printed: &OutputView, text: &[u8]) -> LogDocument {
    LogDocument {
        format: DOCUMENT_FORMAT,
        id: id.clone(),
        offset,
        end,
        bytes: printed.bytes,
        dropped: printed.dropped,
        text: String::from_utf8_lossy(text).into_owned(),
    }
}
