//! Bringing records up to date after a process died: plan the next step for a job, then carry it out.

use std::fmt;
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Publish, Wait};
use hearback_core::port::process::{Presence, SweepReport};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{
    Begin, BegunBy, End, EndAuthor, Extra, FORMAT, Fact, Facts, Here, JobId, JobState, LostReason, Observed,
    Outcome, Place, Read, Settled, Swept, answer_is_due,
};
use tracing::{debug, warn};

use crate::{Ports, answer};

/// How long a sweep may take before the rest is reported as survivors; twice that for a tree that is still dying.
pub const SWEEP_WITHIN: Duration = Duration::from_secs(2);
/// How long a job whose processes could not be seen is kept open for a process that can see them. Afterwards `kill`
/// still sweeps it.
const HELD_MS: u64 = 24 * 60 * 60 * 1000;
/// No job needs more steps than this. The bound keeps two processes that disagree from going on for ever.
const STEPS_MAX: usize = 16;

/// What has to happen to a job now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its launcher died and no supervisor began: declare it abandoned, so that a late supervisor runs nothing.
    Abandon,
    /// Its supervisor died and left no end: sweep what is left of its tree, then record the loss.
    Lose(LostReason),
    /// It has ended, and its answer is not recorded yet: record it.
    Answer,
    /// Its processes could not be seen from where its end was recorded: sweep them, if they can be seen from here.
    Sweep,
    /// Nothing is pending any more: record all its facts in one.
    Settle,
    /// It is settled: move it to history.
    Archive,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abandon => f.write_str("abandon: its launch was cut short"),
            Self::Lose(LostReason::Reboot) => f.write_str("lost: the machine was restarted"),
            Self::Lose(_) => f.write_str("lost: its supervisor died"),
            Self::Answer => f.write_str("answer: work out its answer"),
            Self::Sweep => f.write_str("sweep: its processes could not be seen before"),
            Self::Settle => f.write_str("settle: nothing is pending any more"),
            Self::Archive => f.write_str("archive: move it to history"),
        }
    }
}

/// Decides what has to happen to a job. Planning again after carrying it out gives the next step, and then none.
pub fn plan(seen: &Observed, here: &Here) -> Option<Step> {
    // A job in history is settled, and nothing is written there any more.
    if seen.hands_off(here).is_some() || seen.place == Place::History {
        return None;
    }
    let folded = seen.fold();
    match folded.state {
        JobState::Nothing | JobState::Starting | JobState::Running => None,
        // After a reboot it is unknown whether the job had begun: a begin is not flushed.
        JobState::Unclaimed if here.is_past_boot(&seen.facts) => Some(Step::Lose(LostReason::Reboot)),
        JobState::Unclaimed => Some(Step::Abandon),
        // A target whose executor can attach does not end with its supervisor: a step `Reattach` belongs here.
        JobState::Orphaned => Some(Step::Lose(here.lost_reason(&seen.facts))),
        JobState::Ended { .. } if answer_is_due(&seen.facts, &folded.state) => Some(Step::Answer),
        JobState::Ended { .. } if waits_for_sweep(seen, here) => Some(Step::Sweep),
        JobState::Ended { .. } if !folded.follow_up.state.is_closed() => None,
        // A settled fact that cannot be read is not replaced: the facts beside it still fold.
        JobState::Ended { .. } if !seen.facts.settled.is_absent() => Some(Step::Archive),
        JobState::Ended { .. } => Some(Step::Settle),
    }
}

/// Whether its processes could not be seen so far. Nothing of an earlier boot runs.
fn waits_for_sweep(seen: &Observed, here: &Here) -> bool {
    seen.out_of_sight().is_some() && seen.facts.settled.is_absent() && !here.is_past_boot(&seen.facts)
}

/// The same, unless the job belongs to another store, which only a look at processes shows.
pub(crate) fn plan_here(ports: &Ports, seen: &Observed) -> Option<Step> {
    plan(seen, &ports.here).filter(|_| ports.hands_off(seen).is_none())
}

/// Brings one job up to date, and returns the steps that were carried out.
///
/// # Errors
///
/// When the store cannot be read or written. What was done before stays done.
pub fn job(ports: &Ports, id: &JobId) -> Result<Vec<Step>, StoreError> {
    let mut done = Vec::new();
    bring_up_to_date(ports, id, &mut done).map(|_| done)
}

/// Brings one job up to date, and returns what is seen of it then; none if there is no such job. A job of which nothing
/// was to be done is looked at once.
///
/// # Errors
///
/// When the job cannot be read. If the store cannot be written, the job is not brought up to date; that is no error,
/// because what is returned is still true.
pub fn seen(ports: &Ports, id: &JobId) -> Result<Option<Observed>, StoreError> {
    match bring_up_to_date(ports, id, &mut Vec::new()) {
        Ok(Some(seen)) => Ok(Some(seen)),
        Err(error) if !error.is_unwritable() => Err(error),
        _ => ports.store.observe(id),
    }
}

/// Adds the steps that were carried out to `done`. Returns what was last seen, unless it was changed since.
fn bring_up_to_date(ports: &Ports, id: &JobId, done: &mut Vec<Step>) -> Result<Option<Observed>, StoreError> {
    for tried in 1..=STEPS_MAX {
        let Some(seen) = ports.store.observe(id)? else { break };
        let Some(step) = plan_here(ports, &seen) else { return Ok(Some(seen)) };
        match apply(ports, &seen, step) {
            Ok(Applied::Done) => {
                say(id, step);
                done.push(step);
            }
            Ok(Applied::Overtaken) => {}
            Ok(Applied::NotNow) => break,
            // Another process was quicker, and the job is no longer where it was seen.
            Err(error) if error.is_gone() && tried < STEPS_MAX => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Says what was done: that a job is lost is news, and that it was moved is not.
fn say(id: &JobId, step: Step) {
    match step {
        Step::Lose(reason) => warn!(job = %id, %reason, "job recorded as lost"),
        Step::Abandon => warn!(job = %id, "launch recorded as abandoned"),
        Step::Answer | Step::Sweep | Step::Settle | Step::Archive => {
            debug!(job = %id, %step, "job brought up to date")
        }
    }
}

/// Brings every open job up to date. One that fails does not stop the others.
///
/// # Errors
///
/// When the open jobs cannot be listed.
pub fn all(ports: &Ports) -> Result<Report, StoreError> {
    let mut report = Report::default();
    for id in ports.store.open_jobs()? {
        match job(ports, &id) {
            Ok(steps) => report.steps.extend(steps.into_iter().map(|step| (id.clone(), step))),
            Err(error) => report.failed.push((id, error)),
        }
    }
    Ok(report)
}

/// The next step of every open job, without doing any.
///
/// # Errors
///
/// When the open jobs cannot be listed.
pub fn plan_all(ports: &Ports) -> Result<Report, StoreError> {
    let mut report = Report::default();
    for id in ports.store.open_jobs()? {
        match ports.store.observe(&id) {
            Ok(seen) => {
                report.steps.extend(seen.and_then(|seen| Some((id, plan_here(ports, &seen)?))));
            }
            Err(error) => report.failed.push((id, error)),
        }
    }
    Ok(report)
}

/// What a reconcile did, or would do.
#[derive(Debug, Default)]
pub struct Report {
    /// Steps, in order.
    pub steps: Vec<(JobId, Step)>,
    /// Jobs that could not be brought up to date.
    pub failed: Vec<(JobId, StoreError)>,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
enum Applied {
    /// This process carried it out.
    Done,
    /// Another process was quicker: look again.
    Overtaken,
    /// Another process still uses the folder: a later reconcile carries it out.
    NotNow,
}

impl From<Publish> for Applied {
    fn from(published: Publish) -> Self {
        match published {
            Publish::New => Self::Done,
            Publish::Exists => Self::Overtaken,
        }
    }
}

/// Carries one step out.
fn apply(ports: &Ports, seen: &Observed, step: Step) -> Result<Applied, StoreError> {
    match step {
        Step::Abandon => {
            let begin = Begin::new(BegunBy::Abandoned, ports.clock.wall());
            Ok(ports.publish(seen, &Fact::Begin(begin))?.into())
        }
        Step::Lose(_) => lose(ports, &seen.id),
        Step::Answer => Ok(answer::record(ports, &seen.id)?.into()),
        Step::Sweep if sweep_again(ports, seen)?.out_of_sight.is_none() => Ok(Applied::Done),
        // Left to a process that can see them, while there may be one: such jobs are not kept open for ever.
        Step::Sweep if !is_held_long(ports, seen) => Ok(Applied::NotNow),
        Step::Sweep if !seen.fold().follow_up.state.is_closed() => Ok(Applied::NotNow),
        Step::Sweep | Step::Settle => {
            let facts = Facts { settled: Read::Absent, ..seen.facts.clone() };
            let settled = Settled {
                format: FORMAT,
                at: ports.clock.stamp(),
                facts: Box::new(facts),
                extra: Extra::new(),
            };
            Ok(ports.publish(seen, &Fact::Settled(settled))?.into())
        }
        Step::Archive => Ok(if ports.store.archive(&seen.id)? { Applied::Done } else { Applied::NotNow }),
    }
}

/// Sweeps what a dead supervisor left behind, and records that the end of the job is unknown.
fn lose(ports: &Ports, id: &JobId) -> Result<Applied, StoreError> {
    // No supervisor can come any more, so the holder releases the lock soon: a probe, a wait, another reconciler.
    let _alive = ports.store.lock(id, JobLock::Alive, LockMode::Exclusive, Wait::Block)?;
    // Look again under the lock: a supervisor that ended in between has published its own outcome, which wins. The
    // lock that this process holds itself proves nothing.
    let Some(seen) = ports.store.observe(id)? else { return Ok(Applied::Overtaken) };
    let seen = Observed { locks: hearback_core::LockView::FREE, ..seen };
    let Some(Step::Lose(reason)) = plan(&seen, &ports.here) else { return Ok(Applied::Overtaken) };
    let report = match reason {
        LostReason::Reboot => SweepReport::default(),
        _ => sweep(ports, &seen)?,
    };
    let is_swept = report.survivors.is_empty() && report.out_of_sight.is_none();
    let reason = match reason {
        LostReason::SupervisorDied if !is_swept => LostReason::Unswept,
        reason => reason,
    };
    let end = End {
        author: EndAuthor::Reconciler,
        output: seen.output.clone(),
        survivors: report.survivors,
        out_of_sight: report.out_of_sight,
        at: Some(ports.clock.stamp()),
        ..End::new(Outcome::Lost { reason }, ports.clock.wall())
    };
    let published = ports.publish(&seen, &Fact::End(Box::new(end)))?;
    if seen.facts.spec.present().is_some_and(|spec| spec.command_is_masked)
        && let Err(error) = ports.store.remove_script(id)
    {
        tracing::warn!(job = %id, %error, "script not removed");
    }
    Ok(published.into())
}

/// Sweeps what is left of a job whose supervisor died, by the executor that ran it.
///
/// If this program does not have that executor, the result is an error: nothing is known about the target, so the job
/// is neither swept nor recorded as lost.
pub(crate) fn sweep(ports: &Ports, seen: &Observed) -> Result<SweepReport, StoreError> {
    // Without a readable spec, the default executor is assumed.
    let name = seen.facts.spec.present().map(|spec| spec.executor.clone()).unwrap_or_default();
    let executor = ports.executors.find(&name).map_err(std::io::Error::from)?;
    let handle = seen.facts.target.present().map(|target| &target.handle);
    let mut report = executor.sweep(&seen.id, handle, SWEEP_WITHIN)?;
    // Without a target, its supervisor tells where the processes are.
    if let (None, Some(BegunBy::Supervisor(supervisor))) =
        (handle, seen.facts.begin.present().map(|begin| &begin.by))
        && ports.processes.presence(supervisor) == Presence::Unproved
    {
        report.out_of_sight = report.out_of_sight.or_else(|| supervisor.scope.clone());
    }
    Ok(report)
}

/// Sweeps what survived the end of a job, was kept, or could not be seen then. If nothing is left of it, that is
/// recorded, unless the job is settled: then its record is complete.
pub(crate) fn sweep_again(ports: &Ports, seen: &Observed) -> Result<SweepReport, StoreError> {
    let report = sweep(ports, seen)?;
    let is_open = seen.place == Place::Open && seen.facts.settled.is_absent();
    if report.survivors.is_empty() && report.out_of_sight.is_none() && is_open {
        match ports.publish(seen, &Fact::Swept(Swept::new(ports.clock.stamp()))) {
            // It was moved to history meanwhile, or the disk is full: the processes are gone all the same.
            Err(error) if error.is_gone() || error.is_unwritable() => {}
            published => drop(published?),
        }
    }
    Ok(report)
}

/// Whether the end of a job was recorded so long ago that no process waits any more that could see its processes.
fn is_held_long(ports: &Ports, seen: &Observed) -> bool {
    let end = seen.facts.end.present().and_then(|end| end.at.as_ref());
    end.is_some_and(|at| at.age_ms(&ports.clock.stamp()) >= HELD_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::executor::Executors;
    use hearback_core::port::record::{FactStore, JobFiles};
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
    use hearback_core::{BootId, ExecutorName, MachineId, ReceiptHow, Spec};
    use proptest::prelude::*;

    fn world() -> (FakeStore, Ports) {
        let store = FakeStore::default();
        (
            store.clone(),
            Ports::new(store, FakeProcesses::default(), FakeClock::default(), FakeExecutor::default()),
        )
    }

    fn begun(id: &JobId) -> Facts {
        Facts {
            spec: Read::Present(sample::unowned(id)),
            begin: Read::Present(sample::begin()),
            target: Read::Present(sample::target()),
            ..Facts::default()
        }
    }

    #[test]
    fn scenario_64_reconcile_twice_changes_nothing() {
        let (store, ports) = world();
        let (a, b) = (sample::id(1), sample::id(2));
        store.put(&a, begun(&a));
        store.put(&b, begun(&b));
        let _held = store.lock(&b, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        let report = all(&ports).unwrap();
        let lost = Step::Lose(LostReason::SupervisorDied);
        assert_eq!(report.steps, [(a.clone(), lost), (a.clone(), Step::Settle), (a.clone(), Step::Archive)]);
        assert!(all(&ports).unwrap().steps.is_empty());
        assert!(store.facts(&b).end.is_absent(), "a job whose supervisor lives is left alone");
    }

    #[test]
    fn a_launch_that_was_cut_short_is_abandoned_at_once() {
        let (store, ports) = world();
        let id = sample::id(1);
        store.put(&id, Facts { spec: Read::Present(sample::unowned(&id)), ..Facts::default() });
        assert_eq!(job(&ports, &id).unwrap(), [Step::Abandon, Step::Settle, Step::Archive]);
        let facts = store.facts(&id);
        let state = hearback_core::fold(&facts, hearback_core::LockView::FREE).state;
        assert!(matches!(
            state,
            JobState::Ended { outcome: Outcome::Lost { reason: LostReason::Abandoned }, .. }
        ));
    }

    #[test]
    fn a_job_of_an_earlier_boot_is_lost_to_the_reboot_and_nothing_is_swept() {
        let (store, ports) = world();
        for (n, mut facts) in [begun(&sample::id(1)), Facts::default()].into_iter().enumerate() {
            let id = sample::id(n as u64 + 1);
            let spec = Spec { boot: Some(BootId::new("boot-0")), ..sample::unowned(&id) };
            facts.spec = Read::Present(spec);
            if let Read::Present(Begin { by: BegunBy::Supervisor(who), .. }) = &mut facts.begin {
                who.boot = Some(BootId::new("boot-0"));
            }
            store.put(&id, facts);
            assert_eq!(job(&ports, &id).unwrap()[0], Step::Lose(LostReason::Reboot));
        }
    }

    #[test]
    fn a_job_that_is_pending_newer_or_foreign_is_left_alone() {
        let (store, ports) = world();
        let id = sample::id(1);
        let pending = Facts {
            spec: Read::Present(sample::spec("s")),
            end: Read::Present(sample::end(0)),
            ..Facts::default()
        };
        let newer = Facts { begin: Read::Newer(2), ..begun(&id) };
        for facts in [pending, newer] {
            store.put(&id, facts);
            assert_eq!(job(&ports, &id).unwrap(), []);
        }
        let here = Here { machine: Some(MachineId::new("here")), ..Here::default() };
        let spec = Spec { machine: Some(MachineId::new("there")), ..sample::unowned(&id) };
        store.put(&id, Facts { spec: Read::Present(spec), ..begun(&id) });
        assert_eq!(plan(&store.observe(&id).unwrap().unwrap(), &here), None);
    }

    #[test]
    fn a_copy_of_a_store_says_nothing_about_jobs_that_run_in_the_original() {
        let (store, processes) = (FakeStore::default(), FakeProcesses::default());
        let executor = FakeExecutor::default();
        let executors = Executors::local(executor.clone());
        let ports = Ports::new(store.clone(), processes.clone(), FakeClock::default(), executors);
        let id = sample::id(1);
        store.put(&id, begun(&id));
        // The lock is free here, and yet the supervisor is alive.
        processes.spawn(sample::process(100));
        assert_eq!(job(&ports, &id).unwrap(), []);
        assert!(executor.sweeps().is_empty());
        assert!(plan_all(&ports).unwrap().steps.is_empty());
    }

    #[test]
    fn a_job_whose_executor_is_unknown_is_not_called_lost() {
        let (store, ports) = world();
        let id = sample::id(1);
        let executor = ExecutorName::parse("elsewhere").unwrap();
        let spec = Spec { executor: executor.clone(), ..sample::unowned(&id) };
        store.put(&id, Facts { spec: Read::Present(spec), ..begun(&id) });
        let error = job(&ports, &id).unwrap_err();
        assert!(error.to_string().contains("no executor named `elsewhere`"), "{error}");
        assert!(store.facts(&id).end.is_absent());

        let there = FakeExecutor::default();
        let executors = ports.executors.clone().with(executor, there.clone());
        let ports = Ports::new(store.clone(), FakeProcesses::default(), FakeClock::default(), executors);
        assert_eq!(job(&ports, &id).unwrap()[0], Step::Lose(LostReason::SupervisorDied));
        assert_eq!(there.sweeps(), [id], "its own executor swept it");
    }

    #[test]
    fn scenario_121_what_is_out_of_sight_is_swept_by_a_process_that_sees_it() {
        let (store, clock, executor) = (FakeStore::default(), FakeClock::default(), FakeExecutor::default());
        let ports = Ports::new(
            store.clone(),
            FakeProcesses::default(),
            clock.clone(),
            Executors::local(executor.clone()),
        );
        let (seen_later, never_seen) = (sample::id(1), sample::id(2));
        executor.out_of_sight(Some("pid:[7]"));
        for id in [&seen_later, &never_seen] {
            store.put(id, begun(id));
            assert_eq!(job(&ports, id).unwrap(), [Step::Lose(LostReason::SupervisorDied)]);
            assert_eq!(job(&ports, id).unwrap(), [], "it is left to a process that can see it");
            let end = store.facts(id).end.present().cloned().unwrap();
            assert_eq!(end.outcome, Outcome::Lost { reason: LostReason::Unswept });
            assert_eq!(end.out_of_sight.as_deref(), Some("pid:[7]"));
        }
        // Not kept open for ever, and still known to be unseen.
        clock.advance(Duration::from_millis(HELD_MS));
        assert_eq!(job(&ports, &never_seen).unwrap(), [Step::Sweep, Step::Archive]);
        assert!(store.facts(&never_seen).swept.is_absent());

        executor.out_of_sight(None);
        assert_eq!(job(&ports, &seen_later).unwrap(), [Step::Sweep, Step::Settle, Step::Archive]);
        assert!(store.facts(&seen_later).swept.present().is_some());
    }

    #[test]
    fn an_end_that_appears_before_the_loss_is_recorded_wins() {
        let (store, ports) = world();
        let id = sample::id(1);
        store.put(&id, begun(&id));
        let orphan = store.observe(&id).unwrap().unwrap();
        let end = Fact::End(Box::new(sample::end(0)));
        let _ = store.publish(&id, &end, hearback_core::Durability::Power).unwrap();
        let lost = Step::Lose(LostReason::SupervisorDied);
        assert_eq!(apply(&ports, &orphan, lost).unwrap(), Applied::Overtaken);
        assert_eq!(store.facts(&id).end.present(), Some(&sample::end(0)));
    }

    fn any_facts() -> impl Strategy<Value = Facts> {
        let id = sample::id(1);
        let pick = |read: [u8; 5]| {
            move |id: &JobId| {
                let damaged = || "torn".to_owned();
                let spec = match read[0] % 4 {
                    0 => Read::Present(sample::spec("s")),
                    1 => Read::Unreadable(damaged()),
                    _ => Read::Present(sample::unowned(id)),
                };
                let begin = match read[1] % 4 {
                    0 => Read::Absent,
                    1 => Read::Present(sample::abandoned()),
                    2 => Read::Unreadable(damaged()),
                    _ => Read::Present(sample::begin()),
                };
                let end = match read[2] % 4 {
                    0 => Read::Present(sample::end(0)),
                    1 => Read::Unreadable(damaged()),
                    _ => Read::Absent,
                };
                let receipt = match read[3] % 3 {
                    0 => Read::Present(sample::receipt(ReceiptHow::Delivered)),
                    1 => Read::Unreadable(damaged()),
                    _ => Read::Absent,
                };
                let settled =
                    if read[4].is_multiple_of(3) { Read::Unreadable(damaged()) } else { Read::Absent };
                Facts { spec, begin, end, receipt, settled, ..Facts::default() }
            }
        };
        any::<[u8; 5]>().prop_map(move |read| pick(read)(&id))
    }

    proptest! {
        #[test]
        fn a_plan_carried_out_plans_nothing_more(facts in any_facts()) {
            let (store, ports) = world();
            let id = sample::id(1);
            store.put(&id, facts);
            let done = job(&ports, &id).unwrap();
            prop_assert!(done.len() < 4);
            prop_assert_eq!(job(&ports, &id).unwrap(), []);
        }
    }
}
