//! One behaviour suite for every port. A suite panics with what went wrong, as tests do.

mod clock;
mod disk;
mod executor;
mod process;
mod record;
mod session;
mod sink;
mod surroundings;
mod watch;

pub use clock::clock;
pub use disk::disk;
pub use executor::{Commands, executor};
pub use process::process;
pub use record::{jobs, record};
pub use session::session;
pub use sink::sink;
pub use surroundings::surroundings;
pub use watch::watch;
