//! Killing a job: request it from the supervisor, wait for the end, and report survivors.

use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::process::SweepReport;
use hearback_core::port::record::StoreError;
use hearback_core::{
    BegunBy, Extra, FORMAT, Fact, JobId, JobState, Kill, KilledBy, Limits, Observed, ProcessIdentity,
};
use tracing::{debug, info, warn};

use crate::reconcile::SWEEP_WITHIN;
use crate::wait::{Until, WaitError, Waits, until_ended};
use crate::{Ports, reconcile};

/// How long a supervisor may take besides the grace: to wake up, to kill, to record.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How to kill a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// Who requests it.
    pub by: KilledBy,
    /// Their reason.
    pub reason: Option<String>,
    /// The time between terminating and killing; by default that of the launch.
    pub grace: Option<Duration>,
    /// Whether to kill an unresponsive supervisor, too.
    pub force: bool,
}

impl Request {
    /// A request of `by`: without a reason, with the grace of the launch, and without force.
    pub fn new(by: KilledBy) -> Self {
        Self { by, reason: None, grace: None, force: false }
    }
}

/// The result of a kill.
#[derive(Debug, Clone)]
pub struct Report {
    /// The job as it is now, after its end.
    pub seen: Observed,
    /// Whether it had ended before the request. Then only survivors of that end were signalled.
    pub already_ended: bool,
    /// How many survivors of an earlier end were killed now.
    pub leftovers_killed: usize,
    /// Processes that survived.
    pub survivors: Vec<ProcessIdentity>,
    /// Where processes of the job may still run that cannot be seen from here.
    pub out_of_sight: Option<String>,
}

/// Why it is not known whether a job has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KillError {
    /// There is no such job, or it must not be killed from here.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The supervisor is alive and unresponsive: it is stopped, or hangs.
    #[error("the supervisor of job `{0}` does not answer, so its processes may still run")]
    Unanswered(JobId),
    /// The store failed, and no process was signalled.
    #[error("job `{id}` could not be killed")]
    Store {
        /// The job.
        id: JobId,
        /// What the store said.
        #[source]
        source: StoreError,
    },
}

/// Kills a job and everything that it started. Safe to repeat: a job that has ended is only looked at.
///
/// # Errors
///
/// When it cannot be shown that the job has ended.
pub fn kill(ports: &Arc<Ports>, waits: &Waits, id: &JobId, request: &Request) -> Result<Report, KillError> {
    let asked = ask(ports, id, request)?;
    conclude(ports, waits, id, request, asked, ports.clock.awake())
}

/// Kills several jobs, and calls `each` in their order. All are requested to end before the first is waited for, so
/// this takes as long as the slowest of them.
pub fn kill_all(
    ports: &Arc<Ports>,
    waits: &Waits,
    ids: &[JobId],
    request: &Request,
    mut each: impl FnMut(&JobId, Result<Report, KillError>),
) {
    let asked: Vec<_> = ids.iter().map(|id| ask(ports, id, request)).collect();
    let since = ports.clock.awake();
    for (id, asked) in ids.iter().zip(asked) {
        each(id, asked.and_then(|asked| conclude(ports, waits, id, request, asked, since)));
    }
}

/// A job that was requested to end.
enum Asked {
    /// It had ended before.
    Ended(Box<Observed>),
    /// Its supervisor has the request, and ends it within this time.
    Requested { within: Duration },
    /// The request cannot be recorded, and the supervisor is to be killed at once.
    Forced,
}

fn ask(ports: &Ports, id: &JobId, request: &Request) -> Result<Asked, KillError> {
    // A job that cannot be brought up to date can still be looked at.
    if let Err(error) = reconcile::job(ports, id) {
        debug!(job = %id, %error, "job not brought up to date");
    }
    let seen = observe(ports, id)?;
    if ports.hands_off(&seen).is_some() {
        return Err(WaitError::Elsewhere(id.clone()).into());
    }
    if matches!(seen.fold().state, JobState::Ended { .. }) {
        return Ok(Asked::Ended(Box::new(seen)));
    }
    let limits = seen.facts.spec.present().map(|spec| spec.limits).unwrap_or_default();
    let grace = if request.force { Duration::ZERO } else { grace(request, &limits) };
    let grace = match request_kill(ports, &seen, request, grace) {
        Ok(()) => grace,
        Err(error) if error.is_unwritable() && request.force => {
            warn!(job = %id, %error, "kill not recorded, killing the supervisor");
            return Ok(Asked::Forced);
        }
        // Another request has taken the room that is kept for one. It ends the job as well.
        Err(error) if error.is_unwritable() => match grace_of_others(ports, id) {
            Some(theirs) => theirs.max(grace),
            None => return Err(KillError::Store { id: id.clone(), source: error }),
        },
        Err(source) => return Err(KillError::Store { id: id.clone(), source }),
    };
    info!(job = %id, by = %request.by, ?grace, "kill requested");
    Ok(Asked::Requested { within: grace.saturating_add(SWEEP_WITHIN * 2 + ANSWER_WITHIN) })
}

/// The longest grace of the requests that are recorded; none if there are none.
fn grace_of_others(ports: &Ports, id: &JobId) -> Option<Duration> {
    let kills = ports.store.kills(id, 0).ok()?;
    kills.iter().filter_map(|(_, kill)| Some(Duration::from_millis(kill.present()?.grace_ms))).max()
}

/// Waits for a job that was requested to end at `since`, and reports how it did.
fn conclude(
    ports: &Arc<Ports>,
    waits: &Waits,
    id: &JobId,
    request: &Request,
    asked: Asked,
    since: Duration,
) -> Result<Report, KillError> {
    let failed = |source| KillError::Store { id: id.clone(), source };
    let ended = match asked {
        Asked::Ended(seen) => return end_survivors(ports, *seen).map_err(failed),
        Asked::Requested { within } => {
            let left = since.saturating_add(within).saturating_sub(ports.clock.awake());
            let mut ended = None;
            waits.wait(ports, std::slice::from_ref(id), Until::All, &left.into(), |_, it| ended = Some(it));
            ended
        }
        Asked::Forced => None,
    };
    let seen = match ended {
        Some(seen) => seen?,
        None if request.force => {
            warn!(job = %id, "supervisor does not answer, killing it");
            end_supervisor(ports, id).map_err(failed)?;
            until_ended(ports, id)?
        }
        None => return Err(KillError::Unanswered(id.clone())),
    };
    let (survivors, out_of_sight) = (survivors(&seen), seen.out_of_sight().map(str::to_owned));
    Ok(Report { seen, already_ended: false, leftovers_killed: 0, survivors, out_of_sight })
}

fn observe(ports: &Ports, id: &JobId) -> Result<Observed, KillError> {
    match ports.store.observe(id) {
        Ok(Some(seen)) => Ok(seen),
        Ok(None) => Err(WaitError::Gone(id.clone()).into()),
        Err(source) => Err(KillError::Store { id: id.clone(), source }),
    }
}

fn grace(request: &Request, limits: &Limits) -> Duration {
    request.grace.unwrap_or(Duration::from_millis(limits.grace_ms))
}

/// Publishes the request, and rings the bell. Each of several requests at the same time gets its own number.
fn request_kill(
    ports: &Ports,
    seen: &Observed,
    request: &Request,
    grace: Duration,
) -> Result<(), StoreError> {
    let kill = Kill {
        format: FORMAT,
        at_ms: ports.clock.wall(),
        by: request.by.clone(),
        reason: request.reason.clone(),
        grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        extra: Extra::new(),
    };
    let mut n = seen.facts.kills.last().map_or(1, |(n, _)| n + 1);
    loop {
        match ports.publish(seen, &Fact::Kill(n, kill.clone())) {
            Ok(Publish::New) => break,
            Ok(Publish::Exists) => n += 1,
            // The job ended and was moved to history meanwhile.
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    // Without a bell the supervisor has only begun, and reads requests by itself, or it has died.
    ports.processes.ring(&ports.store.bell_path(&seen.id))?;
    Ok(())
}

/// Kills the processes that survived the end of the job, were kept, or could not be seen then.
fn end_survivors(ports: &Ports, seen: Observed) -> Result<Report, StoreError> {
    let is_swept = survivors(&seen).is_empty() && seen.out_of_sight().is_none();
    let report = if is_swept { SweepReport::default() } else { reconcile::sweep_again(ports, &seen)? };
    let SweepReport { ended: leftovers_killed, survivors, out_of_sight, .. } = report;
    Ok(Report { seen, already_ended: true, leftovers_killed, survivors, out_of_sight })
}

fn survivors(seen: &Observed) -> Vec<ProcessIdentity> {
    let end = seen.end().filter(|_| seen.facts.swept.is_absent());
    end.map(|end| end.survivors.clone()).unwrap_or_default()
}

fn end_supervisor(ports: &Ports, id: &JobId) -> Result<(), StoreError> {
    let begin = ports.store.observe(id)?.and_then(|seen| seen.facts.begin.present().cloned());
    match begin.map(|begin| begin.by) {
        Some(BegunBy::Supervisor(supervisor)) => Ok(ports.processes.end_by_force(&supervisor)?),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::disk::{LockMode, Wait};
    use hearback_core::port::record::{FactStore, JobFiles, JobLock};
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
    use hearback_core::{Durability, End, Facts, Read};

    fn world() -> (FakeStore, FakeProcesses, Arc<Ports>) {
        let (store, processes, _, ports) = world_of_executor();
        (store, processes, ports)
    }

    fn world_of_executor() -> (FakeStore, FakeProcesses, FakeExecutor, Arc<Ports>) {
        let (store, processes) = (FakeStore::default(), FakeProcesses::default());
        let executor = FakeExecutor::default();
        let ports = Ports::new(store.clone(), processes.clone(), FakeClock::default(), executor.clone());
        (store, processes, executor, Arc::new(ports))
    }

    fn begun() -> Facts {
        Facts {
            spec: Read::Present(sample::unowned(&sample::id(1))),
            begin: Read::Present(sample::begin()),
            ..Facts::default()
        }
    }

    fn request(force: bool) -> Request {
        let grace = Some(Duration::from_millis(1));
        Request { by: KilledBy::Person, reason: Some("enough".into()), grace, force }
    }

    #[test]
    fn scenario_24_a_finished_job_says_how_it_ended_and_no_process_is_signalled() {
        let (store, _, executor, ports) = world_of_executor();
        let id = sample::id(1);
        store.put(&id, Facts { end: Read::Present(sample::end(3)), ..begun() });
        let report = kill(&ports, &Waits::default(), &id, &request(true)).unwrap();
        assert!(report.already_ended && report.survivors.is_empty());
        assert_eq!(report.seen.facts.end.present(), Some(&sample::end(3)));
        assert!(executor.sweeps().is_empty());
        assert!(store.facts(&id).kills.is_empty(), "no request is published for a job that has ended");
        assert!(matches!(
            kill(&ports, &Waits::default(), &sample::id(2), &request(false)),
            Err(KillError::Wait(WaitError::Gone(_)))
        ));
    }

    #[test]
    fn a_running_job_gets_a_request_and_is_waited_for() {
        let (store, _, ports) = world();
        let id = sample::id(1);
        store.put(&id, begun());
        let alive = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        let supervisor = std::thread::spawn({
            let (store, id) = (store.clone(), id.clone());
            move || {
                while store.facts(&id).kills.is_empty() {
                    std::thread::yield_now();
                }
                let end = Fact::End(Box::new(sample::end(3)));
                let _ = store.publish(&id, &end, Durability::Power).unwrap();
                drop(alive);
            }
        });
        let report = kill(&ports, &Waits::default(), &id, &request(false)).unwrap();
        supervisor.join().unwrap();
        assert!(!report.already_ended);
        let facts = store.facts(&id);
        let (1, Read::Present(kill)) = &facts.kills[0] else { panic!("{facts:?}") };
        assert_eq!((kill.reason.as_deref(), kill.grace_ms), (Some("enough"), 1));
    }

    #[test]
    fn survivors_of_a_job_that_has_ended_can_still_be_killed() {
        let (store, _, executor, ports) = world_of_executor();
        let id = sample::id(1);
        let mut end = sample::end(0);
        end.survivors = vec![sample::process(7)];
        store.put(&id, Facts { end: Read::Present(end), ..begun() });
        let report = kill(&ports, &Waits::default(), &id, &request(false)).unwrap();
        assert!(report.already_ended && report.survivors.is_empty());
        assert_eq!(executor.sweeps(), [id]);
    }

    #[test]
    fn scenario_121_a_job_whose_processes_could_not_be_seen_can_still_be_killed() {
        let (store, _, executor, ports) = world_of_executor();
        let id = sample::id(1);
        let end = End { out_of_sight: Some("pid:[7]".into()), ..sample::end(0) };
        store.put(&id, Facts { end: Read::Present(end), ..begun() });
        executor.out_of_sight(Some("pid:[7]"));
        let report = kill(&ports, &Waits::default(), &id, &request(false)).unwrap();
        assert_eq!((report.already_ended, report.out_of_sight.as_deref()), (true, Some("pid:[7]")));
        executor.out_of_sight(None);
        let report = kill(&ports, &Waits::default(), &id, &request(false)).unwrap();
        assert_eq!((report.survivors, report.out_of_sight), (vec![], None));
        assert!(!executor.sweeps().is_empty());
    }

    #[test]
    fn what_a_newer_hearback_runs_is_not_killed() {
        let (store, _, ports) = world();
        let id = sample::id(1);
        store.put(&id, Facts { target: Read::Newer(2), ..begun() });
        assert!(matches!(
            kill(&ports, &Waits::default(), &id, &request(true)),
            Err(KillError::Wait(WaitError::Elsewhere(_)))
        ));
    }
}
