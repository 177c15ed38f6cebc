//! The host, which is the monitor that serves the store: its facts, and the requests to it.

use hearback_core::port::disk::{Disk, Publish};
use hearback_core::port::record::StoreError;
use hearback_core::{Durability, HostFact, HostFacts, RequestFacts};

use crate::layout::{self, SessionFactKind as Kind};
use crate::numbered::newest;
use crate::{Store, store};

/// A file that is only written to wake the host is begun anew at this size.
const WAKE_MAX: u64 = 4096;

impl<D: Disk> Store<D> {
    pub(crate) fn host_facts(&self) -> Result<HostFacts, StoreError> {
        let mut facts = HostFacts::default();
        for (n, kind, path) in self.numbered(&self.layout.monitor())? {
            if kind == Kind::HostBegin {
                facts.begins.push((n, self.records.read(path)?));
                continue;
            }
            let request = newest::<RequestFacts>(&mut facts.requests, n);
            match kind {
                Kind::Request => request.request = self.records.read(path)?,
                Kind::Taken => request.taken = self.records.read(path)?,
                Kind::Done => request.done = self.records.read(path)?,
                _ => {}
            }
        }
        facts.requests.retain(|(_, request)| !request.request.is_absent());
        Ok(facts)
    }

    pub(crate) fn publish_host_fact(
        &self,
        n: u32,
        fact: &HostFact,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        let (path, flush) = (|kind| layout::session_fact(&folder, n, kind), store::flush(durability));
        match fact {
            HostFact::Begin(fact) => self.records.publish_new(path(Kind::HostBegin), fact, flush),
            HostFact::Request(fact) => self.records.publish_new(path(Kind::Request), fact, flush),
            HostFact::Taken(fact) => self.records.publish_new(path(Kind::Taken), fact, flush),
            HostFact::Done(fact) => self.records.publish_new(path(Kind::Done), fact, flush),
        }
    }

    pub(crate) fn forget_host_facts(&self, keep: usize) -> Result<(), StoreError> {
        let (begins, requests): (Vec<_>, Vec<_>) = self
            .numbered(&self.layout.monitor())?
            .into_iter()
            .partition(|(_, kind, _)| *kind == Kind::HostBegin);
        self.keep_newest(&begins, keep)?;
        self.keep_newest(&requests, keep)
    }

    pub(crate) fn write_wake(&self) -> Result<(), StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        let wake = layout::wake(&folder);
        if self.disk().size(&wake)? >= WAKE_MAX {
            self.disk().remove(&wake)?;
        }
        Ok(self.disk().append(&wake, b".")?)
    }
}
