//! The ports: what the deciding half of hearback may ask of the world.
//!
//! Each is a small trait in hearback's own words. The platform and store crates fill them in, the fakes of
//! [`crate::testing`] do it in memory, and one behaviour suite holds both to the same meaning.

pub mod clock;
pub mod disk;
pub mod events;
pub mod executor;
pub mod no_sessions;
pub mod process;
pub mod record;
pub mod relaunch;
pub mod session;
pub mod sink;
pub mod stop;
pub mod surroundings;
pub mod watch;
