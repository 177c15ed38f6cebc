//! Waiting for jobs without polling: when the holder of a lock dies, the kernel wakes the processes that wait for it.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, JobState, LockView, Observed, fold};
use tracing::debug;

use crate::{Ports, reconcile};

/// Why a wait returned before the job ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// There is no such job, or no longer.
    #[error("job `{0}` is gone")]
    Gone(JobId),
    /// The end of this job cannot be seen from here.
    #[error(
        "job `{0}` cannot be waited for here: it belongs to another machine, another store or a newer hearback"
    )]
    Elsewhere(JobId),
    /// The store failed.
    #[error("job `{id}` cannot be waited for: {message}")]
    Store {
        /// The job.
        id: JobId,
        /// What the store said.
        message: String,
    },
}

/// Sleeps until a job has ended, and returns what was seen of it then.
///
/// # Errors
///
/// When the job is gone, or its end cannot be seen from here.
pub fn until_ended(ports: &Ports, id: &JobId) -> Result<Observed, WaitError> {
    let failed = |error: StoreError| WaitError::Store { id: id.clone(), message: error.to_string() };
    loop {
        let observe = || ports.store.observe(id).map_err(failed)?.ok_or_else(|| WaitError::Gone(id.clone()));
        let seen = observe()?;
        // Once a supervisor has begun, the launcher has no say any more, however long it holds its lock.
        let has_begun = !seen.facts.begin.is_absent();
        if let Some(ended) = ended(seen) {
            return Ok(ended);
        }
        {
            let lock = |lock| ports.store.lock(id, lock, LockMode::Shared, Wait::Block).map_err(failed);
            let _launching = if has_begun { None } else { lock(JobLock::Launch)? };
            let _alive = lock(JobLock::Alive)?;
            // While this process holds the locks, no launcher that matters and no supervisor is alive, so what it sees
            // now is final. A lock file that does not exist yet cannot be held: then a late supervisor may have begun,
            // and the next round waits for it.
            let seen = observe()?;
            match seen.fold().state {
                // An end is valid whichever process wrote it, on this machine or another.
                JobState::Ended { .. } => return Ok(seen),
                JobState::Nothing => return Err(WaitError::Gone(id.clone())),
                _ if ports.hands_off(&seen).is_some() => return Err(WaitError::Elsewhere(id.clone())),
                // No process is alive, and reconcile has nothing to do: this state is final.
                _ if reconcile::plan(&Observed { locks: LockView::FREE, ..seen.clone() }, &ports.here)
                    .is_none() =>
                {
                    return Ok(seen);
                }
                _ => {}
            }
        }
        // The supervisor died without an end. Reconcile records the loss, here or in a process that is quicker.
        match reconcile::job(ports, id) {
            Ok(_) => {}
            // A store that cannot be written is still true: no process is alive, and there is no end.
            Err(error) if error.is_unwritable() => return observe(),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// A job that has ended; none if it has not, or if that cannot be seen now. Then the wait reports it.
fn ended_now(ports: &Ports, id: &JobId) -> Option<Observed> {
    if let Err(error) = reconcile::job(ports, id) {
        debug!(job = %id, %error, "job not brought up to date");
    }
    ports.store.observe(id).ok().flatten().and_then(ended)
}

fn ended(seen: Observed) -> Option<Observed> {
    matches!(fold(&seen.facts, seen.locks).state, JobState::Ended { .. }).then_some(seen)
}

type WaitResult = Result<Observed, WaitError>;

/// A caller that waits for a job.
#[derive(Debug)]
struct Waiter {
    /// The number of its wait.
    wait: u64,
    sender: Sender<Heard>,
}

/// What a caller that waits hears.
#[derive(Debug)]
enum Heard {
    Ended(JobId, Box<WaitResult>),
    Cancelled,
}

/// Ends a wait before its time, from another thread.
#[derive(Clone, Default)]
pub struct CancelWait(Arc<Mutex<Cancellation>>);

#[derive(Default)]
struct Cancellation {
    is_cancelled: bool,
    /// What ends the waits.
    waits: Vec<Box<dyn FnOnce() + Send>>,
}

impl std::fmt::Debug for CancelWait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelWait").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

impl CancelWait {
    /// Ends the waits that have this, and those that get it later.
    pub fn cancel(&self) {
        let mut cancellation = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cancellation.is_cancelled = true;
        cancellation.waits.drain(..).for_each(|end| end());
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_cancelled
    }

    /// Calls `end` when it is cancelled, or now if it is.
    pub fn on_cancel(&self, end: impl FnOnce() + Send + 'static) {
        let mut cancellation = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cancellation.is_cancelled {
            end();
        } else {
            cancellation.waits.push(Box::new(end));
        }
    }
}

/// The callers that wait, by job, and how many waits there have been.
#[derive(Debug, Default)]
struct Parked {
    jobs: HashMap<JobId, Vec<Waiter>>,
    waits: u64,
}

/// Waits with a deadline, and for several jobs at once.
///
/// A sleep in the kernel cannot be cut short, so one thread for each job sleeps there. All callers that wait for that
/// job share the thread, however often they give up and come back.
#[derive(Debug, Default)]
pub struct Waits {
    parked: Arc<Mutex<Parked>>,
}

fn lock(parked: &Mutex<Parked>) -> MutexGuard<'_, Parked> {
    parked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a wait for several jobs returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When all have ended.
    All,
    /// When one has ended.
    Any,
}

impl Waits {
    /// Waits for `ids`, but not longer than `within`, and calls `each` as they end. Returns whether the wait was
    /// complete before its deadline.
    pub fn wait(
        &self,
        ports: &Arc<Ports>,
        ids: &[JobId],
        until: Until,
        within: Option<Duration>,
        mut each: impl FnMut(&JobId, WaitResult),
    ) -> bool {
        if let ([id], None) = (ids, within) {
            each(id, until_ended(ports, id));
            return true;
        }
        self.wait_or_cancel(ports, ids, until, within, &CancelWait::default(), each)
    }

    /// The same for a wait that another thread may end.
    pub fn wait_or_cancel(
        &self,
        ports: &Arc<Ports>,
        ids: &[JobId],
        until: Until,
        within: Option<Duration>,
        cancel: &CancelWait,
        mut each: impl FnMut(&JobId, WaitResult),
    ) -> bool {
        // Jobs that have ended already come first and in order, so a wait of zero time is a plain look.
        let (mut left, mut known) = (Vec::new(), BTreeSet::new());
        for id in ids.iter().filter(|id| known.insert(*id)) {
            match ended_now(ports, id) {
                None => left.push(id),
                Some(seen) => {
                    each(id, Ok(seen));
                    if until == Until::Any {
                        return true;
                    }
                }
            }
        }
        let (sender, receiver) = channel();
        let wait = {
            let mut parked = lock(&self.parked);
            parked.waits += 1;
            parked.waits
        };
        for id in &left {
            self.park(ports, id, Waiter { wait, sender: sender.clone() });
        }
        // The caller may have given up by then.
        cancel.on_cancel(move || _ = sender.send(Heard::Cancelled));
        // A deadline beyond the end of the clock is none.
        let deadline = within.and_then(|within| ports.clock.awake().checked_add(within));
        let mut in_time = true;
        while !left.is_empty() {
            let next = match deadline {
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => receiver.recv_timeout(deadline.saturating_sub(ports.clock.awake())),
            };
            let Ok(Heard::Ended(id, result)) = next else {
                in_time = false;
                break;
            };
            left.retain(|waited| **waited != id);
            each(&id, *result);
            if until == Until::Any {
                break;
            }
        }
        self.leave(wait, &left);
        in_time
    }

    /// Forgets a wait. The thread that sleeps for it stays, for the next wait.
    fn leave(&self, wait: u64, ids: &[&JobId]) {
        let mut parked = lock(&self.parked);
        for id in ids {
            if let Some(waiters) = parked.jobs.get_mut(*id) {
                waiters.retain(|waiter| waiter.wait != wait);
            }
        }
    }

    fn park(&self, ports: &Arc<Ports>, id: &JobId, waiter: Waiter) {
        let mut parked = lock(&self.parked);
        if let Some(sleeping) = parked.jobs.get_mut(id) {
            sleeping.push(waiter);
            return;
        }
        parked.jobs.insert(id.clone(), vec![waiter]);
        drop(parked);
        let sleep = {
            let (ports, id, parked) = (Arc::clone(ports), id.clone(), Arc::clone(&self.parked));
            move || {
                // Even a panic is reported, so that no caller waits for a thread that has ended.
                let result = catch_unwind(AssertUnwindSafe(|| until_ended(&ports, &id)));
                report(&parked, &id, &result.unwrap_or_else(|_| Err(cannot_wait(&id, "the wait failed"))));
            }
        };
        if let Err(error) = std::thread::Builder::new().spawn(sleep) {
            report(&self.parked, id, &Err(cannot_wait(id, &error.to_string())));
        }
    }
}

fn report(parked: &Mutex<Parked>, id: &JobId, result: &WaitResult) {
    let waiters = lock(parked).jobs.remove(id);
    for waiter in waiters.into_iter().flatten() {
        let _ = waiter.sender.send(Heard::Ended(id.clone(), Box::new(result.clone()))); // The caller may have given up.
    }
}

fn cannot_wait(id: &JobId, message: &str) -> WaitError {
    WaitError::Store { id: id.clone(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::port::record::{FactStore, JobFiles};
    use hearback_core::testing::{FakeClock, FakeExecutor, FakeProcesses, FakeStore, sample};
    use hearback_core::{Durability, Fact, Facts, Read};

    fn world() -> (FakeStore, Arc<Ports>) {
        let store = FakeStore::default();
        (
            store.clone(),
            Arc::new(Ports::new(
                store,
                FakeProcesses::default(),
                FakeClock::default(),
                FakeExecutor::default(),
            )),
        )
    }

    fn begun(store: &FakeStore, id: &JobId) {
        let facts = Facts {
            spec: Read::Present(sample::unowned(id)),
            begin: Read::Present(sample::begin()),
            ..Facts::default()
        };
        store.put(id, facts);
    }

    #[test]
    fn a_wait_gives_up_at_its_deadline_and_finds_the_same_thread_again() {
        let (store, ports) = world();
        let id = sample::id(1);
        begun(&store, &id);
        let alive = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        let waits = Waits::default();
        for _ in 0..3 {
            let brief = Some(Duration::from_millis(1));
            assert!(
                !waits
                    .wait(&ports, std::slice::from_ref(&id), Until::All, brief, |_, _| panic!("it runs on"))
            );
        }
        let parked = lock(&waits.parked);
        assert_eq!(
            (parked.jobs.len(), parked.jobs[&id].len()),
            (1, 0),
            "one thread, and no caller that gave up"
        );
        drop(parked);
        let end = Fact::End(Box::new(sample::end(3)));
        let _ = FactStore::publish(&store, &id, &end, Durability::Power).unwrap();
        drop(alive);
        let mut seen = Vec::new();
        assert!(waits.wait(
            &ports,
            std::slice::from_ref(&id),
            Until::Any,
            Some(Duration::from_secs(20)),
            |id, result| {
                seen.push((id.clone(), result.unwrap().facts.end));
            }
        ));
        assert_eq!(seen, [(id, Read::Present(sample::end(3)))]);
    }

    #[test]
    fn another_thread_ends_a_wait_and_the_job_runs_on() {
        let (store, ports) = world();
        let id = sample::id(1);
        begun(&store, &id);
        let _alive = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Try).unwrap();
        let (waits, cancel, ids) = (Waits::default(), CancelWait::default(), std::slice::from_ref(&id));
        let wait =
            || waits.wait_or_cancel(&ports, ids, Until::All, None, &cancel, |_, _| panic!("it runs on"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(wait);
            cancel.cancel();
            assert!(!waiting.join().unwrap());
        });
        assert!(cancel.is_cancelled() && !wait(), "nor does one begin");
    }

    #[test]
    fn jobs_that_have_ended_are_reported_at_once_and_in_order() {
        let (store, ports) = world();
        let ids = [sample::id(2), sample::id(1), sample::id(2)];
        for id in &ids {
            store.put(id, Facts { end: Read::Present(sample::end(0)), ..Facts::default() });
        }
        for (until, reported) in [(Until::All, &ids[..2]), (Until::Any, &ids[..1])] {
            let mut seen = Vec::new();
            let no_time = Some(Duration::ZERO);
            assert!(Waits::default().wait(&ports, &ids, until, no_time, |id, _| seen.push(id.clone())));
            assert_eq!(seen, reported);
        }
    }

    #[test]
    fn a_wait_for_an_orphan_records_the_loss_itself() {
        let (store, ports) = world();
        let id = sample::id(1);
        begun(&store, &id);
        let seen = until_ended(&ports, &id).unwrap();
        assert!(seen.facts.end.present().is_some());
        assert!(matches!(until_ended(&ports, &sample::id(2)), Err(WaitError::Gone(_))));
    }

    #[test]
    fn what_cannot_end_here_is_not_waited_for() {
        let (store, ports) = world();
        let id = sample::id(1);
        begun(&store, &id);
        let facts = Facts { target: Read::Newer(2), ..store.facts(&id) };
        store.put(&id, facts);
        assert!(matches!(until_ended(&ports, &id), Err(WaitError::Elsewhere(_))));
        store.put(&id, Facts::default());
        assert!(
            matches!(until_ended(&ports, &id), Err(WaitError::Gone(_))),
            "a folder without spec is no job"
        );
    }
}
