//! The output of a job, which may be larger than memory, grow meanwhile, and have lost its middle.
//!
//! Offsets count every byte of output. What is not kept of them is a gap: recorded with the end of the job, and before
//! that a hole in the file. Where the cap has cut, no half line is shown.

mod excerpt;
mod lines;
mod read;

pub use read::{Log, Piece};
