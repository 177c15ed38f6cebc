//! What hearback says about itself: events with fields, by [`tracing`], as lines of text.
//!
//! The library only emits events. A program that embeds hearback installs the subscriber that it likes, and sees them
//! all. hearback itself installs one in the processes that are its own: a supervisor or a messenger, which no person
//! watches. A program may [`install`] the same one, for its own [`LogOutput`]s.

mod filter;
mod line;
mod subscriber;

pub use filter::{Filter, InvalidFilter, LOG_VARIABLE};
pub use line::Form;
pub(crate) use subscriber::install_own;
pub use subscriber::{Installed, LogOutput, install};
pub use tracing::level_filters::LevelFilter;
