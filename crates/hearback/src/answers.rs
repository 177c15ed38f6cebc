//! Prompt jobs: asking an agent in the background, and reading the answer.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use hearback_core::port::disk::{Lock, Publish};
use hearback_core::port::record::{FactStore, Housekeeping, StoreError};
use hearback_core::{FollowUpState, JobId, Read, Reader, ReceiptHow, Session, SmallSort};
use hearback_monitor::delivery::{self, Closed};

use crate::permissions::{Capability, Guarded};
use crate::wait::Reading;
use crate::{Hearback, Job, Request, RequestError, Scope};

/// Where the prompt goes in the arguments of an agent.
const PLACEHOLDER: &str = "{prompt}";
/// How many jobs of history are searched if no job is named: results are read soon, or by the id of their job.
const HISTORY_MAX: usize = 1000;
/// The most results that one call takes: each is locked until it is acknowledged.
const TAKEN_MAX: usize = 100;

/// How soon a result is offered again after a process that had reserved it died.
const RESERVED_AGAIN_WITHIN: Duration = Duration::from_secs(1);

/// A request to run an agent with a prompt, in this process's working directory. The prompt replaces `{prompt}` in the
/// agent's arguments, or follows them. The owner, who reads the answer, is [`Request::session`].
///
/// # Errors
///
/// When there is no agent, the prompt is blank or missing, or the working directory has been removed.
pub fn ask<S: Into<OsString>>(
    agent: impl IntoIterator<Item = S>,
    prompt: Option<&str>,
) -> Result<Request, RequestError> {
    let agent: Vec<_> = agent.into_iter().map(Into::into).collect();
    let mut request = crate::argv(with_prompt(&agent, prompt)?)?;
    request.answer = true;
    request.prompt = prompt.map(str::to_owned);
    Ok(request)
}

/// Puts a prompt into the command of an agent.
pub fn with_prompt(agent: &[OsString], prompt: Option<&str>) -> Result<Vec<OsString>, RequestError> {
    let (program, arguments) = agent.split_first().ok_or(RequestError::Empty)?;
    if program.is_empty() {
        return Err(RequestError::Empty);
    }
    let has_place = |word: &OsStr| word.to_str().is_some_and(|word| word.contains(PLACEHOLDER));
    let placed = arguments.iter().any(|word| has_place(word));
    let Some(prompt) = prompt else {
        return if placed { Err(RequestError::NoPrompt) } else { Ok(agent.to_vec()) };
    };
    if prompt.trim().is_empty() {
        return Err(RequestError::BlankPrompt);
    }
    let filled = arguments.iter().map(|word| match word.to_str() {
        Some(text) if placed => text.replace(PLACEHOLDER, prompt).into(),
        _ => word.clone(),
    });
    let last = (!placed).then(|| prompt.into());
    Ok([program.clone()].into_iter().chain(filled).chain(last).collect())
}

/// Which results to read, and for whom.
#[derive(Debug, Clone)]
pub struct ResultsQuery {
    /// The session that launched the prompt jobs.
    pub parent: Session,
    /// The reader; none for the parent itself. Each reader has its own list of what it has read.
    pub reader: Option<Reader>,
    /// Only the results of these jobs; of all jobs if empty.
    pub jobs: Vec<JobId>,
}

/// The results of prompt jobs.
#[derive(Debug, Default)]
pub struct Results {
    /// Jobs that have ended and whose answer this reader has not read. The one that ended first comes first.
    pub ended: Vec<Job>,
    /// Jobs that have not ended.
    pub running: Vec<Job>,
    /// Jobs that the query names and whose answer was read before.
    pub read: Vec<JobId>,
    /// How many more have ended than one call takes.
    pub more: usize,
    /// Jobs that could not be read. They may have an answer.
    pub problems: Vec<(JobId, StoreError)>,
    /// While these are held, no other process takes the same results for the same reader, and the parent is not
    /// notified.
    held: Vec<Held>,
}

/// The locks that reserve one result for one reader.
#[derive(Debug)]
struct Held {
    _lock: Lock,
    _reading: Option<Reading>,
}

/// The result of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// The answer is read from now on.
    Now,
    /// It was read before. Nothing was changed.
    Before,
    /// There is no such job, it has not ended, or it may not be changed.
    Nothing,
}

impl Hearback {
    /// Whether anything is known of a session: a job, a turn or a message.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn knows(&self, session: &Session) -> Result<bool, StoreError> {
        if self.ports.sessions.sessions()?.contains(session) {
            return Ok(true);
        }
        let jobs = self.store.open_jobs()?.into_iter().chain(self.store.past_jobs(usize::MAX)?);
        for id in jobs {
            // A job that cannot be read shows no owner.
            let seen = self.store.observe(&id).ok().flatten();
            let spec = seen.as_ref().and_then(|seen| seen.facts.spec.present());
            if spec.is_some_and(|spec| spec.session.as_ref() == Some(session)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a job is a prompt job.
    ///
    /// # Errors
    ///
    /// When the job cannot be read.
    pub fn is_asked(&self, id: &JobId) -> Result<bool, StoreError> {
        Ok(self.look(id)?.is_some_and(|job| job.is_asked()))
    }

    /// The results that a reader has not read. They stay unread. Waits for one, but not longer than `within`.
    ///
    /// # Errors
    ///
    /// When the jobs cannot be read.
    pub fn results(&self, by: &ResultsQuery, within: Duration) -> Result<Results, StoreError> {
        self.await_results(by, within, Ok)
    }

    /// The same for a reader that is going to acknowledge them: while the results are held, no other process takes them
    /// for the same reader.
    ///
    /// # Errors
    ///
    /// When the jobs cannot be read, or locked.
    pub fn take_results(&self, by: &ResultsQuery, within: Duration) -> Result<Results, Guarded<StoreError>> {
        self.permissions().check(Capability::Ack)?;
        self.await_results(by, within, |results| self.hold(by, results)).map_err(Guarded::Failed)
    }

    /// Records that a reader has the answer of a job. For the parent that is the receipt of its follow-up.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn acknowledge(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
    ) -> Result<Acknowledged, Guarded<StoreError>> {
        self.permissions().check(Capability::Ack)?;
        self.record_read(id, reader).map_err(Guarded::Failed)
    }

    /// Records that the parent, which waited for the answer, has read it. Does nothing if the caller may not `ack`.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn mark_answer_read(&self, id: &JobId) -> Result<Acknowledged, StoreError> {
        match self.permissions().check(Capability::Ack) {
            Ok(()) => self.record_read(id, None),
            Err(_) => Ok(Acknowledged::Nothing),
        }
    }

    fn record_read(&self, id: &JobId, reader: Option<&Reader>) -> Result<Acknowledged, StoreError> {
        let Some(job) = self.look(id)?.filter(|job| job.is_asked() && job.view.state.has_ended()) else {
            return Ok(Acknowledged::Nothing);
        };
        if reader.is_none() {
            match delivery::close(&self.ports, id, ReceiptHow::Read)? {
                Closed::Done => return Ok(Acknowledged::Now),
                // No notification is wanted, so there is no receipt to publish.
                Closed::Already(FollowUpState::NotWanted) => {}
                Closed::Already(_) => return Ok(Acknowledged::Before),
                Closed::NotEnded | Closed::NoJob => return Ok(Acknowledged::Nothing),
            }
        }
        let durability = job.seen.durability();
        match self.store.acknowledge(id, reader, &self.ports.clock.stamp(), durability) {
            Ok(Publish::New) => Ok(Acknowledged::Now),
            Ok(Publish::Exists) => Ok(Acknowledged::Before),
            Err(error) if error.is_gone() => Ok(Acknowledged::Nothing),
            Err(error) => Err(error),
        }
    }

    fn await_results(
        &self,
        by: &ResultsQuery,
        within: Duration,
        reserve: impl Fn(Results) -> Result<Results, StoreError>,
    ) -> Result<Results, StoreError> {
        let deadline = self.ports.clock.awake().saturating_add(within);
        let mut changes = (!within.is_zero()).then(|| self.job_changes()).transpose()?;
        loop {
            let found = self.look_for_results(by)?;
            let has_ended = !found.ended.is_empty();
            let results = reserve(found)?;
            let left = deadline.saturating_sub(self.ports.clock.awake());
            // If all named jobs have been read, no further result can come.
            let nothing_comes = !by.jobs.is_empty() && results.read.len() == by.jobs.len();
            let is_over = !results.ended.is_empty() || left.is_zero() || nothing_comes;
            let Some(changes) = changes.as_mut().filter(|_| !is_over) else { return Ok(results) };
            // No event tells that another process gave back what it had reserved.
            let left = if has_ended { left.min(RESERVED_AGAIN_WITHIN) } else { left };
            // Nothing of the others can be a result. When the time has passed, all is looked at once more.
            changes.wait(left, |id| self.may_be_asked_by(&by.parent, id));
        }
    }

    /// Whether a job is a prompt job of this session, as far as it can be read.
    fn may_be_asked_by(&self, parent: &Session, id: &JobId) -> bool {
        match self.store.spec(id) {
            Ok(Read::Present(spec)) => spec.answer && spec.session.as_ref() == Some(parent),
            _ => true,
        }
    }

    fn look_for_results(&self, by: &ResultsQuery) -> Result<Results, StoreError> {
        let mut results = Results::default();
        for job in self.prompt_jobs(by, &mut results.problems)? {
            let id = job.view.id.clone();
            if !job.view.state.has_ended() {
                results.running.push(job);
            } else if !self.is_read(&job, by.reader.as_ref())? {
                results.ended.push(job);
            } else if by.jobs.contains(&id) {
                results.read.push(id);
            }
        }
        // A job without an end is sorted by its launch.
        results.ended.small_sort_by_key(|job| {
            let at = job.view.ended_at.as_ref().or(job.view.launched_at.as_ref());
            (at.cloned(), job.view.id.clone())
        });
        Ok(results)
    }

    /// The prompt jobs of a parent, brought up to date. A job that cannot be read does not hide others.
    fn prompt_jobs(
        &self,
        by: &ResultsQuery,
        problems: &mut Vec<(JobId, StoreError)>,
    ) -> Result<Vec<Job>, StoreError> {
        let mut jobs = Vec::new();
        let mut add = |job: Option<Job>| {
            jobs.extend(job.filter(|job| job.is_asked() && job.view.session.as_ref() == Some(&by.parent)));
        };
        if !by.jobs.is_empty() {
            for id in by.jobs.iter().collect::<HashSet<_>>() {
                add(self.job(id)?);
            }
            return Ok(jobs);
        }
        let scope = Scope::from(by.parent.clone());
        let mut read = |id: &JobId, seen: Result<Option<Job>, StoreError>| match seen {
            Ok(job) => add(job),
            Err(error) if self.may_see(&scope, id) => problems.push((id.clone(), error)),
            Err(_) => {}
        };
        let (mut looked_at, mut is_forsaken) = (HashSet::new(), false);
        for id in self.store.open_jobs()? {
            let job = self.up_to_date(&id);
            let seen = job.as_ref().ok().and_then(|job| job.as_ref()).map(|job| &job.seen);
            is_forsaken = is_forsaken || seen.is_some_and(|seen| self.needs_deliverer(seen));
            read(&id, job);
            looked_at.insert(id);
        }
        if is_forsaken {
            self.start_deliverer();
        }
        for id in self.store.past_jobs(HISTORY_MAX)? {
            // A job may have moved to history since the open ones were listed.
            if !looked_at.contains(&id) {
                read(&id, self.look(&id));
            }
        }
        Ok(jobs)
    }

    /// Whether a reader has the answer of a job. The parent has it if its follow-up is closed in any way.
    fn is_read(&self, job: &Job, reader: Option<&Reader>) -> Result<bool, StoreError> {
        match job.view.follow_up.state {
            FollowUpState::NotWanted => {}
            state if reader.is_none() => return Ok(state.is_closed()),
            _ => {}
        }
        self.store.is_acknowledged(&job.view.id, reader)
    }

    /// Reserves the results that no other process is taking for the same reader at this moment.
    fn hold(&self, by: &ResultsQuery, found: Results) -> Result<Results, StoreError> {
        let mut results = Results { ended: Vec::new(), ..found };
        let reader = by.reader.as_ref();
        for job in found.ended {
            if results.ended.len() >= TAKEN_MAX {
                results.more += 1;
                continue;
            }
            let id = &job.view.id;
            let lock = match self.store.lock_reader(id, reader) {
                Err(error) if error.is_gone() => None,
                lock => lock?,
            };
            // The process that holds it acknowledges it, or the next call gets it.
            let Some(lock) = lock else { continue };
            // The parent is not notified of a result that it is reading.
            let reading = reader.is_none().then(|| self.reading(id)).flatten();
            // Look again under the lock: the last holder may just have acknowledged it.
            match self.look(id)? {
                Some(now) if !self.is_read(&now, reader)? => {
                    results.ended.push(now);
                    results.held.push(Held { _lock: lock, _reading: reading });
                }
                _ => {}
            }
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(agent: &[&str], prompt: Option<&str>) -> Result<Vec<String>, String> {
        let agent: Vec<_> = agent.iter().map(OsString::from).collect();
        let words = with_prompt(&agent, prompt).map_err(|error| error.to_string())?;
        Ok(words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn a_prompt_takes_its_place_or_comes_last() {
        let asks = |agent: &[&str]| filled(agent, Some("why? {prompt}")).unwrap();
        assert_eq!(asks(&["claude", "-p"]), ["claude", "-p", "why? {prompt}"]);
        assert_eq!(
            asks(&["agent", "--ask={prompt}", "{prompt}", "-v"]),
            ["agent", "--ask=why? {prompt}", "why? {prompt}", "-v"],
            "what it says itself is left alone"
        );
        assert_eq!(filled(&["claude", "-p", "why?"], None).unwrap(), ["claude", "-p", "why?"]);
    }

    #[test]
    fn scenario_54_a_question_without_words_or_without_an_agent_is_none() {
        for (agent, prompt, error) in [
            (&[][..], Some("why?"), "there is nothing to run"),
            (&[""][..], Some("why?"), "there is nothing to run"),
            (&["claude"][..], Some(""), "the prompt is blank"),
            (&["claude"][..], Some(" \n\t"), "the prompt is blank"),
            (&["claude", "{prompt}"][..], None, "the arguments contain `{prompt}`, but there is no prompt"),
        ] {
            assert_eq!(filled(agent, prompt).unwrap_err(), error);
        }
    }
}
