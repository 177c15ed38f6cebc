//! Jobs over time: which ran when, beside which, and when their owners were told. As bars on a terminal, and as a page.

mod bars;
mod page;

pub(crate) use bars::{bars, legend};
pub(crate) use page::page;

use hearback::core::{SmallSort, Timestamp};
use hearback::{Attempt, Hearback, Job};

use crate::table;

/// The jobs of one session, oldest first.
pub(crate) struct Group {
    /// The session; none for the jobs without one.
    pub(crate) session: Option<String>,
    pub(crate) lanes: Vec<Lane>,
}

/// One job on the time axis.
pub(crate) struct Lane {
    pub(crate) job: Job,
    pub(crate) launched: Timestamp,
    /// When its main process was started; it waited until then.
    pub(crate) started: Option<Timestamp>,
    /// When it ended; now, while it runs.
    pub(crate) until: Timestamp,
    pub(crate) attempts: Vec<Attempt>,
}

/// The time that a picture shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Span {
    /// Where a moment is, from 0 at the beginning to 1 at the end.
    fn place(self, at: Timestamp) -> f64 {
        let whole = self.to.millis_since(self.from).max(1);
        (at.millis_since(self.from) as f64 / whole as f64).min(1.0)
    }
}

/// Puts jobs in order: by session, those without one first, and by the time of their launch.
pub(crate) fn arranged(hearback: &Hearback, jobs: Vec<Job>, now: Timestamp) -> (Vec<Group>, Span) {
    let mut lanes: Vec<_> = jobs.into_iter().filter_map(|job| lane(hearback, job, now)).collect();
    lanes.small_sort_by_key(|lane| lane.launched);
    let from = lanes.iter().map(|lane| lane.launched).min().unwrap_or(now);
    let ends = lanes.iter().flat_map(|lane| {
        let told = lane.attempts.iter().filter_map(|attempt| attempt.ended_at.or(Some(attempt.at)));
        told.chain([lane.until])
    });
    let to = ends.max().unwrap_or(now).max(from);
    let mut groups: Vec<Group> = Vec::new();
    for lane in lanes {
        let session = lane.job.view.session.as_ref().map(ToString::to_string);
        match groups.iter_mut().find(|group| group.session == session) {
            Some(group) => group.lanes.push(lane),
            None => groups.push(Group { session, lanes: vec![lane] }),
        }
    }
    groups.small_sort_by(|a, b| a.session.cmp(&b.session));
    (groups, Span { from, to })
}

fn lane(hearback: &Hearback, job: Job, now: Timestamp) -> Option<Lane> {
    let launched = job.launched_at()?;
    let facts = &job.seen.facts;
    let started = facts.target.present().map(|target| target.at_ms);
    let ended = job.seen.end().map(|end| end.at_ms);
    // One that is lost without a recorded end was last known when it began.
    let until = match ended {
        Some(at) => at,
        None if job.view.state.has_ended() => started.unwrap_or(launched),
        None => now,
    };
    Some(Lane { launched, started, until: until.max(launched), attempts: hearback.attempts(&job), job })
}

impl Lane {
    /// The label, which somebody chose as its name; else the command.
    fn name(&self) -> String {
        table::label(&self.job).unwrap_or_else(|| table::command(&self.job))
    }
}
