//! Follow-ups: what is owed to the owners of jobs that are over, and how it gets to them.

mod close;
mod deliver;
mod due;
mod printed;

pub use close::{Closed, close, start_afresh};
pub use deliver::{Attempt, Deliverer, Turn};
pub use due::{Claim, Due, Retry, age_of_end, due};
pub use printed::printed;
