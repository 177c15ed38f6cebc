//! One look at the whole store: what is due is sent out, and what is not is awaited.

use std::fmt::Display;
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, Session};

use super::news::Task;
use super::open_jobs::{OpenJob, OpenJobs};
use super::run::Loop;
use super::work::{JobWork, SessionWork, of_job, of_session};
use crate::follow_up::Turn;
use crate::prune;
use crate::session::next_message;
use crate::wait::until_over;

/// A monitor looks at everything at least this often, whatever it heard.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);
/// How soon a launcher holds the lock of the folder that it has made.
const LAUNCH_LOCKED_WITHIN: Duration = Duration::from_millis(50);

impl Loop {
    /// Looks at everything, sends out what is due, and tells when to look again.
    pub(super) fn look(&mut self) -> Result<Duration, StoreError> {
        let now = self.now();
        if self.pruning.is_due(now) {
            prune::all(&self.monitor.ports, self.monitor.policy.retention)?;
            self.pruning.done(now);
        }
        let jobs = self.look_at_jobs()?;
        Ok(jobs.min(self.look_at_sessions()?))
    }

    fn look_at_jobs(&mut self) -> Result<Duration, StoreError> {
        let open = OpenJobs::look(&self.monitor.ports)?;
        self.job_pauses.retain(|id| open.jobs.iter().any(|job| job.id() == id));
        if !self.options.once {
            self.await_launches(open.blank);
        }
        Ok(open.jobs.iter().map(|job| self.look_at_job(job)).min().unwrap_or(LOOK_AT_LEAST_EVERY))
    }

    /// Does what is to be done about one job, and tells when to look again. A failure pauses this job and no other.
    fn look_at_job(&mut self, job: &OpenJob) -> Duration {
        let now = self.now();
        if let Some(left) = self.job_pauses.left(job.id(), now) {
            return left;
        }
        if self.options.once {
            self.leave_retries_of(job);
        }
        match of_job(&self.monitor.deliverer(), job) {
            Ok(work) => self.act_on_job(job, work),
            Err(error) => {
                let is_first = self.job_pauses.fail(job.id().clone(), now);
                // A job that was moved out of the way meanwhile needs nothing.
                if !error.is_gone() {
                    self.report(is_first, &format_args!("job {}", job.id()), error);
                }
                self.job_pauses.left(job.id(), now).unwrap_or_default()
            }
        }
    }

    fn act_on_job(&mut self, job: &OpenJob, work: JobWork) -> Duration {
        if work != JobWork::Deliver {
            self.job_pauses.succeed(job.id());
        }
        match work {
            JobWork::Nothing => LOOK_AT_LEAST_EVERY,
            JobWork::Rest(pause) => pause.min(LOOK_AT_LEAST_EVERY),
            JobWork::AwaitEnd => {
                self.await_end(job.id());
                LOOK_AT_LEAST_EVERY
            }
            JobWork::AwaitAttempt(n, pause) => {
                self.await_attempt(job.id(), n);
                pause.min(LOOK_AT_LEAST_EVERY)
            }
            JobWork::Deliver => {
                self.deliver(job.id(), job.session());
                LOOK_AT_LEAST_EVERY
            }
        }
    }

    fn deliver(&mut self, id: &JobId, session: Option<&Session>) {
        if !self.deliveries.begin(id, session) {
            return;
        }
        let turn = if self.options.once { Turn::Try } else { Turn::Wait };
        let id = id.clone();
        self.workers.spawn(Task::Deliver(id.clone()), move |monitor| {
            // An attempt that the sink refused is recorded, and due again later.
            monitor.deliverer().attempt(&id, turn).map(drop)
        });
    }

    /// A monitor that does not stay leaves further attempts to a process of their own. Best effort.
    fn leave_retries_of(&self, job: &OpenJob) {
        if self.monitor.deliverer().is_forsaken(&job.seen).unwrap_or(false) {
            let _ = self.monitor.relaunch.start_deliverer(job.id());
        }
    }

    fn await_end(&mut self, id: &JobId) {
        if self.options.once || !self.sleepers.begin(id) {
            return;
        }
        let id = id.clone();
        self.workers
            .spawn(Task::AwaitJob(id.clone()), move |monitor| until_over(&monitor.ports, &id).map(drop));
    }

    /// The process that makes this attempt leaves the next one to the monitor, and may end at any moment.
    fn await_attempt(&mut self, id: &JobId, n: u32) {
        if self.options.once || !self.sleepers.begin(id) {
            return;
        }
        let id = id.clone();
        self.workers.spawn(Task::AwaitJob(id.clone()), move |monitor| {
            monitor.ports.store.lock(&id, JobLock::Lease(n), LockMode::Shared, Wait::Block).map(drop)
        });
    }

    /// Hears of jobs that are being launched: they have a folder, and nothing in it yet that says what they are.
    fn await_launches(&mut self, blank: Vec<JobId>) {
        for id in self.sleepers.launches(blank) {
            self.workers.spawn(Task::AwaitLaunch(id.clone()), move |monitor| {
                // A launcher makes the folder, and then takes its lock.
                std::thread::sleep(LAUNCH_LOCKED_WITHIN);
                monitor.ports.store.lock(&id, JobLock::Launch, LockMode::Shared, Wait::Block).map(drop)
            });
        }
    }

    fn look_at_sessions(&mut self) -> Result<Duration, StoreError> {
        let sessions = self.monitor.ports.sessions.sessions()?;
        self.session_pauses.retain(|session| sessions.contains(session));
        Ok(sessions.iter().map(|session| self.look_at_session(session)).min().unwrap_or(LOOK_AT_LEAST_EVERY))
    }

    /// Does what is to be done about the messages of one session, and tells when to look again. A failure pauses this
    /// session and no other.
    fn look_at_session(&mut self, session: &Session) -> Duration {
        let (ports, now) = (&self.monitor.ports, self.now());
        if let Some(left) = self.session_pauses.left(session, now) {
            return left;
        }
        let facts = match ports.sessions.session(session) {
            Ok(facts) => facts,
            Err(error) => {
                let is_first = self.session_pauses.fail(session.clone(), now);
                self.report(is_first, &format_args!("session {session}"), error);
                return self.session_pauses.left(session, now).unwrap_or_default();
            }
        };
        match of_session(&next_message(&facts, &ports.clock.stamp(), &self.monitor.policy.retry)) {
            SessionWork::Nothing => {}
            SessionWork::Rest(pause) => return pause.min(LOOK_AT_LEAST_EVERY),
            SessionWork::HandOver => self.hand_over(session),
        }
        LOOK_AT_LEAST_EVERY
    }

    fn hand_over(&mut self, session: &Session) {
        if !self.hand_overs.begin(session) {
            return;
        }
        let wait = if self.options.once { Wait::Try } else { Wait::Block };
        let session = session.clone();
        self.workers.spawn(Task::HandOver(session.clone()), move |monitor| {
            monitor.inbox().hand_over_when_free(&session, wait).map(drop)
        });
    }

    /// Takes note of a failure with one item. A monitor that does not stay returns the first of them when it is done.
    fn report(&mut self, is_first: bool, item: &dyn Display, error: StoreError) {
        if is_first {
            self.monitor.note(&format!("{item} cannot be looked at: {error}"));
        }
        if self.options.once {
            self.failure.get_or_insert(error);
        }
    }
}
