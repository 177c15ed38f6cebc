//! The index of events: parts of bounded size with one key a line, in the order in which readers found them.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use hearback_core::event::{EventKey, EventSubject};
use hearback_core::port::disk::{Disk, Lock, LockMode, Wait};
use hearback_core::port::events::{EventCursor, EventIndex};
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionStore;

use crate::{Store, layout};

/// A part that has this size gets nothing more.
const PART_FULL: u64 = 1024 * 1024;
/// More than a part ever has: what is added at once goes into one part.
const PART_MAX: u64 = 64 * 1024 * 1024;

impl<D: Disk> EventIndex for Store<D> {
    fn lock_events(&self, wait: Wait) -> Result<Option<Lock>, StoreError> {
        let folder = self.layout.events();
        self.lock_in(&folder, &layout::events_lock(&folder), LockMode::Exclusive, wait)
    }

    fn read_events(&self, after: Option<&EventCursor>) -> Result<Vec<(EventKey, EventCursor)>, StoreError> {
        let parts = self.event_parts()?;
        let place =
            after.and_then(|after| parts.iter().position(|part| *part == after.part).zip(Some(after.bytes)));
        let (mut first, mut from) = place.unwrap_or((0, 0));
        if let Some(part) = parts.get(first)
            && !self.is_end_of_line(part, from)?
        {
            (first, from) = (0, 0);
        }
        for part in parts.get(first..).unwrap_or_default() {
            let keys = self.read_part(part, from)?;
            if !keys.is_empty() {
                return Ok(keys);
            }
            from = 0;
        }
        Ok(Vec::new())
    }

    fn last_event(&self) -> Result<Option<EventCursor>, StoreError> {
        let Some(part) = self.event_parts()?.pop() else { return Ok(None) };
        let last = self.read_part(&part, 0)?.pop().map(|(_, cursor)| cursor);
        Ok(Some(last.unwrap_or(EventCursor { part, bytes: 0 })))
    }

    fn append_events(&self, keys: &[EventKey]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let folder = self.layout.events();
        let last = self.event_parts()?.pop();
        let path = last.as_ref().map(|part| layout::events_part(&folder, part));
        let size = path.as_ref().map_or(Ok(0), |path| self.disk().size(path))?;
        let (path, is_new) = match path.filter(|_| size < PART_FULL) {
            Some(path) => (path, false),
            None => {
                // The random part tells it from one of an index that was removed.
                let n =
                    last.as_deref().and_then(|part| part.split_once('-')?.0.parse::<u32>().ok()).unwrap_or(0)
                        + 1;
                let name = format!("{n:08}-{:08x}", self.disk().nonce() & 0xffff_ffff);
                (layout::events_part(&folder, &name), true)
            }
        };
        let mut lines = String::new();
        // The last line may have been cut by a full disk.
        if let Some(last) = last.filter(|_| !is_new)
            && !self.is_end_of_line(&last, size)?
        {
            lines.push('\n');
        }
        for key in keys {
            lines += &serde_json::to_string(&key.to_string())?;
            lines.push('\n');
        }
        self.disk().append(&path, lines.as_bytes())?;
        self.disk().flush(&path)?;
        if is_new {
            self.disk().flush(&folder)?;
        }
        Ok(())
    }
}

impl<D: Disk> Store<D> {
    /// The parts, in order.
    fn event_parts(&self) -> Result<Vec<String>, StoreError> {
        let names = self.disk().list(&self.layout.events())?;
        let mut parts: Vec<_> =
            names.iter().filter_map(|name| layout::events_part_name(name)).map(str::to_owned).collect();
        parts.sort();
        Ok(parts)
    }

    fn read_part(&self, part: &str, from: u64) -> Result<Vec<(EventKey, EventCursor)>, StoreError> {
        let path = layout::events_part(&self.layout.events(), part);
        let Some(mut file) = self.disk().open(&path).map_err(io::Error::other)? else {
            return Ok(Vec::new());
        };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(PART_MAX).read_to_end(&mut bytes)?;
        let (mut at, mut keys) = (0, Vec::new());
        // A line without an end is still being written, or was cut by a full disk.
        while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
            let line = &bytes[at..at + length];
            at += length + 1;
            let key = serde_json::from_slice::<String>(line).ok().and_then(|text| EventKey::parse(&text));
            let cursor = || EventCursor { part: part.to_owned(), bytes: from + at as u64 };
            keys.extend(key.map(|key| (key, cursor())));
        }
        Ok(keys)
    }

    /// Whether a line of a part ends here, or the part begins. A cursor that stands elsewhere is none of this index.
    fn is_end_of_line(&self, part: &str, at: u64) -> Result<bool, StoreError> {
        let path = layout::events_part(&self.layout.events(), part);
        let Some(before) = at.checked_sub(1) else { return Ok(true) };
        let Some(mut file) = self.disk().open(&path).map_err(io::Error::other)? else { return Ok(false) };
        file.seek(SeekFrom::Start(before))?;
        let mut byte = [0];
        Ok(file.read(&mut byte)? == 1 && byte == *b"\n")
    }

    /// Removes the oldest parts of the index, as long as everything that they name is gone. Returns how many.
    pub(crate) fn remove_old_events(&self) -> Result<usize, StoreError> {
        let parts = self.event_parts()?;
        let Some((_, old)) = parts.split_last().filter(|(_, old)| !old.is_empty()) else { return Ok(0) };
        // A reader that is paused must not hold up what tidies the store: the next time is soon enough.
        let Some(_lock) = self.lock_events(Wait::Try)? else { return Ok(0) };
        let mut removed = 0;
        for part in old {
            for (key, _) in self.read_part(part, 0)? {
                let is_there = match &key.subject {
                    EventSubject::Job(id) => self.locate(id)?.is_some(),
                    EventSubject::Session(session) => {
                        let (facts, mut words) = (self.session(session)?, key.fact.split('.'));
                        let (kind, n) = (words.next(), words.next().and_then(|n| n.parse::<u32>().ok()));
                        match kind {
                            Some("turn") => facts.turns.iter().any(|(other, _)| Some(*other) == n),
                            _ => facts.messages.iter().any(|(other, _)| Some(*other) == n),
                        }
                    }
                };
                if is_there {
                    return Ok(removed);
                }
            }
            self.disk().remove(&layout::events_part(&self.layout.events(), part))?;
            removed += 1;
        }
        Ok(removed)
    }
}
