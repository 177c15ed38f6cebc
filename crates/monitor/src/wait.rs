//! Waiting for jobs without polling: the kernel wakes whoever waits for a lock when its holder is gone.

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

/// Why a wait ended without an end.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// There is no such job, or no longer.
    #[error("job `{0}` is gone")]
    Gone(JobId),
    /// It cannot be told from here when the job ends.
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

/// Sleeps until a job is over, and tells what was seen of it then.
///
/// # Errors
///
/// When the job is gone, or is none that can be watched from here.
pub fn until_over(ports: &Ports, id: &JobId) -> Result<Observed, WaitError> {
    let failed = |error: StoreError| WaitError::Store { id: id.clone(), message: error.to_string() };
    loop {
        let observe = || ports.store.observe(id).map_err(failed)?.ok_or_else(|| WaitError::Gone(id.clone()));
        if let Some(over) = over(observe()?) {
            return Ok(over);
        }
        {
            let lock = |lock| ports.store.lock(id, lock, LockMode::Shared, Wait::Block).map_err(failed);
            let _launching = lock(JobLock::Launch)?;
            let _alive = lock(JobLock::Alive)?;
            // While we hold both, nobody launches and nobody supervises, so what we see now is final. Only a lock
            // file that is not there yet cannot be held: then a late supervisor may have begun, and we wait for it.
            let seen = observe()?;
            match seen.fold().state {
                // An end can be read whatever wrote it, and wherever.
                JobState::Ended { .. } => return Ok(seen),
                JobState::Nothing => return Err(WaitError::Gone(id.clone())),
                _ if ports.hands_off(&seen).is_some() => return Err(WaitError::Elsewhere(id.clone())),
                // Nobody is there, and nothing can be done about it: that is how it ended.
                _ if reconcile::plan(&Observed { locks: LockView::FREE, ..seen.clone() }, &ports.here)
                    .is_none() =>
                {
                    return Ok(seen);
                }
                _ => {}
            }
        }
        // Nobody else has recorded the loss, so we do; after that, or after whoever is quicker, there is an end.
        match reconcile::job(ports, id) {
            Ok(_) => {}
            // A store that cannot be written still tells the truth: nobody is there, and there is no end.
            Err(error) if error.is_unwritable() => return observe(),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// What is seen of a job that is over; nothing of any other, and what cannot be told now is told by waiting.
fn over_now(ports: &Ports, id: &JobId) -> Option<Observed> {
    if let Err(error) = reconcile::job(ports, id) {
        debug!(job = %id, %error, "job not brought up to date");
    }
    ports.store.observe(id).ok().flatten().and_then(over)
}

fn over(seen: Observed) -> Option<Observed> {
    matches!(fold(&seen.facts, seen.locks).state, JobState::Ended { .. }).then_some(seen)
}

type Answer = Result<Observed, WaitError>;

/// Somebody who waits for a job.
#[derive(Debug)]
struct Waiting {
    /// Which of the waits it is.
    wait: u64,
    sender: Sender<(JobId, Answer)>,
}

/// Who waits for which job, and how many waits there have been.
#[derive(Debug, Default)]
struct Parked {
    jobs: HashMap<JobId, Vec<Waiting>>,
    waits: u64,
}

/// Waits with a deadline, and for several jobs at once.
///
/// A sleep in the kernel cannot be cut short, so one thread a job sleeps there; everybody who waits for that job
/// shares it, however often they give up and come back.
#[derive(Debug, Default)]
pub struct Waits {
    parked: Arc<Mutex<Parked>>,
}

fn lock(parked: &Mutex<Parked>) -> MutexGuard<'_, Parked> {
    parked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a wait for several jobs is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// With the last of them.
    All,
    /// With the first of them.
    Any,
}

impl Waits {
    /// Waits for `ids`, but not longer than `within`, and calls `each` as they end. Tells whether the wait was over
    /// before its deadline.
    pub fn wait(
        &self,
        ports: &Arc<Ports>,
        ids: &[JobId],
        until: Until,
        within: Option<Duration>,
        mut each: impl FnMut(&JobId, Answer),
    ) -> bool {
        if let ([id], None) = (ids, within) {
            each(id, until_over(ports, id));
            return true;
        }
        // Those that are over already are told first and in order, so that a wait without any time is a look.
        let (mut left, mut asked) = (Vec::new(), BTreeSet::new());
        for id in ids.iter().filter(|id| asked.insert(*id)) {
            match over_now(ports, id) {
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
            self.park(ports, id, Waiting { wait, sender: sender.clone() });
        }
        drop(sender);
        // A deadline beyond the end of the clock is none.
        let deadline = within.and_then(|within| ports.clock.awake().checked_add(within));
        let mut in_time = true;
        while !left.is_empty() {
            let next = match deadline {
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(deadline) => receiver.recv_timeout(deadline.saturating_sub(ports.clock.awake())),
            };
            let Ok((id, answer)) = next else {
                in_time = false;
                break;
            };
            left.retain(|waited| **waited != id);
            each(&id, answer);
            if until == Until::Any {
                break;
            }
        }
        self.leave(wait, &left);
        in_time
    }

    /// Forgets a wait; the thread that sleeps for it stays for the next.
    fn leave(&self, wait: u64, ids: &[&JobId]) {
        let mut parked = lock(&self.parked);
        for id in ids {
            if let Some(waiting) = parked.jobs.get_mut(*id) {
                waiting.retain(|waiting| waiting.wait != wait);
            }
        }
    }

    fn park(&self, ports: &Arc<Ports>, id: &JobId, waiting: Waiting) {
        let mut parked = lock(&self.parked);
        if let Some(sleeping) = parked.jobs.get_mut(id) {
            sleeping.push(waiting);
            return;
        }
        parked.jobs.insert(id.clone(), vec![waiting]);
        drop(parked);
        let sleep = {
            let (ports, id, parked) = (Arc::clone(ports), id.clone(), Arc::clone(&self.parked));
            move || {
                // Told even if the sleep itself fails, so that nobody waits for a thread that is gone.
                let answer = catch_unwind(AssertUnwindSafe(|| until_over(&ports, &id)));
                tell(&parked, &id, &answer.unwrap_or_else(|_| Err(cannot_wait(&id, "the wait failed"))));
            }
        };
        if let Err(error) = std::thread::Builder::new().spawn(sleep) {
            tell(&self.parked, id, &Err(cannot_wait(id, &error.to_string())));
        }
    }
}

fn tell(parked: &Mutex<Parked>, id: &JobId, answer: &Answer) {
    let waiting = lock(parked).jobs.remove(id);
    for waiting in waiting.into_iter().flatten() {
        let _ = waiting.sender.send((id.clone(), answer.clone())); // They may have given up.
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
        assert_eq!((parked.jobs.len(), parked.jobs[&id].len()), (1, 0), "one thread, and nobody who gave up");
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
            |id, answer| {
                seen.push((id.clone(), answer.unwrap().facts.end));
            }
        ));
        assert_eq!(seen, [(id, Read::Present(sample::end(3)))]);
    }

    #[test]
    fn those_that_are_over_are_told_at_once_and_in_order() {
        let (store, ports) = world();
        let ids = [sample::id(2), sample::id(1), sample::id(2)];
        for id in &ids {
            store.put(id, Facts { end: Read::Present(sample::end(0)), ..Facts::default() });
        }
        for (until, told) in [(Until::All, &ids[..2]), (Until::Any, &ids[..1])] {
            let mut seen = Vec::new();
            let no_time = Some(Duration::ZERO);
            assert!(Waits::default().wait(&ports, &ids, until, no_time, |id, _| seen.push(id.clone())));
            assert_eq!(seen, told);
        }
    }

    #[test]
    fn a_wait_for_an_orphan_records_the_loss_itself() {
        let (store, ports) = world();
        let id = sample::id(1);
        begun(&store, &id);
        let seen = until_over(&ports, &id).unwrap();
        assert!(seen.facts.end.present().is_some());
        assert!(matches!(until_over(&ports, &sample::id(2)), Err(WaitError::Gone(_))));
    }

    #[test]
    fn what_cannot_end_here_is_not_waited_for() {
        let (store, ports) = world();
        let id = sample::id(1);
        begun(&store, &id);
        let facts = Facts { target: Read::Newer(2), ..store.facts(&id) };
        store.put(&id, facts);
        assert!(matches!(until_over(&ports, &id), Err(WaitError::Elsewhere(_))));
        store.put(&id, Facts::default());
        assert!(
            matches!(until_over(&ports, &id), Err(WaitError::Gone(_))),
            "a folder without spec is no job"
        );
    }
}
