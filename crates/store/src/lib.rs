//! hearback's facts on disk: one folder a job, one file a fact, each written once and never changed.
//!
//! [`Store`] is a [`RecordStore`](hearback_core::port::record::RecordStore) over any
//! [`Disk`](hearback_core::port::disk::Disk). It knows where everything is and decides nothing.
//!
//! ```
//! use std::path::Path;
//! use hearback_core::port::record::RecordStore;
//! use hearback_core::testing::{FakeDisk, sample};
//! use hearback_store::Store;
//!
//! let store = Store::open(FakeDisk::default(), Path::new("/home"))?;
//! let id = store.create(sample::at())?;
//! assert_eq!(store.open_jobs()?, [id]);
//! # Ok::<(), hearback_core::port::record::StoreError>(())
//! ```
//!
//! The protocol, what it promises and what it assumes are in `docs/storage.md`.

mod key;
mod layout;
mod log;
mod read;
mod session;
mod settled;
mod store;

pub use key::store_name;
pub use layout::{config_path, monitor_lock_path, service_path, workshop_name};
pub use log::{Log, Piece};
pub use store::{MAX_CONFIG_BYTES, Store};
