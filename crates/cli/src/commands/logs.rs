//! `hearback logs`

use hearback::core::message::{Cleaner, Excerpt, gap_text};
use hearback::core::port::disk::ReadError;
use hearback::core::{DOCUMENT_FORMAT, Gap, GapReason, OutputView, Session};
use hearback::documents::LogDocument;
use hearback::{FindError, Hearback, Job, LogPiece};
use hearback::{Log, Piece};
use hearback::{Masker, Secrets};

use crate::args::LogsArgs;
use crate::error::CliError;
use crate::output::Output;

/// The most text in one JSON document; the caller reads the rest with `--offset` and the document's `end`.
const DOCUMENT_MAX: usize = 1024 * 1024;
/// Not more: Wine sends each write to its server as one message, and sometimes kills a process that sends 64 KiB.
const BLOCK: usize = 32 * 1024;

pub(crate) fn run(hearback: &Hearback, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let id = hearback.find(&args.job, &super::scope(&args.scope)?)?;
    let job = hearback.job(&id)?.ok_or_else(|| FindError::NotFound(args.job.clone()))?;
    let failed = |source: ReadError| CliError::Log { id: id.clone(), source };
    let mut log = hearback.log(&job).map_err(failed)?;
    let (start, end) = match &mut log {
        Some(log) => range(log, args).map_err(|error| failed(error.into()))?,
        None => (args.offset.filter(|_| args.follow).unwrap_or(0), 0),
    };
    let secrets = hearback.secrets();
    let begin = match &mut log {
        Some(log) => Begin::at(log, start, secrets).map_err(|error| failed(error.into()))?,
        None => Begin { requested: start, from: start, instead: String::new() },
    };
    if args.follow {
        return follow(hearback, &job, &begin, args, output);
    }
    if let Some(most) = args.max_bytes {
        let excerpt = hearback.excerpt(&job, most / 2, most - most / 2).map_err(failed)?;
        return print_excerpt(secrets, &job, &excerpt, args, output);
    }
    if output.is_json() {
        let read = read_text(log.as_mut(), begin.from, end, secrets).map_err(|error| failed(error.into()))?;
        let all = start == 0 && read.end >= job.view.output.bytes;
        let mut document = document(secrets, &job, start, read);
        document.text.insert_str(0, &begin.instead);
        document.outcome = job.view.outcome.clone().filter(|_| all);
        output.document(&document)?;
        if document.outcome.is_some() && !args.peek {
            hearback.mark_read(&job, reader(args)?.as_ref())?;
        }
        return Ok(0);
    }
    let Some(log) = &mut log else { return settle(hearback, &job, args, output).map(|()| 0) };
    let mut printer = Printer::new(output, secrets, args.raw);
    printer.emit(begin.instead.as_bytes())?;
    let mut block = vec![0; BLOCK];
    let mut at = begin.from;
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
    if start == 0 && end >= job.view.output.bytes {
        settle(hearback, &job, args, output)?;
    }
    Ok(0)
}

fn reader(args: &LogsArgs) -> Result<Option<Session>, CliError> {
    Ok(match &args.scope.session {
        Some(session) => Some(session.clone()),
        None => hearback::current_session()?,
    })
}

/// Tells an owner who has read all output how the job ended. Only then does it need no follow-up: the output alone may
/// be the same as it was while the job ran.
fn settle(hearback: &Hearback, job: &Job, args: &LogsArgs, output: &Output) -> Result<(), CliError> {
    let reader = reader(args)?;
    if !args.peek && job.is_unread_by(reader.as_ref()) && output.report(&super::wait::summary(job)) {
        hearback.mark_read(job, reader.as_ref())?;
    }
    Ok(())
}

/// The range of bytes that the arguments select.
fn range(log: &mut Log, args: &LogsArgs) -> std::io::Result<(u64, u64)> {
    let size = log.size()?;
    Ok(match (args.head, args.tail, args.offset) {
        (Some(lines), ..) => (0, log.end_of_first(lines)?),
        (None, Some(lines), _) => (log.start_of_last(lines)?.min(size), size),
        // With `--follow`, the offset may lie beyond the current end.
        (None, None, Some(offset)) if args.follow => (offset, size),
        (None, None, offset) => (offset.unwrap_or(0).min(size), size),
    })
}

fn follow(
    hearback: &Hearback,
    job: &Job,
    begin: &Begin,
    args: &LogsArgs,
    output: &Output,
) -> Result<u32, CliError> {
    if output.is_json() {
        let job = follow_as_json(hearback, job, begin, output)?;
        if begin.requested == 0 && !args.peek {
            hearback.mark_read(&job, reader(args)?.as_ref())?;
        }
        return Ok(0);
    }
    let mut printer = Printer::new(output, hearback.secrets(), args.raw);
    printer.emit(begin.instead.as_bytes())?;
    let job = hearback.follow(&job.view.id, begin.from, |printed| match printed {
        LogPiece::Bytes { bytes, .. } => printer.print(bytes),
        LogPiece::Gap(gap) => printer.gap(&gap),
    })?;
    printer.finish()?;
    if begin.requested == 0 {
        settle(hearback, &job, args, output)?;
    }
    Ok(0)
}

/// Prints one object for each piece, and a last one with the outcome. A character or a secret that is cut in two waits
/// for its second half.
fn follow_as_json(hearback: &Hearback, job: &Job, begin: &Begin, output: &Output) -> Result<Job, CliError> {
    let secrets = hearback.secrets();
    let mut half: Vec<u8> = Vec::new();
    let tell = |offset: u64, read: Read| output.object(&part(secrets, job, offset, read));
    if begin.from > begin.requested {
        let nothing = Read { end: begin.from, bytes: vec![], gaps: vec![] };
        let text = begin.instead.clone();
        output.object(&LogDocument { text, ..part(secrets, job, begin.requested, nothing) })?;
    }
    let job = hearback.follow(&job.view.id, begin.from, |printed| match printed {
        LogPiece::Bytes { at, bytes } => {
            let start = at - half.len() as u64;
            let end = at + bytes.len() as u64;
            let mut read = Read { end, bytes: [&half[..], bytes].concat(), gaps: vec![] };
            half = drop_half(&mut read, secrets);
            if read.bytes.is_empty() { Ok(()) } else { tell(start, read) }
        }
        LogPiece::Gap(gap) => {
            let (start, bytes) = (gap.start - half.len() as u64, std::mem::take(&mut half));
            tell(start, Read { end: gap.end, bytes, gaps: vec![gap] })
        }
    })?;
    // The last object says how the job ended, with the output that waited for its second half.
    let end = job.view.output.bytes;
    let last = part(secrets, &job, end - half.len() as u64, Read { end, bytes: half, gaps: vec![] });
    output.object(&LogDocument { outcome: job.view.outcome.clone(), ..last })?;
    Ok(job)
}

fn print_excerpt(
    secrets: &Secrets,
    job: &Job,
    excerpt: &Excerpt,
    args: &LogsArgs,
    output: &Output,
) -> Result<u32, CliError> {
    let start = excerpt.head.len() as u64;
    let gap = Gap { start, end: start + excerpt.omitted, reason: GapReason::Cap };
    let end = gap.end + excerpt.tail.len() as u64;
    // Half a secret on either side of the gap is masked like a whole one.
    let cut = |found: Option<(usize, &str)>| {
        found.filter(|_| !gap.is_empty()).map(|(at, name)| (at, name.as_bytes().to_vec()))
    };
    let mut head = excerpt.head.clone();
    if let Some((at, name)) = cut(secrets.begun_at_end(&head)) {
        head.splice(at.., name);
    }
    let mut tail = excerpt.tail.clone();
    if let Some((at, name)) = cut(secrets.ended_at_start(&tail)) {
        tail.splice(..at, name);
    }
    if output.is_json() {
        let bytes = [head, tail].concat();
        let gaps = if gap.is_empty() { vec![] } else { vec![gap] };
        output.document(&document(secrets, job, 0, Read { end, bytes, gaps }))?;
        return Ok(0);
    }
    let mut printer = Printer::new(output, secrets, args.raw);
    printer.print(&head)?;
    if !gap.is_empty() {
        printer.mark(&format!("[hearback: {} bytes left out here]", gap.len()))?;
    }
    printer.print(&tail)?;
    printer.finish()?;
    Ok(0)
}

/// Text that was read, and the gaps in it.
struct Read {
    end: u64,
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
}

/// Where reading begins. If that is inside a secret, the name of the secret is printed instead of its end.
struct Begin {
    requested: u64,
    from: u64,
    instead: String,
}

impl Begin {
    fn at(log: &mut Log, requested: u64, secrets: &Secrets) -> std::io::Result<Self> {
        let reach = secrets.reach();
        let before = usize::try_from(requested).unwrap_or(usize::MAX).min(reach);
        let (mut around, start) = (vec![0; before + reach], requested - before as u64);
        let read = if before > 0 { log.read(start, &mut around)? } else { Piece::End };
        let known = if let Piece::Bytes(n) = read { &around[..n] } else { &[] };
        let across = if known.len() > before { secrets.across(known, before) } else { None };
        Ok(match across {
            Some((end, name)) => Self { requested, from: start + end as u64, instead: name.to_owned() },
            None => Self { requested, from: requested, instead: String::new() },
        })
    }
}

fn read_text(log: Option<&mut Log>, start: u64, end: u64, secrets: &Secrets) -> std::io::Result<Read> {
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
        drop_half(&mut read, secrets);
    }
    Ok(read)
}

/// Removes a character or a secret that is cut in two at the end, and returns its first half for the next read.
fn drop_half(read: &mut Read, secrets: &Secrets) -> Vec<u8> {
    // Only the last bytes matter: a character has at most four.
    let from = read.bytes.len().saturating_sub(4);
    let half = (from..read.bytes.len()).find(|at| {
        let rest = std::str::from_utf8(&read.bytes[*at..]);
        rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    let whole = half.unwrap_or(read.bytes.len());
    let half = read.bytes.split_off(whole - secrets.unsettled(&read.bytes[..whole]));
    read.end -= half.len() as u64;
    half
}

fn document(secrets: &Secrets, job: &Job, offset: u64, read: Read) -> LogDocument {
    let OutputView { bytes, dropped, .. } = job.view.output;
    LogDocument { bytes, dropped, ..part(secrets, job, offset, read) }
}

/// A document about a part of the output: the total size is not known yet.
fn part(secrets: &Secrets, job: &Job, offset: u64, read: Read) -> LogDocument {
    let Read { end, bytes, gaps } = read;
    LogDocument {
        format: DOCUMENT_FORMAT,
        id: job.view.id.clone(),
        offset,
        end,
        bytes: end,
        dropped: gaps.iter().map(Gap::len).sum(),
        text: String::from_utf8_lossy(&secrets.masked_bytes(&bytes)).into_owned(),
        gaps,
        outcome: None,
    }
}

/// Prints output: unchanged into a pipe, without control characters to a terminal, and with secrets masked.
struct Printer<'a> {
    output: &'a Output,
    cleaner: Option<Cleaner>,
    masker: Masker<'a>,
    in_line: bool,
}

impl<'a> Printer<'a> {
    fn new(output: &'a Output, secrets: &'a Secrets, raw: bool) -> Self {
        let cleaner = match (output.is_watched(), raw) {
            (false, _) => None,
            (true, false) => Some(Cleaner::default()),
            (true, true) => {
                output.enable_escape_sequences();
                (!hearback::TERMINALS_TAKE_BYTES).then(Cleaner::to_text)
            }
        };
        Self { output, cleaner, masker: secrets.masker(), in_line: false }
    }

    fn print(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        match &mut self.cleaner {
            None => self.mask(bytes),
            Some(cleaner) => {
                let mut text = String::with_capacity(bytes.len());
                cleaner.push(bytes, &mut text);
                self.mask(text.as_bytes())
            }
        }
    }

    fn mask(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        let mut masked = Vec::with_capacity(bytes.len());
        self.masker.push(bytes, &mut masked);
        self.emit(&masked)
    }

    fn gap(&mut self, gap: &Gap) -> Result<(), CliError> {
        self.mark(&gap_text(gap))
    }

    /// Prints a line of hearback between lines of the job.
    fn mark(&mut self, line: &str) -> Result<(), CliError> {
        self.flush()?;
        let before = if self.in_line { "\n" } else { "" };
        self.emit(format!("{before}{line}\n").as_bytes())
    }

    /// Prints the bytes that were held back for a second half.
    fn flush(&mut self) -> Result<(), CliError> {
        if let Some(cleaner) = &mut self.cleaner {
            let mut text = String::new();
            cleaner.finish(&mut text);
            self.mask(text.as_bytes())?;
        }
        let mut masked = Vec::new();
        self.masker.flush(&mut masked);
        self.emit(&masked)
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
