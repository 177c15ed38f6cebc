//! `hearback logs`

use std::io::{Read, Seek, SeekFrom};

use hearback_core::JobId;
use hearback_core::port::disk::{ReadError, ReadSeek};
use hearback_store::Lines;

use crate::Hearback;
use crate::cli::args::LogsArgs;
use crate::cli::documents::{DOCUMENT_FORMAT, LogDocument};
use crate::cli::error::CliError;
use crate::cli::output::Output;

/// The most that one JSON document holds; the rest is read on from its `end`.
const DOCUMENT_MAX: u64 = 1024 * 1024;
const BLOCK: usize = 64 * 1024;

pub(crate) fn run(hearback: &Hearback, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let id = hearback.find(&args.job, super::scope(&args.scope).as_ref())?;
    hearback.job(&id)?;
    let failed = |source: ReadError| CliError::Log { id: id.clone(), source };
    let Some(mut log) = hearback.log(&id).map_err(failed)? else {
        if output.is_json() {
            output.document(&document(&id, 0, 0, 0, &[]))?;
        }
        return Ok(0);
    };
    let (start, end, size) = range(&mut *log, args).map_err(|error| failed(error.into()))?;
    if output.is_json() {
        let end = end.min(start + DOCUMENT_MAX);
        let mut bytes = Vec::new();
        let read =
            log.seek(SeekFrom::Start(start)).and_then(|_| log.take(end - start).read_to_end(&mut bytes));
        read.map_err(|error| failed(error.into()))?;
        output.document(&document(&id, start, end, size, &bytes))?;
        return Ok(0);
    }
    copy(&mut *log, start, end, output, failed)?;
    Ok(0)
}

/// Which bytes were asked for, and how many there are.
fn range(log: &mut dyn ReadSeek, args: &LogsArgs) -> std::io::Result<(u64, u64, u64)> {
    let size = log.seek(SeekFrom::End(0))?;
    Ok(match (args.head, args.tail, args.offset) {
        (Some(lines), ..) => (0, Lines::end_of_first(log, lines)?, size),
        (None, Some(lines), _) => (Lines::start_of_last(log, lines)?.min(size), size, size),
        (None, None, offset) => (offset.unwrap_or(0).min(size), size, size),
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

fn document(id: &JobId, offset: u64, end: u64, bytes: u64, text: &[u8]) -> LogDocument {
    LogDocument {
        format: DOCUMENT_FORMAT,
        id: id.clone(),
        offset,
        end,
        bytes,
        text: String::from_utf8_lossy(text).into_owned(),
    }
}
