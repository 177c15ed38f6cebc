//! The one way to an owner: the follow-up of a job and a message to a session take the same steps.
//!
//! | step | what it does | where |
//! | --- | --- | --- |
//! | due | decides from the records whether an attempt is to be made now | `due.rs` |
//! | claim | keeps others away | `claim.rs`; several: `company.rs`; in a turn: `steer.rs`; a caller: `caller.rs` |
//! | compose | puts into words what is sent | `compose.rs` |
//! | hand over | runs the sink, in a turn of the session where it needs one | `hand_over.rs` |
//! | interpret | decides what the sink's answer means | `interpret.rs` |
//! | record | publishes a receipt, or the result of the attempt | `record.rs` |
//!
//! [`Deliverer`] drives follow-ups, [`Inbox`] drives messages. What differs between them is an `Item`.

mod caller;
mod claim;
mod close;
mod company;
mod compose;
mod due;
mod follow_ups;
mod forsaken;
mod hand_over;
mod inbox;
mod interpret;
mod messenger;
mod record;
mod steer;

pub use caller::{CallerClaim, Released};
pub use close::{Closed, close, start_afresh};
pub use compose::compose;
pub use due::{
    Claim, ClaimHold, Due, OVERDUE_AFTER, Retry, due, message_due, message_overdue, waits_for_host,
};
pub use follow_ups::{Attempt, Deliverer, Turn};
pub use inbox::Inbox;
pub use interpret::{History, Response, Verdict, interpret};
pub use steer::{SteeredFollowUp, SteeredMessage};
