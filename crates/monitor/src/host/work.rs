//! What is to be done about one job, or about the messages of one session, now.

use std::time::Duration;

use hearback_core::port::record::StoreError;

use super::open_job::OpenJob;
use crate::delivery::{Deliverer, Due};

/// What is to be done about one job now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobWork {
    /// Nothing.
    Nothing,
    /// Hear of its end.
    AwaitEnd,
    /// Hear that another process is done with this attempt, or has died, but look again after this long.
    AwaitAttempt(u32, Duration),
    /// Look again after this long.
    Rest(Duration),
    /// Make an attempt at its follow-up, or give it up.
    Deliver,
}

/// Decides about a job.
pub(super) fn of_job(deliverer: &Deliverer<'_>, job: &OpenJob) -> Result<JobWork, StoreError> {
    if job.is_blank {
        return Ok(JobWork::Nothing);
    }
    if !job.has_ended {
        return Ok(JobWork::AwaitEnd);
    }
    let pause = match deliverer.due(&job.seen)? {
        Due::Never => return Ok(JobWork::Nothing),
        Due::Now(_) | Due::GiveUp { .. } | Due::Expired => return Ok(JobWork::Deliver),
        Due::In(pause) => deliverer.look_after(&job.seen, pause),
    };
    if let Some(n) = deliverer.under_way(&job.seen)? {
        return Ok(JobWork::AwaitAttempt(n, pause));
    }
    // The process that makes the attempt may have died between the two looks: then the next one is due sooner.
    Ok(match deliverer.due(&job.seen)? {
        Due::In(again) => JobWork::Rest(pause.min(again)),
        _ => JobWork::Rest(Duration::ZERO),
    })
}

/// What is to be done about the messages of one session now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionWork {
    /// Nothing.
    Nothing,
    /// Look again after this long.
    Rest(Duration),
    /// Hand them over.
    HandOver,
}

/// Decides about a session.
pub(super) fn of_session(next: &Due) -> SessionWork {
    match next {
        Due::Never => SessionWork::Nothing,
        Due::In(pause) => SessionWork::Rest(*pause),
        Due::Now(_) | Due::GiveUp { .. } | Due::Expired => SessionWork::HandOver,
    }
}
