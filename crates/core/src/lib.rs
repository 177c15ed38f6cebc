//! The nouns of hearback, the fold from facts to state, and the ports that the other crates fill in.
//!
//! Nothing here does I/O. A job is a set of facts, each written once; what the job *is* follows from which
//! facts exist and which locks are held:
//!
//! ```
//! use hearback_core::{Begin, End, Facts, JobState, LockView, Outcome, Read, Timestamp, fold};
//!
//! let mut facts = Facts::default();
//! assert!(matches!(fold(&facts, LockView::FREE).state, JobState::Nothing));
//!
//! facts.end = Read::Present(End::new(Outcome::Exited { code: 0 }, Timestamp::from_millis(0)));
//! let fold = fold(&facts, LockView::FREE);
//! assert!(matches!(fold.state, JobState::Ended { .. }));
//! ```
//!
//! The types to know first: [`Spec`] is what was asked for, [`Facts`] is what the disk says, [`fold()`] is what it
//! means, and [`JobView`] is how it is shown to programs.

mod answer;
mod clean;
mod delivery;
mod fact;
mod fold;
mod handle;
mod host;
mod id;
mod notice;
mod observed;
mod outcome;
mod output;
mod payload;
mod publish;
mod samples;
mod small_sort;
mod spec;
mod time;
mod transcript;
mod variant;
mod view;

pub mod agents;
pub mod credentials;
pub mod event;
pub mod finding;
pub mod json;
pub mod message;
pub mod note;
pub mod port;
pub mod service;
pub mod session;
#[cfg(feature = "testing")]
pub mod testing;

pub use answer::{
    ANSWER_BYTES, ANSWER_LOOK_BYTES, Answer, AnswerRecord, AnswerSource, AnswerText, Remains, answer_is_due,
    resolve_answer,
};
pub use delivery::{
    ClaimToken, CloudEvent, Delivery, EVENT_TYPE, OutputExcerpt, delivery_id, job_of_delivery,
};
pub use fact::{
    Begin, BegunBy, End, EndAuthor, Fact, FactKind, Kill, KilledBy, Lease, LeaseResult, Receipt, ReceiptHow,
    Settled, Swept, Target, Usage,
};
pub use fold::{
    Facts, Fold, FollowUp, FollowUpState, Here, JobState, LockState, LockView, Observed, Place, Read, fold,
};
pub use handle::TargetHandle;
pub use host::{
    HostBegin, HostFact, HostFacts, REDELIVERY_WINDOW, RequestFacts, RequestedBy, StopDone, StopKind,
    StopRequest, StopTaken, Verdict,
};
pub use id::{IdPattern, JobId, ParseIdError, SHORT_ID_MIN};
pub use notice::NoticeBytes;
pub use observed::HandsOff;
pub use outcome::{Exit, LostReason, Outcome, OutcomeKind, StartError, StartErrorKind, signal_text};
pub use output::{Gap, GapReason, LogCap, Output};
pub use payload::{
    FollowUps, MESSAGE_EVENT_TYPE, MessagePayload, NOTICE_EVENT_TYPE, Notice, SEVERAL_EVENT_TYPE, SinkPayload,
};
pub use port::process::{BootId, MachineId, ProcessIdentity};
pub use samples::{SAMPLES_BYTES, SAMPLES_MAX, Sample, Samples, TreeUsage};
pub use small_sort::SmallSort;
pub use spec::{
    Busy, CommandLine, Durability, ExecutorName, FORMAT, Key, Leftovers, Limits, NameError, NotifyPolicy,
    OsText, OverCap, Reader, Session, Spec,
};
pub use time::{Stamp, Timestamp};
pub use transcript::Shape;
pub use view::{DOCUMENT_FORMAT, FollowUpView, JobView, OutputView, StateWord};

/// Fields that a newer build wrote and this one does not know: kept, so that what is copied loses nothing.
pub type Extra = std::collections::BTreeMap<String, serde_json::Value>;

/// The example of the README, which has to run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
