//! `hearback logs`

use hearback_core::message::{Cleaner, Excerpt, gap_text};
use hearback_core::port::disk::ReadError;
use hearback_core::{DOCUMENT_FORMAT, Gap, GapReason, OutputView};
use hearback_store::{Log, Piece};

use crate::cli::args::LogsArgs;
use crate::cli::documents::LogDocument;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::{FindError, Hearback, Job, Printed};

/// The most text that one JSON document holds; the rest is read on from its `end`.
const DOCUMENT_MAX: usize = 1024 * 1024;
/// Not more: Wine hands each write to its server as one message, and ends whoever sends one of 64 KiB in a bad moment.
const BLOCK: usize = 32 * 1024;

pub(crate) fn run(hearback: &Hearback, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let id = hearback.find(&args.job, super::scope(&args.scope)?.as_ref())?;
    let job = hearback.job(&id)?.ok_or_else(|| FindError::NotFound(args.job.clone()))?;
    let failed = |source: ReadError| CliError::Log { id: id.clone(), source };
    let mut log = hearback.log(&job).map_err(failed)?;
    let (start, end) = match &mut log {
        Some(log) => range(log, args).map_err(|error| failed(error.into()))?,
        None => (args.offset.filter(|_| args.follow).unwrap_or(0), 0),
    };
    if args.follow {
        return follow(hearback, &job, start, args, output);
    }
    if let Some(most) = args.max_bytes {
        let excerpt = hearback.excerpt(&job, most / 2, most - most / 2).map_err(failed)?;
        return print_excerpt(&job, &excerpt, args, output);
    }
    if output.is_json() {
        let read = read_text(log.as_mut(), start, end).map_err(|error| failed(error.into()))?;
        let all = start == 0 && read.end >= job.view.output.bytes;
        output.document(&document(&job, start, read))?;
        if all {
            settle(hearback, &job, args)?;
        }
        return Ok(0);
    }
    let Some(log) = &mut log else { return settle(hearback, &job, args).map(|()| 0) };
    let mut printer = Printer::new(output, args.raw);
    let mut block = vec![0; BLOCK];
    let mut at = start;
    while at < end {
        let most = block.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        match log.read(at, &mut block[..most]).map_err(|error| failed(error.into()))? {
            Piece::Bytes(n) => {
                printer.print(&block[..n])?;
                at += n as u64;
            }
            Piece::Gap(gap) => {
                printer.gap(&gap)?;
                at = gap.end;
            }
            Piece::End => break,
        }
    }
    printer.finish()?;
    // The owner who has read it all, up to its end, has heard of it.
    if start == 0 && end >= job.view.output.bytes {
        settle(hearback, &job, args)?;
    }
    Ok(0)
}

fn settle(hearback: &Hearback, job: &Job, args: &LogsArgs) -> Result<(), CliError> {
    let reader = match &args.scope.session {
        Some(session) => Some(session.clone()),
        None => crate::current_session()?,
    };
    if !args.peek {
        hearback.consume(job, reader.as_ref())?;
    }
    Ok(())
}

/// Which bytes were asked for.
fn range(log: &mut Log, args: &LogsArgs) -> std::io::Result<(u64, u64)> {
    let size = log.size()?;
    Ok(match (args.head, args.tail, args.offset) {
        (Some(lines), ..) => (0, log.end_of_first(lines)?),
        (None, Some(lines), _) => (log.start_of_last(lines)?.min(size), size),
        // Who follows may wait for a place that has not been reached.
        (None, None, Some(offset)) if args.follow => (offset, size),
        (None, None, offset) => (offset.unwrap_or(0).min(size), size),
    })
}

fn follow(
    hearback: &Hearback,
    job: &Job,
    from: u64,
    args: &LogsArgs,
    output: &Output,
) -> Result<u32, CliError> {
    if output.is_json() {
        let job = follow_as_json(hearback, job, from, output)?;
        if from == 0 {
            settle(hearback, &job, args)?;
        }
        return Ok(0);
    }
    let mut printer = Printer::new(output, args.raw);
    let job = hearback.follow(&job.view.id, from, |printed| match printed {
        Printed::Bytes { bytes, .. } => printer.print(bytes),
        Printed::Gap(gap) => printer.gap(&gap),
    })?;
    printer.finish()?;
    if from == 0 {
        settle(hearback, &job, args)?;
    }
    Ok(0)
}

/// One object for each piece. A character that was cut in two waits for its other half.
fn follow_as_json(hearback: &Hearback, job: &Job, from: u64, output: &Output) -> Result<Job, CliError> {
    let mut half: Vec<u8> = Vec::new();
    let tell = |offset: u64, read: Read| output.object(&part(job, offset, read));
    let job = hearback.follow(&job.view.id, from, |printed| match printed {
        Printed::Bytes { at, bytes } => {
            let start = at - half.len() as u64;
            let end = at + bytes.len() as u64;
            let mut read = Read { end, bytes: [&half[..], bytes].concat(), gaps: vec![] };
            half = drop_half_character(&mut read);
            if read.bytes.is_empty() { Ok(()) } else { tell(start, read) }
        }
        Printed::Gap(gap) => {
            let (start, bytes) = (gap.start - half.len() as u64, std::mem::take(&mut half));
            tell(start, Read { end: gap.end, bytes, gaps: vec![gap] })
        }
    })?;
    if !half.is_empty() {
        let end = job.view.output.bytes;
        tell(end - half.len() as u64, Read { end, bytes: half, gaps: vec![] })?;
    }
    Ok(job)
}

fn print_excerpt(job: &Job, excerpt: &Excerpt, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let start = excerpt.head.len() as u64;
    let gap = Gap { start, end: start + excerpt.omitted, why: GapReason::Cap };
    if output.is_json() {
        let bytes = [&excerpt.head[..], &excerpt.tail].concat();
        let end = gap.end + excerpt.tail.len() as u64;
        let gaps = if gap.is_empty() { vec![] } else { vec![gap] };
        output.document(&document(job, 0, Read { end, bytes, gaps }))?;
        return Ok(0);
    }
    let mut printer = Printer::new(output, args.raw);
    printer.print(&excerpt.head)?;
    if !gap.is_empty() {
        printer.mark(&format!("[hearback: {} bytes left out here]", gap.len()))?;
    }
    printer.print(&excerpt.tail)?;
    printer.finish()?;
    Ok(0)
}

/// Text that was read, and what was missing in it.
struct Read {
    end: u64,
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
}

fn read_text(log: Option<&mut Log>, start: u64, end: u64) -> std::io::Result<Read> {
    let mut read = Read { end: start, bytes: Vec::new(), gaps: Vec::new() };
    let Some(log) = log else { return Ok(read) };
    while read.end < end && read.bytes.len() < DOCUMENT_MAX {
        let filled = read.bytes.len();
        let most = (DOCUMENT_MAX - filled).min(usize::try_from(end - read.end).unwrap_or(usize::MAX));
        read.bytes.resize(filled + most, 0);
        let piece = log.read(read.end, &mut read.bytes[filled..])?;
        read.bytes.truncate(filled + if let Piece::Bytes(n) = piece { n } else { 0 });
        match piece {
            Piece::Bytes(n) => read.end += n as u64,
            Piece::Gap(gap) => {
                read.gaps.push(gap);
                read.end = gap.end;
            }
            Piece::End => break,
        }
    }
    if read.end < end {
        drop_half_character(&mut read);
    }
    Ok(read)
}

/// Leaves a character that was cut in two to whoever reads on, and returns what there is of it.
fn drop_half_character(read: &mut Read) -> Vec<u8> {
    // The last bytes decide, whatever came before them: a character has at most four.
    let from = read.bytes.len().saturating_sub(4);
    let half = (from..read.bytes.len()).find(|at| {
        let rest = std::str::from_utf8(&read.bytes[*at..]);
        rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    let half = read.bytes.split_off(half.unwrap_or(read.bytes.len()));
    read.end -= half.len() as u64;
    half
}

fn document(job: &Job, offset: u64, read: Read) -> LogDocument {
    let OutputView { bytes, dropped, .. } = job.view.output;
    LogDocument { bytes, dropped, ..part(job, offset, read) }
}

/// A document about a job that goes on: how much there is in all is not known yet.
fn part(job: &Job, offset: u64, read: Read) -> LogDocument {
    let Read { end, bytes, gaps } = read;
    LogDocument {
        format: DOCUMENT_FORMAT,
        id: job.view.id.clone(),
        offset,
        end,
        bytes: end,
        dropped: gaps.iter().map(Gap::len).sum(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        gaps,
    }
}

/// Prints output: as it is into a pipe, and cleaned to a terminal.
struct Printer<'a> {
    output: &'a Output,
    cleaner: Option<Cleaner>,
    in_line: bool,
}

impl<'a> Printer<'a> {
    fn new(output: &'a Output, raw: bool) -> Self {
        let cleaner = (output.is_watched() && !raw).then(Cleaner::default);
        Self { output, cleaner, in_line: false }
    }

    fn print(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        match &mut self.cleaner {
            None => self.emit(bytes),
            Some(cleaner) => {
                let mut text = String::with_capacity(bytes.len());
                cleaner.push(bytes, &mut text);
                self.emit(text.as_bytes())
            }
        }
    }

    fn gap(&mut self, gap: &Gap) -> Result<(), CliError> {
        self.mark(&gap_text(gap))
    }

    /// Prints a line of ours between theirs.
    fn mark(&mut self, line: &str) -> Result<(), CliError> {
        self.flush()?;
        let before = if self.in_line { "\n" } else { "" };
        self.emit(format!("{before}{line}\n").as_bytes())
    }

    /// Prints what was held back, because nothing more comes of it.
    fn flush(&mut self) -> Result<(), CliError> {
        let Some(cleaner) = &mut self.cleaner else { return Ok(()) };
        let mut text = String::new();
        std::mem::take(cleaner).finish(&mut text);
        self.emit(text.as_bytes())
    }

    fn finish(mut self) -> Result<(), CliError> {
        self.flush()
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        if let Some(last) = bytes.last() {
            self.in_line = *last != b'\n';
            self.output.bytes(bytes)?;
        }
        Ok(())
    }
}
