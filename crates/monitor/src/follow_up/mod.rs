//! Follow-ups: what is owed to the owners of jobs that are over, and how it gets to them.

mod deliver;
mod due;

pub use deliver::{Attempt, Deliverer, Turn};
pub use due::{Claim, Due, Retry, due};
