//! The follow-ups of jobs: listing, reading, closing and delivering them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use hearback_core::message::Excerpt;
use hearback_core::port::process::{DetachedRequest, ProcessControl, SupervisorRequest};
use hearback_core::port::record::{FactStore, Housekeeping, StoreError};
use hearback_core::port::session::SessionStore;
use hearback_core::port::sink::{Delivery, DeliveryContext, SinkError, SinkReply, Sinks};
use hearback_core::port::watch::StoreWatch;
use hearback_core::{
    ClaimToken, End, Facts, FollowUpState, JobId, JobView, LockView, Observed, Outcome, Output, Place, Read,
    ReceiptHow, Session, SmallSort,
};
use hearback_monitor::delivery::{self, CallerClaim, ClaimHold, Closed, Deliverer, Released};
use hearback_monitor::host::{Changed, JobChanges};
use hearback_monitor::wait::WaitLimit;
use tracing::{debug, warn};

use crate::permissions::{Capability, Guarded};
use crate::sinks::{NoSink, SinkOverview};
use crate::{Hearback, Job, Listing, Request, Scope, Select};

/// How many jobs of history are listed at first to find those of the last hour.
const RECENT_LISTED: usize = 256;

/// The answer to a reader who asks for the next follow-up.
#[derive(Debug)]
#[non_exhaustive]
pub struct NextFollowUp {
    /// The follow-up; none if none is known to be pending.
    pub delivery: Option<Delivery>,
    /// Jobs that could not be read. Their follow-ups may be pending.
    pub problems: Vec<(JobId, StoreError)>,
}

/// The answer to a caller that claims a follow-up.
#[derive(Debug)]
pub struct ClaimedFollowUp {
    /// The follow-up; none if none is known to be free.
    pub claim: Option<CallerClaim>,
    /// Jobs that could not be read. Their follow-ups may be pending.
    pub problems: Vec<(JobId, StoreError)>,
}

/// Why a token was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Its time has passed, and another process has the follow-up.
    #[error("the claim on the follow-up of job `{0}` is over, and another process has it")]
    Overtaken(JobId),
    /// It is no token of this follow-up.
    #[error("`{0}` is not the token of a claim")]
    Unknown(ClaimToken),
    /// The records failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Jobs that could not be read.
type Problems = Vec<(JobId, StoreError)>;

/// What becomes of a follow-up that a caller looks at.
enum Pick<T> {
    Taken(T),
    /// It may be picked after this long.
    Later(Duration),
    No,
}

impl Hearback {
    /// The open follow-ups of a scope: pending, leased, or dead letters. The oldest end comes first. Jobs that could
    /// not be read are named: their follow-ups may be pending.
    ///
    /// # Errors
    ///
    /// When the open jobs cannot be listed.
    pub fn follow_ups(&self, scope: &Scope) -> Result<Listing, StoreError> {
        let select = Select { scope: scope.clone(), history_max: Some(0), ..Select::default() };
        let mut open = self.jobs(&select)?;
        open.jobs.retain(|job| is_open(job.view.follow_up.state));
        open.jobs.small_sort_by(by_end);
        Ok(open)
    }

    /// The next pending follow-up of a scope, or that of one job, which stays pending; waits for one, but not longer
    /// than `limit` says. While it waits, it looks only at jobs that change. A dead letter is only found by its job.
    ///
    /// # Errors
    ///
    /// When the jobs cannot be read, or not be watched.
    pub fn next_follow_up(
        &self,
        scope: &Scope,
        of: Option<&JobId>,
        limit: impl Into<WaitLimit>,
    ) -> Result<NextFollowUp, StoreError> {
        let pick = |job: &Job| Ok(if is_next(job, of) { Pick::Taken(self.delivery(job)) } else { Pick::No });
        let (delivery, problems) = self.await_follow_up(scope, limit.into(), pick)?;
        Ok(NextFollowUp { delivery, problems })
    }

    /// The first follow-up that is picked, from the oldest end on.
    fn await_follow_up<T>(
        &self,
        scope: &Scope,
        limit: WaitLimit,
        mut pick: impl FnMut(&Job) -> Result<Pick<T>, StoreError>,
    ) -> Result<(Option<T>, Problems), StoreError> {
        let within = limit.within().unwrap_or(Duration::MAX);
        let _hook = self.wake_on_cancel(&limit);
        let deadline = self.ports.clock.awake().saturating_add(within);
        // The first look comes after the watch was made, so that nothing happens unseen between the two.
        let mut changes = (!within.is_zero()).then(|| self.job_changes()).transpose()?;
        let Listing { mut jobs, mut problems, .. } = self.follow_ups(scope)?;
        // When one of those that were passed over can be picked, which no change tells.
        let mut again: Option<Duration> = None;
        loop {
            let mut picked = None;
            for job in &jobs {
                match pick(job) {
                    Ok(Pick::Taken(taken)) => {
                        picked = Some(taken);
                        break;
                    }
                    Ok(Pick::Later(pause)) => {
                        let at = self.ports.clock.awake().saturating_add(pause);
                        again = Some(again.map_or(at, |known| known.min(at)));
                    }
                    Ok(Pick::No) => {}
                    Err(error) => problems.push((job.view.id.clone(), error)),
                }
            }
            let now = self.ports.clock.awake();
            let left = deadline.saturating_sub(now);
            let is_to_wait = picked.is_none() && !left.is_zero() && !limit.is_cancelled();
            let Some(changes) = changes.as_mut().filter(|_| is_to_wait) else {
                return Ok((picked, problems));
            };
            let pause = again.map_or(left, |at| left.min(at.saturating_sub(now)));
            let changed = changes.wait_unless(pause, || limit.is_cancelled(), |id| self.may_see(scope, id));
            let is_again = again.is_some_and(|at| at <= self.ports.clock.awake());
            match changed {
                _ if is_again => {
                    again = None;
                    Listing { jobs, problems, .. } = self.follow_ups(scope)?;
                }
                Changed::Everything => Listing { jobs, problems, .. } = self.follow_ups(scope)?,
                Changed::Jobs(changed) => {
                    jobs.clear();
                    for (id, seen) in changed {
                        problems.retain(|(known, _)| *known != id);
                        match seen {
                            Ok(seen) => jobs.extend(seen.and_then(|seen| self.shown(seen))),
                            Err(error) => problems.push((id, error)),
                        }
                    }
                    jobs.retain(|job| {
                        scope.sees(job.view.session.as_ref()) && is_open(job.view.follow_up.state)
                    });
                    jobs.iter().for_each(|job| self.start_deliverer_if_needed(&job.seen));
                    jobs.small_sort_by(by_end);
                }
            }
        }
    }

    /// The open jobs of a session.
    pub(crate) fn open_jobs_of(&self, session: &Session) -> Result<Vec<JobId>, StoreError> {
        let is_of = |id: &JobId| match self.store.spec(id) {
            Ok(Read::Present(spec)) => spec.session.as_ref() == Some(session),
            _ => false,
        };
        Ok(self.store.open_jobs()?.into_iter().filter(is_of).collect())
    }

    /// Claims the next pending follow-up of a scope that no sink gets, or that of one job, for a caller that exits: for
    /// so long, no other caller gets it. Waits for one, but not longer than `limit` says.
    ///
    /// # Errors
    ///
    /// When the records cannot be read, written or watched.
    pub fn claim_follow_up(
        &self,
        scope: &Scope,
        of: Option<&JobId>,
        lasts: Duration,
        limit: impl Into<WaitLimit>,
    ) -> Result<ClaimedFollowUp, Guarded<StoreError>> {
        self.permissions().check(Capability::Ack)?;
        let pick = |job: &Job| {
            if of.is_some_and(|id| job.view.id != *id) {
                return Ok(Pick::No);
            }
            Ok(match self.deliverer().claim_for_caller(&job.view.id, lasts)? {
                Ok(CallerClaim { delivery, token, until }) => {
                    let delivery = self.secrets().masked_delivery(delivery);
                    Pick::Taken(CallerClaim { delivery, token, until })
                }
                Err(Some(pause)) => Pick::Later(pause),
                Err(None) => Pick::No,
            })
        };
        let (claim, problems) = self.await_follow_up(scope, limit.into(), pick).map_err(Guarded::Failed)?;
        Ok(ClaimedFollowUp { claim, problems })
    }

    /// Closes a follow-up that a caller has claimed. A token whose time has passed is good as long as no other process
    /// has the follow-up.
    ///
    /// # Errors
    ///
    /// When another process has it, the token is none, or the records cannot be read or written.
    pub fn acknowledge_claim(&self, token: &ClaimToken) -> Result<Closed, Guarded<ClaimError>> {
        self.permissions().check(Capability::Ack)?;
        let hold = self.deliverer().claim_hold(token).map_err(|error| Guarded::Failed(error.into()))?;
        let Some((hold, seen)) = hold else { return Ok(Closed::NoJob) };
        let is_open = seen.facts.receipt.is_absent();
        match hold {
            ClaimHold::Unknown => return Err(Guarded::Failed(ClaimError::Unknown(token.clone()))),
            ClaimHold::Overtaken if is_open => {
                return Err(Guarded::Failed(ClaimError::Overtaken(token.job.clone())));
            }
            ClaimHold::Held | ClaimHold::Over | ClaimHold::Overtaken => {}
        }
        let closed = delivery::close(&self.ports, &token.job, ReceiptHow::Delivered);
        closed.map_err(|error| Guarded::Failed(error.into()))
    }

    /// Gives back a follow-up that a caller has claimed; returns whether it was still the caller's.
    ///
    /// # Errors
    ///
    /// When another process has it, the token is none, or the records cannot be read or written.
    pub fn release_claim(&self, token: &ClaimToken, released: Released) -> Result<bool, Guarded<ClaimError>> {
        self.permissions().check(Capability::Ack)?;
        let masked = |reason: String| self.secrets().masked(&reason);
        let released = match released {
            Released::Busy(reason) => Released::Busy(masked(reason)),
            Released::Failed(reason) => Released::Failed(masked(reason)),
        };
        let hold = self.deliverer().release_claim(token, released);
        match hold.map_err(|error| Guarded::Failed(error.into()))? {
            ClaimHold::Held => Ok(true),
            ClaimHold::Over => Ok(false),
            ClaimHold::Overtaken => Err(Guarded::Failed(ClaimError::Overtaken(token.job.clone()))),
            ClaimHold::Unknown => Err(Guarded::Failed(ClaimError::Unknown(token.clone()))),
        }
    }

    /// Hears which jobs change, from now on.
    pub(crate) fn job_changes(&self) -> Result<JobChanges<'_>, StoreError> {
        Ok(JobChanges::new(&self.ports, self.store.watch_all()?))
    }

    /// A follow-up as it would be sent.
    pub fn delivery(&self, job: &Job) -> Delivery {
        let delivery = self.deliverer().compose(&job.seen).expect("a job that is shown is one");
        self.secrets().masked_delivery(delivery)
    }

    /// Closes a follow-up, because its owner has it or does not need it. The first receipt stands.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn close_follow_up(&self, id: &JobId, how: ReceiptHow) -> Result<Closed, Guarded<StoreError>> {
        self.permissions().check(Capability::Ack)?;
        delivery::close(&self.ports, id, how).map_err(Guarded::Failed)
    }

    /// Makes a dead letter due again, and starts a process that delivers it.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn retry_follow_up(&self, id: &JobId) -> Result<Closed, Guarded<StoreError>> {
        self.permissions().check(Capability::Ack)?;
        self.permissions().check(Capability::Notify)?;
        let closed = delivery::start_afresh(&self.ports, id).map_err(Guarded::Failed)?;
        if closed == Closed::Done
            && let Some(seen) = self.store.observe(id).map_err(Guarded::Failed)?
        {
            // A monitor watches the folder of all jobs, and not what is within each.
            if let Err(error) = self.store.wake_host() {
                debug!(job = %id, %error, "monitor not woken");
            }
            self.start_deliverer_if_needed(&seen);
        }
        Ok(closed)
    }

    /// The names of all sinks: configured and built in.
    pub fn sink_names(&self) -> Vec<String> {
        self.registry.names()
    }

    /// All sinks, and whether each can be used here.
    pub fn sinks(&self) -> Vec<SinkOverview> {
        self.registry.overview()
    }

    /// The follow-up of an invented job, to try a sink with.
    pub fn sample_delivery(&self, request: &Request, session: Option<Session>) -> Delivery {
        let id = JobId::mint(self.now().as_millis().unsigned_abs(), 0);
        let facts = Facts {
            spec: Read::Present(request.spec(&id, session, self.now())),
            end: Read::Present(End::new(Outcome::Exited { code: 0 }, self.now())),
            ..Facts::default()
        };
        let output = Output { bytes: 17, ..Output::default() };
        let seen = Observed { id, facts, locks: LockView::FREE, place: Place::Open, output };
        let view = JobView::new(&seen, &self.ports.here, "".into()).expect("a job with a spec is one");
        let excerpt = Excerpt { head: b"this is a sample\n".to_vec(), tail: Vec::new(), omitted: 0 };
        Delivery::new(view, &excerpt, 1, false, 1)
    }

    /// How many jobs a session has launched from follow-ups in the last hour; counts up to `most`.
    ///
    /// # Errors
    ///
    /// When the jobs cannot be listed.
    pub fn recent_chain(&self, session: &Session, most: usize) -> Result<usize, StoreError> {
        const HOUR_MS: u64 = 60 * 60 * 1000;
        let since = self.now().as_millis().unsigned_abs().saturating_sub(HOUR_MS);
        let is_recent = |id: &JobId| id.unix_millis() >= since;
        // The id has the time of its launch, so older jobs are not looked at.
        let mut recent: BTreeSet<_> = self.store.open_jobs()?.into_iter().filter(is_recent).collect();
        let mut listed = RECENT_LISTED;
        loop {
            let past = self.store.past_jobs(listed)?;
            let is_enough = past.len() < listed || !past.last().is_some_and(is_recent);
            recent.extend(past.into_iter().filter(is_recent));
            if is_enough {
                break;
            }
            listed = listed.saturating_mul(4);
        }
        let is_counted = |id: &&JobId| {
            // A job that cannot be read is not known to be one of them.
            let seen = self.store.observe(id).ok().flatten();
            let spec = seen.as_ref().and_then(|seen| seen.facts.spec.present());
            spec.is_some_and(|spec| spec.depth > 0 && spec.session.as_ref() == Some(session))
        };
        Ok(recent.iter().rev().filter(is_counted).take(most).count())
    }

    /// The secrets, which are masked in what is shown and sent.
    pub fn secrets(&self) -> &crate::mask::Secrets {
        &self.registry.secrets
    }

    /// Whether there is a sink of this name.
    pub fn has_sink(&self, name: &str) -> bool {
        self.registry.knows(name)
    }

    /// Checks that there is a sink of this name.
    ///
    /// # Errors
    ///
    /// When there is none, or what the settings define is invalid.
    pub fn check_sink(&self, name: &str) -> Result<(), NoSink> {
        if self.has_sink(name) { Ok(()) } else { Err(self.registry.missing(name)) }
    }

    /// Whether a monitor serves the store.
    pub fn is_monitored(&self) -> bool {
        self.ports.is_monitored()
    }

    /// Sends a sample to a sink, and returns its reply. Nothing is recorded.
    ///
    /// # Errors
    ///
    /// When there is no such sink, or it failed.
    pub fn try_sink(&self, name: &str, sample: &Delivery) -> Result<SinkReply, Guarded<SinkError>> {
        self.permissions().check(Capability::Sink)?;
        let sink = self.registry.find(name).map_err(Guarded::Failed)?;
        sink.deliver(&sample.clone().into(), &self.context()).map_err(Guarded::Failed)
    }

    /// The context of a hand-over outside a turn.
    pub(crate) fn context(&self) -> DeliveryContext {
        DeliveryContext { mark: self.store.mint(self.now()), turn: None, receipts: Vec::new() }
    }

    pub(crate) fn deliverer(&self) -> Deliverer<'_> {
        let settings = self.settings();
        Deliverer {
            ports: &self.ports,
            sinks: &self.registry,
            retry: settings.retry,
            notice: settings.notice,
            turns: self.turns(),
        }
    }

    /// Delivers the follow-up of one job; see [`Deliverer::deliver_until_settled`].
    pub(crate) fn deliver_until_settled(&self, id: &JobId) -> Result<(), StoreError> {
        self.deliverer().deliver_until_settled(id)
    }

    /// Delivers what no other process delivers; see [`Deliverer::deliver_forsaken`].
    pub(crate) fn deliver_forsaken(&self) -> Result<(), StoreError> {
        self.deliverer().deliver_forsaken(&self.store)
    }

    /// Starts a process that delivers follow-ups, if this one is due and the process that would deliver it has died.
    pub(crate) fn start_deliverer_if_needed(&self, seen: &Observed) {
        if self.needs_deliverer(seen) {
            self.start_deliverer();
        }
    }

    pub(crate) fn needs_deliverer(&self, seen: &Observed) -> bool {
        self.deliverer().needs_deliverer(seen).unwrap_or(false)
    }

    /// Starts the process that delivers whatever no other process delivers, or wakes it.
    ///
    /// Best effort: the next process that looks at such a job tries again.
    pub(crate) fn start_deliverer(&self) {
        // One that sleeps until its next attempt does not know of this one.
        if let Err(error) = self.store.wake_host() {
            debug!(%error, "deliverer not woken");
        }
        let sent = self
            .supervisor_program()
            .and_then(|program| spawn_deliverer(&*self.ports.processes, program, self.home().to_owned()));
        match sent {
            Ok(()) => debug!("deliverer started"),
            Err(error) => warn!(%error, "deliverer not started"),
        }
    }
}

/// The oldest end first.
fn by_end(one: &Job, other: &Job) -> Ordering {
    (&one.view.ended_at, &one.view.id).cmp(&(&other.view.ended_at, &other.view.id))
}

fn is_open(state: FollowUpState) -> bool {
    matches!(state, FollowUpState::Pending | FollowUpState::Leased | FollowUpState::DeadLetter)
}

/// Whether `followups next` returns it. A dead letter would come first for ever.
fn is_next(job: &Job, of: Option<&JobId>) -> bool {
    match of {
        Some(id) => job.view.id == *id,
        None => job.view.follow_up.state != FollowUpState::DeadLetter,
    }
}

/// The command that makes hearback, executed again, deliver what no other process delivers.
pub(crate) const DELIVERER_COMMAND: &str = "__deliverer";

/// Starts a process that delivers what no other process delivers. However many are started, one does it.
pub(crate) fn spawn_deliverer(
    processes: &dyn ProcessControl,
    program: PathBuf,
    home: PathBuf,
) -> std::io::Result<()> {
    let args = vec![DELIVERER_COMMAND.into()];
    processes.spawn_detached(&DetachedRequest { program, args, home, env: Vec::new() })
}

/// Starts a process that delivers the follow-up of one job: a supervisor, which finds that the job has ended.
pub(crate) fn spawn_deliverer_of(
    processes: &dyn ProcessControl,
    program: PathBuf,
    home: PathBuf,
    id: &JobId,
) -> std::io::Result<()> {
    let request = SupervisorRequest { job: id.clone(), program, home, env: Vec::new() };
    // Its answer is not needed.
    processes.spawn_supervisor(&request).map(drop)
}
