//! Seeing one job: which of its files are read, and in which order. The order is the protocol.
//!
//! Launchers and supervisors write while this reads, in other processes and without a lock that keeps readers out. What
//! is read is still true of one moment, because of three rules that writers keep:
//!
//! 1. A launcher takes `launch` **before** it publishes the spec.
//! 2. A supervisor takes `alive` **before** it publishes the begin.
//! 3. A supervisor releases `alive` **after** the end is published.
//!
//! So spec and begin are read first, then the locks are probed, and then everything else is read:
//!
//! - A lock that is free after its fact was read was released: it was taken before (rules 1 and 2). To probe locks
//!   before reading facts would fail: a supervisor that takes the lock and begins in between would look dead.
//! - An end that is missing after `alive` was seen free will never come (rule 3). To read the end before the lock would
//!   fail: a job that ends in between would look lost, although it has an exit code.
//!
//! One thing can still be seen: no begin, and then both locks free, because a supervisor began and died in between. It
//! reads as unclaimed. A process that acts on it publishes an abandoned begin, loses to the begin that is there, and
//! looks again. `docs/storage.md` has the whole table.
//!
//! An end that is seen is told, and told means durable. An end has its name before its folder is flushed, so it counts
//! only if `alive` is free, and is flushed here first if its author may have died before that.

use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::path::Path;

use hearback_core::port::disk::{Disk, Flush};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{
    FactKind, Facts, JobId, JobState, LockView, Observed, Output, Place, Read, Settled, SmallSort, Spec, fold,
};

use crate::Store;
use crate::layout::{self, Numbered};
use crate::log::Log;
use crate::store::flush;

/// A job moves once and is pruned once, so three looks find it or show that it is gone.
const LOOKS: usize = 3;

impl<D: Disk> Store<D> {
    /// Sees one job, open or in history.
    pub(crate) fn observe_job(&self, id: &JobId) -> Result<Option<Observed>, StoreError> {
        for _ in 0..LOOKS {
            let Some((folder, place)) = self.locate(id)? else { return Ok(None) };
            let seen = self.look(id, &folder, place);
            // If the folder moved during the read, facts may seem to be missing: read again.
            if self.disk().is_dir(&folder)? {
                return seen.map(Some);
            }
        }
        Ok(None)
    }

    fn look(&self, id: &JobId, folder: &Path, place: Place) -> Result<Observed, StoreError> {
        let settled = self.records.read(layout::fact(folder, FactKind::Settled))?;
        // A settled job is one read: it holds every other fact, and no process works on it.
        let (facts, locks) = match settled {
            Read::Present(settled) => (settled_facts(settled), LockView::FREE),
            settled => {
                let (facts, locks, is_durable) = self.look_at_facts(folder, settled)?;
                if !is_durable {
                    self.make_end_durable(id, folder, &facts, locks)?;
                }
                (facts, locks)
            }
        };
        let output = self.output(folder, facts.end.present().map(|end| &end.output))?;
        Ok(Observed { id: id.clone(), facts, locks, place, output })
    }

    /// Reads the facts of a job that is not settled, in the order of the protocol. Do not change it. Also returns
    /// whether its end is marked as durable.
    fn look_at_facts(
        &self,
        folder: &Path,
        settled: Read<Settled>,
    ) -> Result<(Facts, LockView, bool), StoreError> {
        let fact = |kind| layout::fact(folder, kind);
        let lock = |lock| self.records.probe(layout::lock(folder, lock));
        // What is published under a lock comes before that lock.
        let spec = self.records.read(fact(FactKind::Spec))?;
        let begin = self.records.read(fact(FactKind::Begin))?;
        let locks = LockView { launch: lock(JobLock::Launch)?, alive: lock(JobLock::Alive)? };
        // What its holder publishes before it releases the lock comes after that lock.
        let mut facts = Facts {
            spec,
            begin,
            target: self.records.read(fact(FactKind::Target))?,
            end: self.records.read(fact(FactKind::End))?,
            swept: self.records.read(fact(FactKind::Swept))?,
            answer: self.records.read(fact(FactKind::Answer))?,
            receipt: self.records.read(fact(FactKind::Receipt))?,
            settled,
            ..Facts::default()
        };
        let is_durable = self.look_at_numbered(folder, &mut facts)?;
        Ok((facts, locks, is_durable))
    }

    /// Flushes an end before this process tells it, because its author may have died between its name and its flush.
    ///
    /// Nothing is to do where the end is not told yet (its author lives and flushes it), where it was told before (a
    /// lease, a receipt and a settlement are published after such a flush), where the owner chose not to flush, and
    /// where this process knows, or a mark says, that it is durable.
    ///
    /// On a disk that cannot be written, the end is told as it is read: it came from that disk, and not to tell it
    /// would hide every end of a store that is mounted read-only.
    fn make_end_durable(
        &self,
        id: &JobId,
        folder: &Path,
        facts: &Facts,
        locks: LockView,
    ) -> Result<(), StoreError> {
        let fact = match fold(facts, locks).state {
            JobState::Ended { .. } if !facts.end.is_absent() => {
                (FactKind::End, facts.end.present().is_some())
            }
            JobState::Ended { .. } => (FactKind::Begin, true),
            _ => return Ok(()),
        };
        let told_before =
            !(facts.settled.is_absent() && facts.receipt.is_absent() && facts.leases.is_empty());
        let durability = facts.spec.present().map(Spec::durability).unwrap_or_default();
        if told_before || flush(durability) == Flush::No || self.durable_ends.contains(id) {
            return Ok(());
        }
        let (kind, is_readable) = fact;
        // What cannot be read may be anything: a link, a pipe.
        let flushed = match is_readable {
            true => self.disk().flush(&layout::fact(folder, kind)),
            false => Ok(()),
        };
        match flushed.and_then(|()| self.disk().flush(folder)) {
            Ok(()) => self.mark_durable(id, folder),
            Err(error) if matches!(error.kind(), ReadOnlyFilesystem | PermissionDenied) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Adds the facts of which there can be several. Returns whether the end is marked as durable.
    fn look_at_numbered(&self, folder: &Path, facts: &mut Facts) -> Result<bool, StoreError> {
        let (mark, mut is_durable) = (layout::end_durable(folder), false);
        for name in self.disk().list(folder)? {
            let path = folder.join(&name);
            is_durable |= path == mark;
            match layout::numbered(&name) {
                Some(Numbered::Kill(n)) => facts.kills.push((n, self.records.read(path)?)),
                Some(Numbered::Lease(n)) => facts.leases.push((n, self.records.read(path)?)),
                Some(Numbered::LeaseResult(n)) => facts.results.push((n, self.records.read(path)?)),
                None => {}
            }
        }
        facts.kills.small_sort_by_key(|(n, _)| *n);
        facts.leases.small_sort_by_key(|(n, _)| *n);
        facts.results.small_sort_by_key(|(n, _)| *n);
        Ok(is_durable)
    }

    /// Remembers that an end was flushed, for this process and for others: on some file systems a flush waits for the
    /// disk even if nothing is to be written, and a list may have a thousand ends.
    pub(crate) fn mark_durable(&self, id: &JobId, folder: &Path) {
        self.durable_ends.insert(id);
        // Without the mark, the next process flushes once more.
        let _ = self.disk().append(&layout::end_durable(folder), b"");
    }

    /// What the log of a job holds. A log that cannot be read changes nothing about the job.
    fn output(&self, folder: &Path, recorded: Option<&Output>) -> Result<Output, StoreError> {
        let path = layout::log(folder);
        let bytes = self.disk().size(&path)?;
        if bytes == 0 || recorded.is_some_and(|recorded| bytes <= recorded.bytes) {
            return Ok(Output { bytes, ..Output::default() });
        }
        let file = self.disk().open(&path).ok().flatten();
        let output = file.and_then(|file| Log::new(file, None, None).output().ok());
        Ok(output.unwrap_or(Output { bytes, ..Output::default() }))
    }
}

/// The facts of a settled job, with the settlement itself among them.
fn settled_facts(mut settled: Settled) -> Facts {
    let facts = std::mem::take(&mut *settled.facts);
    Facts { settled: Read::Present(settled), ..facts }
}

#[cfg(test)]
mod tests {
    use hearback_core::port::disk::{LockMode, Wait};
    use hearback_core::port::record::{FactStore, JobFiles};
    use hearback_core::testing::{FakeDisk, sample};
    use hearback_core::{Begin, BegunBy, Durability, Fact, LockState};

    use super::*;
    use crate::testing::{launched, store};

    #[test]
    fn a_lock_that_is_held_is_seen_as_held() {
        let (_, store) = store();
        let id = launched(&store, Durability::Process);
        let _ = store.publish(&id, &Fact::Begin(sample::begin()), Durability::Process).unwrap();
        let held = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Block).unwrap();
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(seen.locks.alive, LockState::Held);
        assert_eq!(fold(&seen.facts, seen.locks).state, JobState::Running);
        drop(held);
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(fold(&seen.facts, seen.locks).state, JobState::Orphaned);
    }

    fn has_ended(store: &Store<FakeDisk>, id: &JobId) -> bool {
        matches!(store.observe(id).unwrap().unwrap().fold().state, JobState::Ended { .. })
    }

    #[test]
    fn an_end_that_was_told_survives_a_power_cut() {
        let end = Fact::End(Box::new(sample::end(0)));
        let abandoned = Fact::Begin(Begin::new(BegunBy::Abandoned, sample::at()));
        for fact in [end, abandoned] {
            let (disk, store) = store();
            let id = launched(&store, Durability::Power);
            // Its author dies between the name and the flush.
            let _ = store.publish(&id, &fact, Durability::Process).unwrap();
            let reader = Store::open(disk.clone(), Path::new("/home")).unwrap();
            assert!(has_ended(&reader, &id));
            disk.cut_power();
            assert!(has_ended(&reader, &id), "{fact:?}");
        }
    }

    #[test]
    fn an_end_under_a_held_lock_is_neither_told_nor_flushed() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Power);
        let held = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        let _ = store.publish(&id, &Fact::Begin(sample::begin()), Durability::Process).unwrap();
        disk.plant(&layout::fact(&store.layout.job(&id), FactKind::End), b"anything");
        assert!(!has_ended(&store, &id));
        drop(held);
        assert!(has_ended(&store, &id));
    }

    #[test]
    fn an_end_is_flushed_once_by_its_author_or_by_the_first_process_that_tells_it() {
        let (disk, store) = store();
        let reader = || Store::open(disk.clone(), Path::new("/home")).unwrap();
        let flushes = |id: &JobId, store: &Store<FakeDisk>| {
            let before = disk.flushes();
            assert!((0..3).all(|_| has_ended(store, id)));
            disk.flushes() - before
        };
        let end = Fact::End(Box::new(sample::end(0)));
        let id = launched(&store, Durability::Power);
        let _ = store.publish(&id, &end, Durability::Power).unwrap();
        assert_eq!(flushes(&id, &store) + flushes(&id, &reader()), 0, "its author has flushed it");
        // Here its author dies between the name and the flush.
        let id = launched(&store, Durability::Power);
        let _ = store.publish(&id, &end, Durability::Process).unwrap();
        assert_eq!(flushes(&id, &reader()), 2, "a file and its folder");
        assert_eq!(flushes(&id, &reader()), 0, "another process has marked it");
        let mark = layout::end_durable(&store.layout.job(&id));
        disk.remove(&mark).unwrap();
        let _ = store.publish(&id, &Fact::Lease(1, sample::lease()), Durability::Power).unwrap();
        assert_eq!(flushes(&id, &reader()), 0, "a deliverer has told it");
    }
}
