//! What hearback decides, and how it is carried out: launch, supervise, reconcile, wait, deliver, prune, and the
//! monitor of a whole store.
//!
//! Every decision is a pure function of what was observed. It is carried out only through the ports of
//! `hearback-core`. After a plan was carried out, planning again gives an empty plan:
//!
//! ```
//! use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
//! use hearback_core::{Facts, Read};
//! use hearback_monitor::{Ports, reconcile};
//!
//! let store = FakeStore::default();
//! let id = sample::id(1);
//! // There is a begin, no end, and no lock is held: the supervisor died.
//! let facts = Facts {
//!     spec: Read::Present(sample::unowned(&id)),
//!     begin: Read::Present(sample::begin()),
//!     ..Facts::default()
//! };
//! store.put(&id, facts);
//! let ports = Ports::new(store, FakeProcesses::default(), FakeClock::default(), FakeExecutor::default());
//! assert_eq!(reconcile::job(&ports, &id)?.len(), 3); // lost, settled, archived
//! assert!(reconcile::job(&ports, &id)?.is_empty());
//! # Ok::<(), hearback_core::port::record::StoreError>(())
//! ```

mod cancel;
mod ports;
mod request;

pub mod answer;
pub mod delivery;
pub mod doctor;
pub mod host;
pub mod input;
pub mod kill;
pub mod launch;
pub mod prune;
pub mod reconcile;
pub mod session;
pub mod supervise;
pub mod wait;

#[cfg(test)]
mod testing;

pub use ports::{HostState, Ports};

/// The example of the README, which has to run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
