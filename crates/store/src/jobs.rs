//! The facts of jobs: publishing each, and reading one. Seeing a whole job is [`observe`](crate::observe).

use std::path::Path;

use hearback_core::port::disk::{Disk, Flush, Lock, Publish};
use hearback_core::port::record::{FactStore, StoreError};
use hearback_core::{Durability, Fact, FactKind, JobId, Kill, Observed, Read, Reader, Spec, Stamp};

use crate::Store;
use crate::files::RESERVE_BYTES;
use crate::{layout, settled, store};

/// Which facts have to survive a power cut. The others may be lost: what they say can be found out again, or follows
/// from a fact that is there.
fn fact_flush(fact: &Fact, durability: Durability) -> Flush {
    match fact {
        Fact::Spec(_) | Fact::End(_) | Fact::Answer(_) | Fact::Receipt(_) => store::flush(durability),
        _ => Flush::No,
    }
}

impl<D: Disk> FactStore for Store<D> {
    fn publish(&self, id: &JobId, fact: &Fact, durability: Durability) -> Result<Publish, StoreError> {
        let folder = self.layout.job(id);
        let path = layout::fact(&folder, fact.kind());
        let flush = fact_flush(fact, durability);
        let published = match fact {
            Fact::End(end) => {
                let mut end = end.clone();
                end.fit(RESERVE_BYTES);
                let bytes = Fact::End(end).to_json()?;
                let published =
                    self.records.publish_reserved(layout::end_reserve(&folder), path, &bytes, flush)?;
                if flush == Flush::Power {
                    self.mark_durable(id, &folder);
                }
                published
            }
            Fact::Settled(settled) => {
                let bytes = settled::to_json(&self.records, &folder, settled)?;
                self.records.publish_bytes(path, &bytes, flush)?
            }
            Fact::Kill(n, kill) => self.publish_kill(&folder, *n, kill, flush)?,
            _ => self.records.publish_bytes(path, &fact.to_json()?, flush)?,
        };
        if matches!(fact, Fact::Spec(_)) && flush == Flush::Power {
            // A durable spec needs a durable folder name.
            self.disk().flush(&self.layout.jobs())?;
        }
        Ok(published)
    }

    fn flush_spec(&self, id: &JobId) -> Result<(), StoreError> {
        let folder = self.layout.job(id);
        self.disk().flush(&layout::fact(&folder, FactKind::Spec))?;
        self.disk().flush(&folder)?;
        Ok(self.disk().flush(&self.layout.jobs())?)
    }

    fn spec(&self, id: &JobId) -> Result<Read<Spec>, StoreError> {
        self.records.read(layout::fact(&self.layout.job(id), FactKind::Spec))
    }

    fn kills(&self, id: &JobId, after: u32) -> Result<Vec<(u32, Read<Kill>)>, StoreError> {
        let folder = self.layout.job(id);
        let mut kills = Vec::new();
        // Numbers have no gaps: each request takes the first free one.
        for n in after.saturating_add(1).. {
            match self.records.read(layout::fact(&folder, FactKind::Kill(n)))? {
                Read::Absent => break,
                kill => kills.push((n, kill)),
            }
        }
        Ok(kills)
    }

    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError> {
        self.observe_job(id)
    }

    fn acknowledge(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
        at: &Stamp,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        self.note_reader(id, reader, at, durability)
    }

    fn is_acknowledged(&self, id: &JobId, reader: Option<&Reader>) -> Result<bool, StoreError> {
        self.is_reader_noted(id, reader)
    }

    fn lock_reader(&self, id: &JobId, reader: Option<&Reader>) -> Result<Option<Lock>, StoreError> {
        self.take_reader_lock(id, reader)
    }
}

impl<D: Disk> Store<D> {
    /// Publishes a kill request. On a full disk the first one takes the room that was reserved for it: the job that
    /// fills the disk is the one to be killed.
    fn publish_kill(&self, folder: &Path, n: u32, kill: &Kill, flush: Flush) -> Result<Publish, StoreError> {
        let path = layout::fact(folder, FactKind::Kill(n));
        let published = self.records.publish_bytes(&path, &Fact::Kill(n, kill.clone()).to_json()?, flush);
        if !published.as_ref().is_err_and(StoreError::is_unwritable) {
            return published;
        }
        // Several processes may want it at once, and one gets it.
        let (reserve, mine) =
            (layout::kill_reserve(folder), layout::kill_reserve_of(folder, self.disk().nonce()));
        if !matches!(self.disk().move_dir(&reserve, &mine), Ok(Publish::New)) {
            return published;
        }
        let mut kill = kill.clone();
        kill.fit(RESERVE_BYTES);
        let published = self.records.publish_reserved(&mine, &path, &Fact::Kill(n, kill).to_json()?, flush);
        if !matches!(published, Ok(Publish::New)) {
            // For the next number, or the next request.
            let _ = self.disk().move_dir(&mine, &reserve);
        }
        published
    }
}

#[cfg(test)]
mod tests {
    use hearback_core::port::record::{Housekeeping, JobFiles};
    use hearback_core::testing::{sample, suite};
    use hearback_core::{Outcome, ReceiptHow};

    use super::*;
    use crate::testing::{launched, store};

    #[test]
    fn the_store_passes_the_suite_of_its_port() {
        suite::record(&store().1);
    }

    #[test]
    fn a_write_that_fails_at_any_point_leaves_no_half_job() {
        for n in 0..20 {
            let (disk, store) = store();
            disk.fail_after(n);
            let made = store.create(sample::at()).and_then(|id| {
                let spec = Fact::Spec(Box::new(sample::unowned(&id)));
                let _ = store.publish(&id, &spec, Durability::Power)?;
                store.reserve(&id)?;
                Ok(id)
            });
            disk.heal();
            match made {
                Ok(id) => {
                    let seen = store.observe(&id).unwrap().unwrap();
                    assert!(seen.facts.spec.present().is_some());
                }
                Err(_) => {
                    for id in store.open_jobs().unwrap() {
                        let seen = store.observe(&id).unwrap().unwrap();
                        let spec = &seen.facts.spec;
                        assert!(spec.is_absent() || spec.present().is_some(), "never torn");
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_disk_has_room_for_the_end() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Power);
        store.reserve(&id).unwrap();
        disk.fail_after(0);
        let mut end = sample::end(7);
        end.survivors = (1..500).map(sample::process).collect();
        let fact = Fact::End(Box::new(end));
        assert_eq!(store.publish(&id, &fact, Durability::Power).unwrap(), Publish::New);
        let seen = store.observe(&id).unwrap().unwrap();
        let end = seen.facts.end.present().unwrap();
        assert_eq!(end.outcome, Outcome::Exited { code: 7 });
        assert_eq!(end.survivors.len() as u64 + end.survivors_omitted, 499, "what was cut is counted");
    }

    #[test]
    fn what_was_promised_survives_a_power_cut() {
        let (disk, store) = store();
        let kept = launched(&store, Durability::Power);
        let ended = launched(&store, Durability::Power);
        let closed = launched(&store, Durability::Power);
        let lost = launched(&store, Durability::Process);
        store.reserve(&ended).unwrap();
        let end = Fact::End(Box::new(sample::end(3)));
        let _ = store.publish(&ended, &end, Durability::Power).unwrap();
        let receipt = Fact::Receipt(sample::receipt(ReceiptHow::Delivered));
        let _ = store.publish(&closed, &receipt, Durability::Power).unwrap();
        disk.cut_power();
        assert!(store.observe(&kept).unwrap().unwrap().facts.spec.present().is_some());
        assert!(store.observe(&ended).unwrap().unwrap().facts.end.present().is_some());
        assert!(store.observe(&closed).unwrap().unwrap().facts.receipt.present().is_some());
        let gone = store.observe(&lost).unwrap();
        assert!(gone.is_none_or(|seen| seen.facts.spec.present().is_none()), "nothing was promised");
    }

    #[test]
    fn a_spec_that_its_launcher_did_not_flush_is_flushed_by_the_supervisor() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        store.flush_spec(&id).unwrap();
        disk.cut_power();
        assert!(store.observe(&id).unwrap().unwrap().facts.spec.present().is_some());
    }
}
