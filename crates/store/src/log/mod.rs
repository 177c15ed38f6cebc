//! The output of a job, which may be larger than memory, grow meanwhile, and have lost its middle.
//!
//! Offsets count every byte of output. A missing part is a gap: recorded with the end of the job, and before that a
//! hole in the file. Around a gap of the cap, no partial line is shown.

mod excerpt;
mod lines;
mod read;

pub use read::{Log, Piece};
