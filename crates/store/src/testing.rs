//! Stores and jobs for the tests of this crate.

use std::path::Path;

use hearback_core::port::disk::Publish;
use hearback_core::port::record::{FactStore, JobFiles};
use hearback_core::testing::{FakeDisk, sample};
use hearback_core::{Durability, Fact, JobId};

use crate::Store;

/// An empty store, and its disk.
pub(crate) fn store() -> (FakeDisk, Store<FakeDisk>) {
    let disk = FakeDisk::default();
    (disk.clone(), Store::open(disk, Path::new("/home")).unwrap())
}

/// A job that has a spec and no owner.
pub(crate) fn launched(store: &Store<FakeDisk>, durability: Durability) -> JobId {
    let id = store.create(sample::at()).unwrap();
    let spec = Fact::Spec(Box::new(sample::unowned(&id)));
    assert_eq!(store.publish(&id, &spec, durability).unwrap(), Publish::New);
    id
}
