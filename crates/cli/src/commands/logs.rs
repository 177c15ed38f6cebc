//! `hearback logs`

use hearback::core::message::{Cleaner, Excerpt, Returns, gap_text};
use hearback::core::port::disk::ReadError;
use hearback::core::{Gap, JobId, Session};
use hearback::documents::{LogDocument, LogPart};
use hearback::log_parts::{BLOCK, Begin, DOCUMENT_MAX, Parts};
use hearback::{FindError, Hearback, Job, LogPiece, Scope};
use hearback::{Log, Masker, Piece};

use crate::args::LogsArgs;
use crate::error::CliError;
use crate::output::{FAINT, Output};
use crate::status::{Show, Status};

pub(crate) fn run(hearback: &Hearback, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope)?;
    if let Some(key) = args.key.as_ref().filter(|_| super::ONE_CALL) {
        let id = hearback.find_by_key(key, &scope).map_err(|error| CliError::from(error).of(key.as_str()))?;
        return print(hearback, &id, args, output);
    }
    let [name] = &args.jobs[..] else {
        if args.jobs.is_empty() {
            return print(hearback, &hearback.find_only(&scope)?, args, output);
        }
        return print_each(hearback, &scope, args, output);
    };
    print(hearback, &super::find_one(hearback, name, &scope)?, args, output).map_err(|error| error.of(name))
}

/// Prints the output of several jobs, one after the other, each under a heading.
fn print_each(hearback: &Hearback, scope: &Scope, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    if args.follow {
        return Err(CliError::Usage("--follow takes one job at a time".into()));
    }
    let (found, mut failed) = super::find_each(&args.jobs, output, |text| hearback.find(text, scope));
    for id in &found.ids {
        if !output.is_json() {
            output.text(&format!("{FAINT}==> {id} <=={FAINT:#}\n"))?;
        }
        if let Err(error) = print(hearback, id, args, output) {
            super::keep_error(&mut failed, error.of(found.subject(id)), output);
        }
    }
    failed.map_or(Ok(0), Err)
}

fn print(hearback: &Hearback, id: &JobId, args: &LogsArgs, output: &Output) -> Result<u32, CliError> {
    let job = hearback.job(id)?.ok_or_else(|| FindError::NotFound(id.to_string()))?;
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
        let reader = if args.peek { None } else { reader(args)? };
        let job = follow(hearback, &job, &begin, args.raw, reader.as_ref(), output)?;
        return Ok(if args.exit_code { super::wait::code(&job) } else { 0 });
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
    let mut printer = Printer::new(output, begin.masker(secrets), args.raw, Returns::Replace);
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

/// Shows all output of a job that was just launched, for its owner, and returns its exit code.
pub(super) fn follow_all(hearback: &Hearback, job: &Job, output: &Output) -> Result<u32, CliError> {
    let followed = follow(hearback, job, &Begin::empty(0), false, job.view.session.as_ref(), output);
    match followed {
        Ok(job) => Ok(super::wait::code(&job)),
        // The reader is gone, but the exit code still says how the job ended.
        Err(CliError::Closed) => Ok(super::wait::code(&hearback.wait(&job.view.id)?)),
        Err(error) => Err(error),
    }
}

fn follow(
    hearback: &Hearback,
    job: &Job,
    begin: &Begin,
    raw: bool,
    reader: Option<&Session>,
    output: &Output,
) -> Result<Job, CliError> {
    if output.is_json() {
        let job = follow_as_json(hearback, job, begin, output)?;
        if begin.requested == 0 {
            hearback.mark_read(&job, reader)?;
        }
        return Ok(job);
    }
    let _status = Status::of(std::slice::from_ref(&job.view.id), Show::Nothing, output);
    let mut printer = Printer::new(output, begin.masker(hearback.secrets()), raw, Returns::Stay);
    printer.emit(begin.instead.as_bytes())?;
    let job = hearback.follow(&job.view.id, begin.from, |printed| match printed {
        LogPiece::Bytes { bytes, .. } => printer.print(bytes),
        LogPiece::Gap(gap) => printer.gap(&gap),
    })?;
    let is_in_line = printer.finish()?;
    let is_unread = begin.requested == 0 && job.is_unread_by(reader);
    if output.is_guided() || is_unread {
        if is_in_line && output.is_watched() {
            output.line("")?;
        }
        if output.report(&super::wait::summary(&job)) && is_unread {
            hearback.mark_read(&job, reader)?;
        }
    }
    Ok(job)
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
    let mut printer = Printer::new(output, secrets.masker(), args.raw, Returns::Replace);
    printer.print(&excerpt.head)?;
    if is_cut {
        printer.mark(&format!("[hearback: {} bytes left out here]", excerpt.omitted))?;
    }
    printer.print(&excerpt.tail)?;
    printer.finish()?;
    Ok(0)
}

/// Prints output: unchanged into a pipe, with nothing but colours to a terminal, and with secrets masked.
struct Printer<'a> {
    output: &'a Output,
    cleaner: Option<Cleaner>,
    masker: Masker<'a>,
    in_line: bool,
}

impl<'a> Printer<'a> {
    fn new(output: &'a Output, masker: Masker<'a>, raw: bool, returns: Returns) -> Self {
        let cleaner = match (output.is_watched(), raw) {
            (false, _) => None,
            (true, false) => {
                let keeps_colours = output.shows_colours();
                if keeps_colours {
                    output.enable_escape_sequences();
                }
                Some(Cleaner::to_terminal(returns, keeps_colours))
            }
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

    /// Prints what was held back, and tells whether the output ended within a line.
    fn finish(mut self) -> Result<bool, CliError> {
        self.end_text()?;
        let mut masked = Vec::new();
        self.masker.flush(&mut masked);
        self.emit(&masked)?;
        Ok(self.in_line)
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        if let Some(last) = bytes.last() {
            self.in_line = *last != b'\n';
            self.output.bytes(bytes)?;
        }
        Ok(())
    }
}
