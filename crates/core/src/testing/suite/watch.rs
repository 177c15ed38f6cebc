//! What every watched store has to do.

use std::time::Duration;

use crate::port::disk::{LockMode, Wait};
use crate::port::record::{JobLock, RecordStore};
use crate::port::session::SessionStore;
use crate::port::watch::{Changes, StoreChanges, StoreWatch};
use crate::testing::sample;
use crate::{Durability, Fact, HostFact, Session, StopKind, StopRequest};

/// Far longer than any change takes to be reported.
const LONG: Duration = Duration::from_secs(600);

/// Panics unless what happens after a watch was made is reported.
pub fn watch(store: &(impl RecordStore + SessionStore + StoreWatch)) {
    let before = store.create(sample::at()).unwrap();
    let mut all = store.watch_all().unwrap();
    let id = store.create(sample::at()).unwrap();
    until(&mut *all, |changes| changes.jobs.contains(&id));
    let spec = Fact::Spec(Box::new(sample::unowned(&id)));
    let _ = store.publish(&id, &spec, Durability::Process).unwrap();
    until(&mut *all, |changes| changes.jobs.contains(&id));
    // Also in folders that are older than the watch.
    for id in [&id, &before] {
        let lock = store.lock(id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        // A watch that looks from time to time has to see it held.
        all.wait(Duration::ZERO);
        drop(lock);
        let closed = (id.clone(), JobLock::Alive);
        until(&mut *all, |changes| changes.closed.contains(&closed) || changes.jobs.contains(id));
    }
    for text in ["one", "two"] {
        store.queue(&sample::message("s", text), Durability::Process).unwrap();
        let session = Session::parse("s").unwrap();
        until(&mut *all, |changes| changes.sessions.contains(&session));
    }
    let mut host = store.watch_host().unwrap();
    let request = HostFact::Request(StopRequest::new(StopKind::Stop, sample::stamp()));
    let _ = store.publish_host(1, &request, Durability::Process).unwrap();
    until(&mut *all, |changes| changes.host);
    host.wait(LONG);
    host.wait(Duration::ZERO);
}

/// Waits until a change is reported.
fn until(watch: &mut dyn StoreChanges, is_it: impl Fn(&Changes) -> bool) {
    loop {
        let changes = watch.wait(LONG);
        if changes.everything || is_it(&changes) {
            return;
        }
    }
}
