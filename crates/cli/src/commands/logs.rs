//! `hearback logs`

use hearback::core::message::{Cleaner, Excerpt, gap_text};
use hearback::core::port::disk::ReadError;
use hearback::core::{Gap, Session};
use hearback::documents::{LogDocument, LogPart};
use hearback::log_parts::{BLOCK, Begin, DOCUMENT_MAX, Parts};
use hearback::{FindError, Hearback, Job, LogPiece};
use hearback::{Log, Masker, Piece};

use crate::args::LogsArgs;
use crate::error::CliError;
use crate::output::Output;

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
        None => Begin::empty(start),
    };
    if args.follow {
        return follow(hearback, &job, &begin, args, output);
    }
    if let Some(most) = args.max_bytes {
        return print_excerpt(hearback, &job, log.as_mut(), most, args, output);
    }
    if output.is_json() {
        let mut parts = Parts::new(secrets, &begin);
        if let Some(log) = &mut log {
            parts.read(log, end, DOCUMENT_MAX).map_err(|error| failed(error.into()))?;
        }
        let document = LogDocument::of(&job, start, parts.finish()).with_outcome(&job);
        output.document(&document)?;
        if document.outcome.is_some() && !args.peek {
            hearback.mark_read(&job, reader(args)?.as_ref())?;
        }
        return Ok(0);
    }
    let Some(log) = &mut log else { return settle(hearback, &job, args, output).map(|()| 0) };
    let mut printer = Printer::new(output, begin.masker(secrets), args.raw);
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
    let mut printer = Printer::new(output, begin.masker(hearback.secrets()), args.raw);
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
    let mut parts = Parts::new(hearback.secrets(), begin);
    let tell = |parts: Vec<LogPart>| match parts.first().map(|part| part.offset) {
        Some(offset) => output.object(&LogDocument::part(job, offset, parts)),
        None => Ok(()),
    };
    let job = hearback.follow(&job.view.id, begin.from, |printed| match printed {
        LogPiece::Bytes { bytes, .. } => {
            parts.add(bytes);
            tell(parts.take())
        }
        LogPiece::Gap(gap) => {
            parts.add_gap(&gap);
            tell(parts.take())
        }
    })?;
    // The last object says how the job ended, with the output that waited for its second half.
    let at = parts.start;
    let last = LogDocument::part(&job, at, parts.finish());
    output.object(&LogDocument { outcome: job.view.outcome.clone(), ..last })?;
    Ok(job)
}

fn print_excerpt(
    hearback: &Hearback,
    job: &Job,
    log: Option<&mut Log>,
    most: u64,
    args: &LogsArgs,
    output: &Output,
) -> Result<u32, CliError> {
    let failed = |source: std::io::Error| CliError::Log { id: job.view.id.clone(), source: source.into() };
    let (excerpt, gaps) = match log {
        Some(log) => {
            let excerpt = log.excerpt(most / 2, most - most / 2).map_err(failed)?;
            (excerpt, log.output().map_err(failed)?.gaps)
        }
        None => (Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 }, Vec::new()),
    };
    let secrets = hearback.secrets();
    if output.is_json() {
        let mut parts = Parts::new(secrets, &Begin::empty(0));
        parts.add(&excerpt.head);
        parts.leave_out(excerpt.omitted, &gaps);
        parts.add(&excerpt.tail);
        output.document(&LogDocument::of(job, 0, parts.finish()))?;
        return Ok(0);
    }
    let is_cut = excerpt.omitted > 0;
    let mut printer = Printer::new(output, secrets.masker(), args.raw);
    printer.print(&excerpt.head)?;
    if is_cut {
        printer.mark(&format!("[hearback: {} bytes left out here]", excerpt.omitted))?;
    }
    printer.print(&excerpt.tail)?;
    printer.finish()?;
    Ok(0)
}

/// Prints output: unchanged into a pipe, without control characters to a terminal, and with secrets masked.
struct Printer<'a> {
    output: &'a Output,
    cleaner: Option<Cleaner>,
    masker: Masker<'a>,
    in_line: bool,
}

impl<'a> Printer<'a> {
    fn new(output: &'a Output, masker: Masker<'a>, raw: bool) -> Self {
        let cleaner = match (output.is_watched(), raw) {
            (false, _) => None,
            (true, false) => Some(Cleaner::default()),
            (true, true) => {
                output.enable_escape_sequences();
                (!hearback::TERMINALS_TAKE_BYTES).then(Cleaner::to_text)
            }
        };
        Self { output, cleaner, masker, in_line: false }
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

    /// Prints a line of hearback in place of missing output.
    fn mark(&mut self, line: &str) -> Result<(), CliError> {
        self.end_text()?;
        let mut masked = Vec::new();
        self.masker.gap(&mut masked);
        self.emit(&masked)?;
        let before = if self.in_line { "\n" } else { "" };
        self.emit(format!("{before}{line}\n").as_bytes())
    }

    /// Cleans the bytes that were held back for a second half.
    fn end_text(&mut self) -> Result<(), CliError> {
        let mut text = String::new();
        if let Some(cleaner) = &mut self.cleaner {
            cleaner.finish(&mut text);
        }
        self.mask(text.as_bytes())
    }

    fn finish(mut self) -> Result<(), CliError> {
        self.end_text()?;
        let mut masked = Vec::new();
        self.masker.flush(&mut masked);
        self.emit(&masked)
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        if let Some(last) = bytes.last() {
            self.in_line = *last != b'\n';
            self.output.bytes(bytes)?;
        }
        Ok(())
    }
}
