//! The output of a job for programs: adjoining parts, each of which is text or says why there is none.

use hearback_core::Gap;
use hearback_store::{Log, Piece};

use crate::documents::{LogPart, Missing};
use crate::mask::Secrets;

/// The most text in one JSON document; the caller reads the rest with `--offset` and the document's `end`.
pub const DOCUMENT_MAX: usize = 1024 * 1024;
/// Not more: Wine sends each write to its server as one message, and sometimes kills a process that sends 64 KiB.
pub const BLOCK: usize = 32 * 1024;

/// The output from one offset on, in parts that adjoin each other.
#[derive(Debug)]
pub struct Parts<'a> {
    secrets: &'a Secrets,
    parts: Vec<LogPart>,
    /// What the next part of text begins with, in place of the end of a secret.
    instead: String,
    /// Where the next part of text begins.
    pub start: u64,
    /// The bytes of the next part of text.
    bytes: Vec<u8>,
    /// Where these bytes begin: after `instead`.
    bytes_start: u64,
    /// Whether the bytes come after a gap.
    is_after_gap: bool,
}

impl<'a> Parts<'a> {
    /// Begins there.
    pub fn new(secrets: &'a Secrets, begin: &Begin) -> Self {
        Self {
            secrets,
            parts: Vec::new(),
            instead: begin.instead.clone(),
            start: begin.requested,
            bytes: Vec::new(),
            bytes_start: begin.from,
            is_after_gap: false,
        }
    }

    fn end(&self) -> u64 {
        self.bytes_start + self.bytes.len() as u64
    }

    /// Adds bytes of the output.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a gap of the log.
    pub fn add_gap(&mut self, gap: &Gap) {
        self.miss(gap.end, gap.reason.into());
    }

    /// Leaves out so many bytes, of which the gaps are not in the log at all.
    pub fn leave_out(&mut self, omitted: u64, gaps: &[Gap]) {
        let end = self.end() + omitted;
        for gap in gaps {
            let (start, gap_end) = (gap.start.clamp(self.end(), end), gap.end.min(end));
            self.miss(start, Missing::LeftOut);
            self.miss(gap_end, gap.reason.into());
        }
        self.miss(end, Missing::LeftOut);
    }

    fn miss(&mut self, end: u64, reason: Missing) {
        if end <= self.end() {
            return;
        }
        self.push_text(true);
        self.parts.push(LogPart { offset: self.start, end, text: None, missing: Some(reason) });
        (self.start, self.bytes_start, self.is_after_gap) = (end, end, true);
    }

    /// Reads the log up to `end`, or as much of it as `room` bytes take.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn read(&mut self, log: &mut Log, end: u64, mut room: usize) -> std::io::Result<()> {
        let mut block = vec![0; BLOCK];
        while self.end() < end && room > 0 {
            let at = self.end();
            let most = block.len().min(room).min(usize::try_from(end - at).unwrap_or(usize::MAX));
            match log.read(at, &mut block[..most])? {
                Piece::Bytes(n) => {
                    self.add(&block[..n]);
                    room -= n;
                }
                Piece::Gap(gap) => self.add_gap(&gap),
                Piece::End => break,
            }
        }
        if self.end() < end {
            // The rest is for the next document.
            let half = self.half();
            self.bytes.truncate(self.bytes.len() - half);
        }
        Ok(())
    }

    /// How many bytes at the end are the first half of a character or of a secret.
    fn half(&self) -> usize {
        // Only the last bytes matter: a character has at most four.
        let from = self.bytes.len().saturating_sub(4);
        let half = (from..self.bytes.len()).find(|at| {
            let rest = std::str::from_utf8(&self.bytes[*at..]);
            rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        });
        let whole = half.unwrap_or(self.bytes.len());
        self.bytes.len() - whole + self.secrets.unsettled(&self.bytes[..whole])
    }

    /// What there is, except for a character or a secret that is cut in two.
    pub fn take(&mut self) -> Vec<LogPart> {
        let half = self.bytes.split_off(self.bytes.len() - self.half());
        self.push_text(false);
        self.bytes = half;
        std::mem::take(&mut self.parts)
    }

    /// All of it.
    pub fn finish(mut self) -> Vec<LogPart> {
        self.push_text(false);
        self.parts
    }

    /// Ends the part of text.
    fn push_text(&mut self, is_before_gap: bool) {
        let (offset, end) = (self.start, self.end());
        if offset < end {
            let bytes = std::mem::take(&mut self.bytes);
            let bytes = mask_halves(self.secrets, bytes, self.is_after_gap, is_before_gap);
            let mut text = std::mem::take(&mut self.instead);
            text.push_str(&String::from_utf8_lossy(&self.secrets.masked_bytes(&bytes)));
            self.parts.push(LogPart { offset, end, text: Some(text), missing: None });
        }
        (self.start, self.bytes_start, self.is_after_gap) = (end, end, false);
    }
}

/// Where reading begins. If that is inside a secret, the name of the secret is printed instead of its end.
#[derive(Debug)]
pub struct Begin {
    /// The offset that was asked for.
    pub requested: u64,
    /// The offset from which bytes are read.
    pub from: u64,
    /// The text in place of what lies between.
    pub instead: String,
}

impl Begin {
    /// The beginning of the output.
    pub fn first() -> Self {
        Self { requested: 0, from: 0, instead: String::new() }
    }

    /// An offset of the output.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn at(log: &mut Log, requested: u64, secrets: &Secrets) -> std::io::Result<Self> {
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

/// Masks half a secret on either side of a gap like a whole one.
pub fn mask_halves(
    secrets: &Secrets,
    mut bytes: Vec<u8>,
    is_after_gap: bool,
    is_before_gap: bool,
) -> Vec<u8> {
    if let (true, Some((at, name))) = (is_before_gap, secrets.begun_at_end(&bytes)) {
        bytes.splice(at.., name.bytes());
    }
    if let (true, Some((at, name))) = (is_after_gap, secrets.ended_at_start(&bytes)) {
        bytes.splice(..at, name.bytes());
    }
    bytes
}
