//! A part of the output of a job as one document, with secrets masked.

use std::io;

use hearback_core::message::{self, Excerpt};
use hearback_core::port::disk::ReadError;
use hearback_core::{DOCUMENT_FORMAT, OutputView};
use hearback_store::{Log, Piece};

use crate::documents::{LogDocument, LogPart, Missing};
use crate::log_parts::{Begin, Parts};
use crate::{Hearback, Job, Listing};

/// Which part of the output of a job. Without a field that chooses one: from the beginning.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LogRange {
    /// Only the first lines.
    pub head: Option<u64>,
    /// Only the last lines.
    pub tail: Option<u64>,
    /// From this offset on.
    pub offset: Option<u64>,
    /// Only the last bytes, from the beginning of a line on where one begins soon.
    pub last_bytes: Option<u64>,
    /// At most this many bytes. Of the last lines, the beginning is cut; of everything else, the end.
    pub max_bytes: usize,
}

impl LogRange {
    /// From the beginning, at most this many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self { head: None, tail: None, offset: None, last_bytes: None, max_bytes }
    }

    /// Only the last bytes.
    pub fn last(bytes: u64) -> Self {
        Self { last_bytes: Some(bytes), ..Self::new(usize::try_from(bytes).unwrap_or(usize::MAX)) }
    }
}

/// How far a document is cut further, so that it begins with a line. A longer line is cut in two.
const LINE_SOUGHT: usize = 4096;

/// How much of the output is read for its last line, and how much of that line is shown.
const PREVIEW_READ: u64 = 4096;
const PREVIEW_CHARS: usize = 200;

impl Hearback {
    /// The last line of the output that is not blank, without control characters and secrets, and cut to 200
    /// characters; none if there is none, or it cannot be read.
    pub fn last_line(&self, job: &Job) -> Option<String> {
        if job.view.output.bytes == 0 {
            return None;
        }
        let Excerpt { head, tail, omitted } = self.excerpt(job, 0, PREVIEW_READ).ok()?;
        // A short log is all in the head.
        let text = message::shown(if tail.is_empty() { &head } else { &tail });
        let text = match omitted {
            0 => self.secrets().masked(&text),
            _ => self.secrets().masked_after_cut(&text),
        };
        let line = text.lines().rev().map(message::clean_line).find(|line| !line.trim().is_empty())?;
        Some(line.chars().take(PREVIEW_CHARS).collect())
    }

    /// Adds the last line of its output to each job of a list.
    pub fn add_previews(&self, listing: &mut Listing) {
        for job in &mut listing.jobs {
            job.view.output.last_line = self.last_line(job);
        }
    }

    /// A part of the output of a job. If it is the complete output of an ended job, it says how the job ended: a caller
    /// that shows it to the owner then calls [`Hearback::mark_read`].
    ///
    /// # Errors
    ///
    /// When the log is not a safe file, or cannot be read.
    pub fn log_document(&self, job: &Job, range: &LogRange) -> Result<LogDocument, ReadError> {
        let Some(mut log) = self.log(job)? else {
            return Ok(LogDocument::of(job, 0, Vec::new()).with_outcome(job));
        };
        let (start, end) = bounds(&mut log, range)?;
        let start = if range.last_bytes.is_some() { next_line(&mut log, start)? } else { start };
        let begin = Begin::at(&mut log, start, self.secrets())?;
        let mut parts = Parts::new(self.secrets(), &begin);
        parts.read(&mut log, end, range.max_bytes)?;
        Ok(LogDocument::of(job, start, parts.finish()).with_outcome(job))
    }
}

/// The first and the last offset of a range.
fn bounds(log: &mut Log, range: &LogRange) -> io::Result<(u64, u64)> {
    let size = log.size()?;
    if let Some(last) = range.last_bytes {
        return Ok((size.saturating_sub(last), size));
    }
    Ok(match (range.head, range.tail, range.offset) {
        (Some(lines), ..) => (0, log.end_of_first(lines)?),
        (None, Some(lines), _) => {
            let most = u64::try_from(range.max_bytes).unwrap_or(u64::MAX);
            (log.start_of_last(lines)?.min(size).max(size.saturating_sub(most)), size)
        }
        (None, None, offset) => (offset.unwrap_or(0).min(size), size),
    })
}

/// The beginning of the next line, if it is near and not at the end; else the same place.
fn next_line(log: &mut Log, at: u64) -> io::Result<u64> {
    // A line may begin right there.
    let Some(before) = at.checked_sub(1) else { return Ok(at) };
    let mut block = [0; LINE_SOUGHT];
    let Piece::Bytes(n) = log.read(before, &mut block)? else { return Ok(at) };
    let next = block[..n].iter().position(|byte| *byte == b'\n').map(|place| before + place as u64 + 1);
    Ok(match next {
        Some(next) if next < log.size()? => next,
        _ => at,
    })
}

impl LogDocument {
    /// A document about the output of a job from `offset` on.
    pub fn of(job: &Job, offset: u64, parts: Vec<LogPart>) -> Self {
        let OutputView { bytes, dropped, .. } = job.view.output;
        let part = Self::part(job, offset, parts);
        // The job may have printed more since it was looked at.
        Self { bytes: bytes.max(part.end), dropped, ..part }
    }

    /// A document about a part of the output: the total size is not known yet.
    pub fn part(job: &Job, offset: u64, parts: Vec<LogPart>) -> Self {
        let end = parts.last().map_or(offset, |part| part.end);
        let is_dropped = |part: &&LogPart| part.missing.is_some_and(|reason| reason != Missing::LeftOut);
        Self {
            format: DOCUMENT_FORMAT,
            id: job.view.id.clone(),
            offset,
            end,
            bytes: end,
            dropped: parts.iter().filter(is_dropped).map(|part| part.end - part.offset).sum(),
            parts,
            outcome: None,
        }
    }

    /// Says how the job ended, if this is all that it has printed.
    #[must_use]
    pub fn with_outcome(mut self, job: &Job) -> Self {
        let all = self.offset == 0 && self.end >= job.view.output.bytes;
        self.outcome = job.view.outcome.clone().filter(|_| all);
        self
    }
}
