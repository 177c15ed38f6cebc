//! Ending a job on request: ask its supervisor, wait for the end, and say who survived.

use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::{
    BegunBy, Extra, FORMAT, Fact, JobId, JobState, Kill, KilledBy, Limits, Observed, ProcessIdentity,
};
use tracing::{debug, info, warn};

use crate::reconcile::SWEEP_WITHIN;
use crate::wait::{Until, WaitError, Waits, until_over};
use crate::{Ports, reconcile};

/// What a supervisor may take for everything but the grace: to wake up, to force, to record.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How a job is to be ended.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who asks.
    pub by: KilledBy,
    /// In their words.
    pub reason: Option<String>,
    /// Between asking and forcing; what the job was launched with when nothing is said.
    pub grace: Option<Duration>,
    /// Ends a supervisor that does not answer, too.
    pub force: bool,
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The job as it is now: over.
    pub seen: Observed,
    /// It was over before anybody asked, and nobody was signalled but survivors.
    pub was_over: bool,
    /// Who would not end.
    pub survivors: Vec<ProcessIdentity>,
}

/// Why nothing can be said about the end of a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KillError {
    /// There is no such job, or it is not ours to end.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// The supervisor is there and does not answer: it is stopped, or hangs.
    #[error("the supervisor of job `{0}` does not answer, so its processes may still run")]
    Unanswered(JobId),
    /// The store failed, and nobody was signalled.
    #[error("job `{id}` could not be killed")]
    Store {
        /// The job.
        id: JobId,
        /// What the store said.
        #[source]
        source: StoreError,
    },
}

/// Ends a job and everything that it started. Safe to repeat: a job that is over is only looked at.
///
/// # Errors
///
/// When it cannot be shown that the job is over.
pub fn kill(ports: &Arc<Ports>, waits: &Waits, id: &JobId, request: &Request) -> Result<Report, KillError> {
    let failed = |source| KillError::Store { id: id.clone(), source };
    // What cannot be brought up to date can still be looked at.
    if let Err(error) = reconcile::job(ports, id) {
        debug!(job = %id, %error, "job not brought up to date");
    }
    let seen = observe(ports, id)?;
    if ports.hands_off(&seen).is_some() {
        return Err(WaitError::Elsewhere(id.clone()).into());
    }
    if matches!(seen.fold().state, JobState::Ended { .. }) {
        return end_survivors(ports, seen).map_err(failed);
    }
    let limits = seen.facts.spec.present().map(|spec| spec.limits).unwrap_or_default();
    let grace = if request.force { Duration::ZERO } else { grace(request, &limits) };
    ask(ports, &seen, request, grace).map_err(failed)?;
    info!(job = %id, by = %request.by, ?grace, "kill requested");
    let within = grace.saturating_add(SWEEP_WITHIN * 2 + ANSWER_WITHIN);
    let mut over = None;
    waits.wait(ports, std::slice::from_ref(id), Until::All, Some(within), |_, answer| over = Some(answer));
    let seen = match over {
        Some(seen) => seen?,
        None if request.force => {
            warn!(job = %id, "supervisor does not answer, killing it");
            end_supervisor(ports, id).map_err(failed)?;
            until_over(ports, id)?
        }
        None => return Err(KillError::Unanswered(id.clone())),
    };
    let survivors = survivors(&seen);
    Ok(Report { seen, was_over: false, survivors })
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

/// Writes the request down, and rings. Who asks at the same time gets the next number.
fn ask(ports: &Ports, seen: &Observed, request: &Request, grace: Duration) -> Result<(), StoreError> {
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
            // It ended and was moved away meanwhile.
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    // Nobody there means that the supervisor is only beginning, and looks by itself, or that it is gone.
    ports.processes.ring(&ports.store.bell_path(&seen.id))?;
    Ok(())
}

/// A job that is over may have left somebody who would not end, or was kept.
fn end_survivors(ports: &Ports, seen: Observed) -> Result<Report, StoreError> {
    let survivors = match survivors(&seen).is_empty() {
        true => Vec::new(),
        false => reconcile::sweep(ports, &seen)?.survivors,
    };
    Ok(Report { seen, was_over: true, survivors })
}

fn survivors(seen: &Observed) -> Vec<ProcessIdentity> {
    seen.facts.end.present().map(|end| end.survivors.clone()).unwrap_or_default()
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
    use hearback_core::{Durability, Facts, Read};

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
    fn scenario_24_a_finished_job_says_how_it_ended_and_nobody_is_signalled() {
        let (store, _, executor, ports) = world_of_executor();
        let id = sample::id(1);
        store.put(&id, Facts { end: Read::Present(sample::end(3)), ..begun() });
        let report = kill(&ports, &Waits::default(), &id, &request(true)).unwrap();
        assert!(report.was_over && report.survivors.is_empty());
        assert_eq!(report.seen.facts.end.present(), Some(&sample::end(3)));
        assert!(executor.sweeps().is_empty());
        assert!(store.facts(&id).kills.is_empty(), "nothing is asked of a job that is over");
        assert!(matches!(
            kill(&ports, &Waits::default(), &sample::id(2), &request(false)),
            Err(KillError::Wait(WaitError::Gone(_)))
        ));
    }

    #[test]
    fn a_running_job_is_asked_and_waited_for() {
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
        assert!(!report.was_over);
        let facts = store.facts(&id);
        let (1, Read::Present(asked)) = &facts.kills[0] else { panic!("{facts:?}") };
        assert_eq!((asked.reason.as_deref(), asked.grace_ms), (Some("enough"), 1));
    }

    #[test]
    fn survivors_of_a_job_that_is_over_can_still_be_ended() {
        let (store, _, executor, ports) = world_of_executor();
        let id = sample::id(1);
        let mut end = sample::end(0);
        end.survivors = vec![sample::process(7)];
        store.put(&id, Facts { end: Read::Present(end), ..begun() });
        let report = kill(&ports, &Waits::default(), &id, &request(false)).unwrap();
        assert!(report.was_over && report.survivors.is_empty());
        assert_eq!(executor.sweeps(), [id]);
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
