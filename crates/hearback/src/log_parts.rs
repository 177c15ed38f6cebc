//! The output of a job for programs: adjoining parts, each of which is text or says why there is none.

use hearback_core::Gap;
use hearback_store::{Log, Piece};

use crate::documents::{LogPart, Missing};
use crate::mask::{Masker, Secrets};

/// The most text in one JSON document; the caller reads the rest with `--offset` and the document's `end`.
pub const DOCUMENT_MAX: usize = 1024 * 1024;
/// Not more: Wine sends each write to its server as one message, and sometimes kills a process that sends 64 KiB.
pub const BLOCK: usize = 32 * 1024;

/// The output from one offset on, in parts that adjoin each other.
#[derive(Debug)]
pub struct Parts<'a> {
    masker: Masker<'a>,
    parts: Vec<LogPart>,
    /// Where the next part begins.
    pub start: u64,
    /// The text of the next part, so far.
    masked: Vec<u8>,
    /// The first half of a character.
    half: Vec<u8>,
    /// Where the output ends that was added.
    end: u64,
    /// Whether the rest of the output is for another document.
    is_cut: bool,
}

impl<'a> Parts<'a> {
    /// Begins there.
    pub fn new(secrets: &'a Secrets, begin: &Begin) -> Self {
        Self {
            masker: begin.masker(secrets),
            parts: Vec::new(),
            start: begin.requested,
            masked: begin.instead.clone().into_bytes(),
            half: Vec::new(),
            end: begin.from,
            is_cut: false,
        }
    }

    /// Adds bytes of the output.
    pub fn add(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        let mut whole = [&self.half[..], bytes].concat();
        self.half = split_half(&mut whole);
        self.masker.push(&whole, &mut self.masked);
    }

    /// Adds a gap of the log.
    pub fn add_gap(&mut self, gap: &Gap) {
        self.miss(gap.end, gap.reason.into());
    }

    /// Leaves out so many bytes, of which the gaps are not in the log at all.
    pub fn leave_out(&mut self, omitted: u64, gaps: &[Gap]) {
        let end = self.end + omitted;
        for gap in gaps {
            let (start, gap_end) = (gap.start.clamp(self.end, end), gap.end.min(end));
            self.miss(start, Missing::LeftOut);
            self.miss(gap_end, gap.reason.into());
        }
        self.miss(end, Missing::LeftOut);
    }

    fn miss(&mut self, end: u64, reason: Missing) {
        if end <= self.end {
            return;
        }
        self.masker.push(&std::mem::take(&mut self.half), &mut self.masked);
        self.masker.gap(&mut self.masked);
        self.push_text();
        self.parts.push(LogPart { offset: self.start, end, text: None, missing: Some(reason) });
        (self.start, self.end) = (end, end);
    }

    /// Reads the log up to `end`, or as much of it as `room` bytes take.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn read(&mut self, log: &mut Log, end: u64, mut room: usize) -> std::io::Result<()> {
        let mut block = vec![0; BLOCK];
        while self.end < end && room > 0 {
            let at = self.end;
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
        self.is_cut = self.end < end;
        Ok(())
    }

    /// What there is, except for a character or a secret that is cut in two.
    pub fn take(&mut self) -> Vec<LogPart> {
        self.push_text();
        std::mem::take(&mut self.parts)
    }

    /// All of it.
    pub fn finish(mut self) -> Vec<LogPart> {
        // What is cut in two is for the next document, if there is one.
        if !self.is_cut {
            self.masker.finish_with(&std::mem::take(&mut self.half), &mut self.masked);
        }
        self.push_text();
        // Unless a secret does not fit into any: then a part of it is masked like all of it.
        if self.parts.is_empty() && self.start < self.end {
            self.masker.push(&std::mem::take(&mut self.half), &mut self.masked);
            self.masker.gap(&mut self.masked);
            self.push_text();
        }
        self.parts
    }

    /// Ends the part of text, before what is held back.
    fn push_text(&mut self) {
        let (offset, end) = (self.start, self.end - (self.half.len() + self.masker.held()) as u64);
        if offset < end {
            let text = String::from_utf8_lossy(&std::mem::take(&mut self.masked)).into_owned();
            self.parts.push(LogPart { offset, end, text: Some(text), missing: None });
            self.start = end;
        }
    }
}

/// Removes a character that is cut in two at the end, and returns its first half.
fn split_half(bytes: &mut Vec<u8>) -> Vec<u8> {
    // Only the last bytes matter: a character has at most four.
    let from = bytes.len().saturating_sub(4);
    let half = (from..bytes.len()).find(|at| {
        let rest = std::str::from_utf8(&bytes[*at..]);
        rest.is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    bytes.split_off(half.unwrap_or(bytes.len()))
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
    /// What is before it: a name there may show that a secret begins here.
    before: Vec<u8>,
}

impl Begin {
    /// Where nothing is before it.
    pub fn empty(at: u64) -> Self {
        Self { requested: at, from: at, instead: String::new(), before: Vec::new() }
    }

    /// An offset of the output.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn at(log: &mut Log, requested: u64, secrets: &Secrets) -> std::io::Result<Self> {
        let reach = secrets.reach() as u64;
        let (mut start, end) = (requested.saturating_sub(reach), requested.saturating_add(reach));
        let (mut known, mut block) = (Vec::new(), vec![0; BLOCK]);
        while requested > 0 && start + (known.len() as u64) < end {
            match log.read(start + known.len() as u64, &mut block)? {
                Piece::Bytes(n) => known.extend_from_slice(&block[..n]),
                Piece::Gap(gap) if gap.end <= requested => {
                    known.clear();
                    start = gap.end;
                }
                Piece::Gap(_) | Piece::End => break,
            }
        }
        let before = match usize::try_from(requested - start) {
            Ok(before) if before <= known.len() => before,
            // It begins after the end, or inside a gap.
            _ => return Ok(Self::empty(requested)),
        };
        let (from, instead) = secrets.across(&known, before).unwrap_or((before, ""));
        known.truncate(from);
        let from = start + from as u64;
        Ok(Self { requested, from, instead: instead.to_owned(), before: known })
    }

    /// Masks the output from there on.
    pub fn masker<'a>(&self, secrets: &'a Secrets) -> Masker<'a> {
        secrets.masker_after(&self.before)
    }
}
