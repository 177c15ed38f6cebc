//! Jobs: finding, showing, listing and killing them.

use std::collections::HashSet;
use std::time::Duration;

use hearback_core::port::process::Presence;
use hearback_core::port::record::{FactStore, Housekeeping, JobFiles, StoreError};
use hearback_core::{
    FollowUpState, HandsOff, JobId, JobView, Key, LockState, Observed, Outcome, OutcomeKind, Output,
    ProcessIdentity, Read, Sample, Session, SmallSort, StateWord, Timestamp,
};
use hearback_monitor::host::Changed;
use hearback_monitor::input::{self, InputError, InputOptions};
use hearback_monitor::kill::{self, KillError, Request as KillRequest};
use hearback_monitor::wait::WaitError;
use hearback_monitor::{answer, delivery, reconcile};

use crate::lookup::{self, FindError, First};
use crate::permissions::{Capability, Denied, Guarded};
use crate::{Hearback, Scope};

/// How many jobs of history are looked at for a list that does not want all of them.
const SEARCHED_MAX: usize = 1000;

/// One job as it was seen.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Job {
    /// Its JSON document.
    pub view: JobView,
    /// Everything that was seen of it.
    pub seen: Observed,
}

impl Job {
    /// What is recorded about its output; none before the end.
    pub(crate) fn recorded_output(&self) -> Option<&Output> {
        self.seen.end().map(|end| &end.output)
    }

    /// Whether it is a prompt job, which has an answer when it has ended.
    pub fn is_asked(&self) -> bool {
        self.seen.facts.spec.present().is_some_and(|spec| spec.answer)
    }

    /// Whether `by` is the owner of this ended job, and reading how it ended would close its follow-up. To see a prompt
    /// job end is not to read its answer.
    pub fn is_unread_by(&self, by: Option<&Session>) -> bool {
        let is_owner = by.is_some() && self.view.session.as_ref() == by;
        is_owner && self.view.state.has_ended() && !self.is_asked() && !self.view.follow_up.state.is_closed()
    }

    /// The attempts to notify its owner, in order, as they are recorded.
    fn attempts(&self) -> Vec<Attempt> {
        let facts = &self.seen.facts;
        let sinks = facts.spec.present().map(|spec| &*spec.sinks).unwrap_or_default();
        let mut attempts: Vec<_> = facts
            .leases
            .iter()
            .filter_map(|(n, lease)| Some((*n, lease.present()?)))
            // A retry by hand takes a number and is no attempt.
            .filter(|(_, lease)| lease.attempts_used > 0)
            .map(|(n, lease)| {
                let result = facts.result(n);
                let attempt = Attempt {
                    at: lease.at.wall_ms,
                    ended_at: result.map(|result| result.at.wall_ms),
                    sink: usize::try_from(lease.sink).ok().and_then(|place| sinks.get(place).cloned()),
                    // One that took it in place of the session has not failed: its record says why the session has not.
                    error: result.filter(|it| !it.taken_in_place).and_then(|it| it.error.clone()),
                };
                (n, attempt)
            })
            .collect();
        attempts.small_sort_by_key(|(n, _)| *n);
        attempts.into_iter().map(|(_, attempt)| attempt).collect()
    }

    /// When it was launched.
    pub fn launched_at(&self) -> Option<Timestamp> {
        self.seen.facts.spec.present().map(|spec| spec.launched_at_ms)
    }

    /// How long it has run, or ran. For a running job, this is wall-clock time.
    pub fn ran(&self, now: Timestamp) -> Option<Duration> {
        if self.view.state.has_ended() {
            return self.view.ran_ms.map(Duration::from_millis);
        }
        let started = self.seen.facts.target.present()?.at_ms;
        Some(Duration::from_millis(now.millis_since(started)))
    }
}

/// One attempt to notify the owner of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// When it was begun.
    pub at: Timestamp,
    /// When it failed; none if it succeeded, or its process died.
    pub ended_at: Option<Timestamp>,
    /// The sink.
    pub sink: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// The result of a kill.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Killed {
    /// The job as it is now, after its end.
    pub job: Job,
    /// Whether it had ended before the kill.
    pub already_ended: bool,
    /// How many processes that had outlived it were killed now.
    pub leftovers_killed: usize,
    /// Processes that survived.
    pub survivors: Vec<ProcessIdentity>,
    /// Where processes of the job may still run that cannot be seen from here.
    pub out_of_sight: Option<String>,
}

impl Killed {
    /// Whether nothing of the job is left.
    pub fn is_complete(&self) -> bool {
        self.survivors.is_empty() && self.out_of_sight.is_none()
    }
}

/// Which jobs to list. By default all; change the fields that matter:
///
/// ```
/// use hearback::Select;
/// use hearback::core::StateWord;
///
/// let mut select = Select::default();
/// select.states = vec![StateWord::Running];
/// select.history_max = Some(0);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Select {
    /// Only those of this scope.
    pub scope: Scope,
    /// Only those in one of these states; by default in any.
    pub states: Vec<StateWord>,
    /// Only those that ended in one of these ways; by default in any, or not at all.
    pub outcomes: Vec<OutcomeKind>,
    /// Only those with this label.
    pub label: Option<String>,
    /// Only those that were launched since then.
    pub launched_since: Option<Timestamp>,
    /// At most this many of history, from the newest 1,000 jobs there or from as many as this says; by default all.
    pub history_max: Option<usize>,
    /// At most this many in all, the newest; by default all that were found.
    pub most: Option<usize>,
}

impl Select {
    /// Whether it selects this job; how many it selects does not count.
    pub fn wants(&self, job: &Job) -> bool {
        let view = &job.view;
        let outcome = view.outcome.as_ref().map(Outcome::kind);
        self.scope.sees(view.session.as_ref())
            && (self.states.is_empty() || self.states.contains(&view.state))
            && (self.outcomes.is_empty() || outcome.is_some_and(|kind| self.outcomes.contains(&kind)))
            && (self.label.is_none() || self.label == view.label)
            && self.launched_since.is_none_or(|since| job.launched_at().is_some_and(|at| at >= since))
    }

    /// Whether all jobs are wanted, so that they can be counted without being read.
    fn is_everything(&self) -> bool {
        self.scope == Scope::All
            && self.states.is_empty()
            && self.outcomes.is_empty()
            && self.label.is_none()
            && self.launched_since.is_none()
    }
}

/// What [`Hearback::watch_jobs`] reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChangedJobs {
    /// Perhaps any job has changed: list them again.
    Everything,
    /// These have; none in place of a job that is no longer there, or cannot be read.
    Jobs(Vec<(JobId, Option<Job>)>),
}

/// A list of jobs. A job that cannot be read does not hide others.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// Newest first.
    pub jobs: Vec<Job>,
    /// Jobs that could not be read or brought up to date, except those that are known to be outside the scope.
    pub problems: Vec<(JobId, StoreError)>,
    /// Whether jobs may have been left out because of [`Select::history_max`] or [`Select::most`].
    pub truncated: bool,
    /// How many jobs there are, where that is known without reading them.
    pub total: Option<usize>,
}

impl Listing {
    /// Adds a job if it is selected; returns whether it was.
    fn add(&mut self, select: &Select, job: Option<Job>) -> bool {
        let Some(job) = job.filter(|job| select.wants(job)) else { return false };
        self.jobs.push(job);
        true
    }
}

impl Hearback {
    /// Whether a job that cannot be read may belong to a scope: it does not if its owner can be read, and is another.
    pub(crate) fn may_see(&self, scope: &Scope, id: &JobId) -> bool {
        match self.store.spec(id) {
            Ok(Read::Present(spec)) => scope.sees(spec.session.as_ref()),
            _ => true,
        }
    }

    /// Finds the one job that `text` names among those that `scope` sees. A job is named by its id, by at least four
    /// characters of either end of it, by its label (the newest with it), or by [`LAST`](crate::LAST).
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn find(&self, text: &str, scope: &Scope) -> Result<JobId, FindError> {
        lookup::find(&self.store, text, scope, First::All)
    }

    /// Finds the job that a key names. Each session has keys of its own: in the scope of all sessions, a key of no
    /// session comes first, and then that of the newest job that has one.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn find_by_key(&self, key: &Key, scope: &Scope) -> Result<JobId, FindError> {
        lookup::by_key(&self.store, key, scope)
    }

    /// Finds the job that `text` names among those that still run. Only if there is none, searches those that have
    /// ended.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn find_to_kill(&self, text: &str, scope: &Scope) -> Result<JobId, FindError> {
        lookup::find(&self.store, text, scope, First::Open)
    }

    /// Finds the job that is meant where none is named: the only one that runs, or the only one there is.
    ///
    /// # Errors
    ///
    /// When it is not clear which job is meant.
    pub fn find_only(&self, scope: &Scope) -> Result<JobId, FindError> {
        lookup::only(&self.store, scope)
    }

    /// The jobs that run, newest first: those of the scope, with this label if one is given.
    ///
    /// # Errors
    ///
    /// When the store cannot be listed.
    pub fn running(&self, scope: &Scope, label: Option<&str>) -> Result<Listing, StoreError> {
        self.jobs(&Select {
            scope: scope.clone(),
            states: vec![StateWord::Starting, StateWord::Running],
            label: label.map(str::to_owned),
            history_max: Some(0),
            ..Select::default()
        })
    }

    /// Kills a job and everything that it started. Safe to repeat: a job that has ended is only looked at.
    ///
    /// # Errors
    ///
    /// When it cannot be shown that the job has ended.
    pub fn kill(&self, id: &JobId, request: &KillRequest) -> Result<Killed, Guarded<KillError>> {
        self.permissions().check(Capability::Kill)?;
        self.end_job(id, request).map_err(Guarded::Failed)
    }

    /// Kills several jobs, and calls `each` in their order. All are requested to end before the first is waited for, so
    /// this takes as long as the slowest of them.
    ///
    /// # Errors
    ///
    /// When the caller must not kill. Each job has its own result.
    pub fn kill_all(
        &self,
        ids: &[JobId],
        request: &KillRequest,
        mut each: impl FnMut(&JobId, Result<Killed, KillError>),
    ) -> Result<(), Denied> {
        self.permissions().check(Capability::Kill)?;
        let request = self.masked_request(request);
        kill::kill_all(&self.ports, &self.waits, ids, &request, |id, report| {
            each(id, report.and_then(|report| self.killed(id, report)));
        });
        Ok(())
    }

    /// Writes everything from `source` to the input of a job that was launched with
    /// [`Request::takes_input`](crate::Request::takes_input), and returns how many bytes that were. It waits while the
    /// job does not read. What was written is stored nowhere.
    ///
    /// # Errors
    ///
    /// When the caller must not write, or the job takes no input or no more of it. What was written before that is not
    /// taken back.
    pub fn write_input(
        &self,
        id: &JobId,
        source: &mut dyn std::io::Read,
        options: InputOptions,
    ) -> Result<u64, Guarded<InputError>> {
        self.permissions().check(Capability::Write)?;
        input::write(&self.ports, id, source, options).map_err(Guarded::Failed)
    }

    /// The same for hearback itself, without a check of permissions.
    pub(crate) fn end_job(&self, id: &JobId, request: &KillRequest) -> Result<Killed, KillError> {
        let request = self.masked_request(request);
        self.killed(id, kill::kill(&self.ports, &self.waits, id, &request)?)
    }

    /// A request without secrets: its reason is recorded.
    fn masked_request(&self, request: &KillRequest) -> KillRequest {
        let mut request = request.clone();
        request.reason = request.reason.map(|reason| self.secrets().masked(&reason));
        request
    }

    fn killed(&self, id: &JobId, report: kill::Report) -> Result<Killed, KillError> {
        let kill::Report { seen, already_ended, leftovers_killed, survivors, out_of_sight } = report;
        let job = self.shown(seen).ok_or_else(|| WaitError::Gone(id.clone()))?;
        Ok(Killed { job, already_ended, leftovers_killed, survivors, out_of_sight })
    }

    /// Brings one job up to date and returns it; none if there is no such job.
    ///
    /// # Errors
    ///
    /// When the job cannot be read. If the store cannot be written, the job is not brought up to date; that is no
    /// error, because what is returned is still true.
    pub fn job(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        let job = self.up_to_date(id)?;
        if let Some(job) = &job {
            self.start_deliverer_if_needed(&job.seen);
        }
        Ok(job)
    }

    /// The same for a caller that looks at many jobs, and then starts one deliverer for all.
    pub(crate) fn up_to_date(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        Ok(reconcile::seen(&self.ports, id)?.and_then(|seen| self.shown(seen)))
    }

    /// Returns one job as it is recorded, and changes nothing; none if there is no such job.
    ///
    /// # Errors
    ///
    /// When the job cannot be read.
    pub fn look(&self, id: &JobId) -> Result<Option<Job>, StoreError> {
        Ok(self.store.observe(id)?.and_then(|seen| self.shown(seen)))
    }

    pub(crate) fn shown(&self, mut seen: Observed) -> Option<Job> {
        let elsewhere = self.ports.hands_off(&seen) == Some(HandsOff::OtherStore);
        if elsewhere {
            seen.locks.alive = LockState::Held;
        }
        let log = hearback_platform::from_os(self.store.shared_log_path(&seen.id).as_os_str());
        let mut view = JobView::new(&seen, &self.ports.here, log)?;
        answer::complete(&self.ports, &seen, &mut view);
        view.paused = view.state == StateWord::Running
            && seen
                .facts
                .target
                .present()
                .and_then(|target| target.handle.process())
                .is_some_and(|process| self.ports.processes.is_stopped(&process));
        self.drop_ended_survivors(&seen, &mut view);
        if elsewhere {
            view.notes
                .push("its supervisor works in another store, of which this is a copy: left alone".into());
        }
        if self.waits_for_host(&seen, &view) {
            view.notes
                .push("its follow-up waits for a host that attends the session (hearback serve)".into());
        }
        let view = self.secrets().masked_view(view);
        Some(Job { view, seen })
    }

    /// Whether the follow-up of a job is pending and goes to a host, so that no other process delivers it.
    pub(crate) fn waits_for_host(&self, seen: &Observed, view: &JobView) -> bool {
        let is_pending = view.follow_up.state == FollowUpState::Pending;
        let (here, now, retry) = (&self.ports.here, self.ports.clock.stamp(), &self.settings().retry);
        is_pending && delivery::waits_for_host(seen, here, &now, retry)
    }

    /// Leaves only those survivors in the view that still run: what was true at the end may not be true any more.
    fn drop_ended_survivors(&self, seen: &Observed, view: &mut JobView) {
        // Of another machine nothing can be seen here.
        if self.ports.here.is_foreign(&seen.facts) {
            return;
        }
        let survivors = seen.end().map(|end| &*end.survivors).unwrap_or_default();
        let runs = |who: &&ProcessIdentity| self.ports.processes.presence(who) != Presence::Gone;
        view.survivors = survivors.iter().filter(runs).map(|who| who.pid).collect();
        match survivors.len() - view.survivors.len() {
            0 => {}
            1 => view.notes.push("1 process that outlived it has ended since".into()),
            n => view.notes.push(format!("{n} processes that outlived it have ended since")),
        }
    }

    /// What a job used over its life, oldest first: its samples, and for a job that runs what it uses now. Samples are
    /// taken when there is output, so a silent job has none.
    pub fn samples(&self, job: &Job) -> Vec<Sample> {
        let mut samples = self.store.samples(&job.view.id);
        let target = job.seen.facts.target.present().filter(|_| !job.view.state.has_ended());
        let used = target.and_then(|target| self.ports.processes.usage(&target.handle.process()?));
        if let Some((used, ran)) = used.zip(job.ran(self.now())) {
            let at_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
            // The wall clock, which this is, may have been set back.
            samples.retain(|sample| sample.at_ms < at_ms);
            samples.push(Sample { at_ms, used });
        }
        samples
    }

    /// The attempts to notify the owner of a job, in order, without secrets.
    pub fn attempts(&self, job: &Job) -> Vec<Attempt> {
        let masked = |error: String| self.secrets().masked(&error);
        let attempts = job.attempts().into_iter();
        attempts.map(|attempt| Attempt { error: attempt.error.map(masked), ..attempt }).collect()
    }

    /// The newest jobs of a scope that are `wanted`, as they are recorded, newest first. Changes nothing, and leaves
    /// out what cannot be read: it is quick, to be called while a person types.
    pub fn recent(&self, scope: &Scope, most: usize, wanted: impl Fn(&Job) -> bool) -> Vec<Job> {
        let mut ids = self.store.open_jobs().unwrap_or_default();
        ids.extend(self.store.past_jobs(most).unwrap_or_default());
        ids.small_sort();
        ids.dedup();
        let jobs = ids.iter().rev().filter_map(|id| self.look(id).ok().flatten());
        jobs.filter(|job| scope.sees(job.view.session.as_ref()) && wanted(job)).take(most).collect()
    }

    /// Tells `each` which jobs of a scope change, until it returns false. Sleeps while none does. The first report
    /// comes at once, and says that everything may have changed: what happens after it is reported.
    ///
    /// # Errors
    ///
    /// When the store cannot be watched.
    pub fn watch_jobs(
        &self,
        scope: &Scope,
        mut each: impl FnMut(ChangedJobs) -> bool,
    ) -> Result<(), StoreError> {
        let mut changes = self.job_changes()?;
        let mut report = ChangedJobs::Everything;
        while each(report) {
            report = match changes.wait(Duration::MAX, |id| self.may_see(scope, id)) {
                Changed::Everything => ChangedJobs::Everything,
                Changed::Jobs(changed) => {
                    let shown = changed.into_iter().map(|(id, seen)| {
                        let job = seen.ok().flatten().and_then(|seen| self.shown(seen));
                        job.iter().for_each(|job| self.start_deliverer_if_needed(&job.seen));
                        (id, job)
                    });
                    ChangedJobs::Jobs(shown.collect())
                }
            };
        }
        Ok(())
    }

    /// Lists the open jobs, and the newest of history.
    ///
    /// # Errors
    ///
    /// When the store cannot be listed.
    pub fn jobs(&self, select: &Select) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        let (mut looked_at, mut is_forsaken) = (HashSet::new(), false);
        let mut add = |id: &JobId, seen: Result<Option<Job>, StoreError>| match seen {
            Ok(job) => listing.add(select, job),
            Err(error) => {
                if self.may_see(&select.scope, id) {
                    listing.problems.push((id.clone(), error));
                }
                false
            }
        };
        for id in self.store.open_jobs()? {
            let job = self.up_to_date(&id);
            let seen = job.as_ref().ok().and_then(|job| job.as_ref()).map(|job| &job.seen);
            is_forsaken = is_forsaken || seen.is_some_and(|seen| self.needs_deliverer(seen));
            add(&id, job);
            looked_at.insert(id);
        }
        if is_forsaken {
            self.start_deliverer();
        }
        // History is read from its newest end, until enough jobs are selected or enough were looked at.
        let wanted = select.history_max.unwrap_or(usize::MAX);
        let searched = match select.history_max {
            None => usize::MAX,
            Some(0) => 0,
            Some(wanted) => wanted.max(SEARCHED_MAX),
        };
        let past = self.store.past_jobs(searched)?;
        let is_counted = past.len() < searched || searched == usize::MAX;
        let (mut found, mut unread) = (0, 0);
        for id in past {
            // A job may have moved to history since the open ones were listed. History needs no reconcile.
            if !looked_at.insert(id.clone()) {
                continue;
            }
            if found >= wanted {
                unread += 1;
                continue;
            }
            let job = self.look(&id);
            let launched = job.as_ref().ok().and_then(|job| job.as_ref()?.launched_at());
            if select.launched_since.zip(launched).is_some_and(|(since, at)| at < since) {
                break;
            }
            found += usize::from(add(&id, job));
        }
        listing.jobs.small_sort_by(|a, b| b.view.id.cmp(&a.view.id));
        let most = select.most.unwrap_or(usize::MAX);
        listing.truncated = unread > 0 || (!is_counted && searched > 0) || listing.jobs.len() > most;
        listing.total = (select.is_everything() && is_counted && searched > 0).then_some(looked_at.len());
        listing.jobs.truncate(most);
        Ok(listing)
    }
}
