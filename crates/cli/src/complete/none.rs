//! In place of completions, where the feature is off: arguments offer nothing, and no shell asks.

use clap::ValueHint;

pub(crate) fn answer_shell() {}

pub(crate) fn jobs() -> ValueHint {
    ValueHint::Unknown
}

#[cfg(feature = "setup")]
pub(crate) use jobs as agents;
pub(crate) use jobs as labels;
pub(crate) use jobs as running_jobs;
pub(crate) use jobs as sessions;
pub(crate) use jobs as sinks;
