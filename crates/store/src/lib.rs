//! Facts on disk: write-once records over any [`Disk`](hearback_core::port::disk::Disk), and hearback's store made of
//! them.
//!
//! # Records of your own
//!
//! [`Records`] can be used without the rest of hearback. A record is any type that serde knows. It is published whole
//! or not at all, under a name that only one process can win; it is never changed; it is read within bounds, and damage
//! is distinguished from absence. A lock is held exactly as long as its holder lives.
//!
//! ```
//! use std::path::Path;
//! use hearback_core::port::disk::{Flush, LockMode, Publish, Wait};
//! use hearback_core::testing::FakeDisk;
//! use hearback_core::{LockState, Read};
//! use hearback_store::{Format, Records, Rules};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Booking {
//!     version: u32,
//!     guest: String,
//! }
//!
//! // On a real disk this is `hearback_platform::Native`, or a `Disk` of your own.
//! let disk = FakeDisk::default();
//! let rules = Rules { max_bytes: 64 * 1024, format: Some(Format { field: "version", newest: 2 }) };
//! let hotel = Records::open(disk, Path::new("/hotel"), rules)?;
//!
//! // Two processes want room 7: the first publish wins, and the second obeys what is there.
//! let [ada, bob] = ["Ada", "Bob"].map(|guest| Booking { version: 1, guest: guest.into() });
//! assert_eq!(hotel.publish_new("room-7.json", &ada, Flush::Power)?, Publish::New);
//! assert_eq!(hotel.publish_new("room-7.json", &bob, Flush::Power)?, Publish::Exists);
//! assert_eq!(hotel.read("room-7.json")?, Read::Present(ada));
//! assert_eq!(hotel.read::<Booking>("room-8.json")?, Read::Absent);
//!
//! // The process that cleans the room holds a lock; others see whether it is alive.
//! let cleaning = hotel.lock("room-7.lock", LockMode::Exclusive, Wait::Try)?;
//! assert_eq!(hotel.probe("room-7.lock")?, LockState::Held);
//! drop(cleaning);
//! assert_eq!(hotel.probe("room-7.lock")?, LockState::Free);
//! # Ok::<(), hearback_core::port::record::StoreError>(())
//! ```
//!
//! # The store of hearback
//!
//! [`Store`] fills in the ports [`RecordStore`](hearback_core::port::record::RecordStore) and
//! [`SessionStore`](hearback_core::port::session::SessionStore): one folder for each job, one file for each fact.
//! It knows all names on disk and decides nothing.
//!
//! ```
//! use std::path::Path;
//! use hearback_core::port::record::{Housekeeping, JobFiles};
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

mod archive;
mod events;
mod files;
mod hash;
mod host;
mod jobs;
mod key;
mod layout;
mod log;
mod numbered;
mod observe;
mod own_logs;
mod readers;
mod records;
mod session;
mod settled;
mod store;
mod strays;
#[cfg(test)]
mod testing;
mod tidy;
mod watch;

pub use hash::store_name;
pub use layout::{config_path, is_store, monitor_lock_path, service_path, trial_folder_name};
pub use log::{Log, Piece};
pub use records::{Format, Records, Rules};
pub use store::{MAX_CONFIG_BYTES, Store};
