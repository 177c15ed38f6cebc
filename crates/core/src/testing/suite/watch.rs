//! What every watched store has to do.

use std::time::Duration;

use crate::port::record::RecordStore;
use crate::port::session::SessionStore;
use crate::port::watch::StoreWatch;
use crate::testing::sample;

/// Far longer than any change takes to be reported.
const LONG: Duration = Duration::from_secs(600);

/// Panics unless what happens after a watch was made ends its wait.
pub fn watch(store: &(impl RecordStore + SessionStore + StoreWatch)) {
    let mut jobs = store.watch_jobs().unwrap();
    store.create(sample::at()).unwrap();
    jobs.wait(LONG);
    let mut host = store.watch_host().unwrap();
    store.wake_host().unwrap();
    host.wait(LONG);
    host.wait(Duration::ZERO);
}
