//! Finding a job by what a user typed: an id, a part of it, a label, `@last`, or nothing.

use hearback_core::port::record::{RecordStore, StoreError};
use hearback_core::{IdPattern, JobId, JobState, Key, Observed, ParseIdError, SHORT_ID_MIN, SmallSort, Spec};

use crate::Scope;

/// Names the newest job.
pub const LAST: &str = "@last";

/// How many jobs of history are searched for a label, from the newest on. To read one takes as long as to list it.
const LABELS_SEARCHED: usize = 1000;

/// Why no job was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No job has this label, and what was typed is too short for a part of an id.
    #[error("no job has the label `{0}`, and a part of an id has at least {SHORT_ID_MIN} characters")]
    TooShort(String),
    /// The scope has no such job.
    #[error("no job `{0}`")]
    NotFound(String),
    /// The scope has no job with this key.
    #[error("no job has the key `{0}`")]
    NoKey(Key),
    /// Several jobs could be meant.
    #[error("`{pattern}` could be any of {}", list(candidates))]
    Ambiguous {
        /// What was typed.
        pattern: String,
        /// The jobs that match.
        candidates: Vec<JobId>,
    },
    /// No job was named, and it is not clear which one is meant.
    #[error("{}", unnamed(*running))]
    Unnamed {
        /// How many jobs run.
        running: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn unnamed(running: usize) -> String {
    match running {
        0 => "no job is named, and none is running".into(),
        n => format!("no job is named, and {n} are running"),
    }
}

fn list(ids: &[JobId]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<_> = ids.iter().take(SHOWN).map(|id| format!("`{id}`")).collect();
    let more = ids.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Which jobs are searched first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// The open ones, and only if none matches, all: a kill must not be ambiguous because of jobs that ended long ago.
    Open,
    /// All at once.
    All,
}

/// Finds the one job that `text` names among those that `scope` sees.
///
/// A whole id comes first, then parts of ids and labels of open jobs, then labels of ended ones. Of several jobs with
/// a label, the newest is meant.
pub(crate) fn find(
    store: &dyn RecordStore,
    text: &str,
    scope: &Scope,
    first: First,
) -> Result<JobId, FindError> {
    if text == LAST {
        return last(store, scope)?.ok_or_else(|| FindError::NotFound(text.to_owned()));
    }
    let pattern = IdPattern::parse(text);
    if let Some(id) = pattern.as_ref().ok().and_then(IdPattern::whole) {
        let found = visible(store, scope, &id)?;
        return found.map(|_| id).ok_or_else(|| FindError::NotFound(text.to_owned()));
    }
    let labelled = labelled(store, newest_first(store.open_jobs()?), text, scope);
    let mut found = match &pattern {
        Ok(pattern) => by_id(store, pattern, scope, first)?,
        Err(_) => Vec::new(),
    };
    // An id that happens to end like a label must not be killed in its place.
    found.extend(labelled.filter(|id| !found.contains(id)));
    match found.len() {
        0 => {}
        1 => return Ok(found.remove(0)),
        _ => return Err(FindError::Ambiguous { pattern: text.to_owned(), candidates: found }),
    }
    let past = store.past_jobs(LABELS_SEARCHED)?;
    match (self::labelled(store, past, text, scope), pattern) {
        (Some(id), _) => Ok(id),
        (None, Err(ParseIdError::TooShort(_))) if !text.is_empty() => {
            Err(FindError::TooShort(text.to_owned()))
        }
        (None, _) => Err(FindError::NotFound(text.to_owned())),
    }
}

/// The only job that can be meant where none is named: the only one that runs, or the only one there is.
pub(crate) fn only(store: &dyn RecordStore, scope: &Scope) -> Result<JobId, FindError> {
    let mut running = Vec::new();
    let mut seen = Vec::new();
    for id in store.open_jobs()? {
        // One that cannot be read may run, so that another one is not the only one.
        let is_running = match visible(store, scope, &id) {
            Ok(Some(job)) => matches!(job.fold().state, JobState::Starting | JobState::Running),
            Ok(None) => continue,
            Err(_) => true,
        };
        if is_running {
            running.push(id.clone());
        }
        seen.push(id);
    }
    if running.is_empty() {
        for id in store.past_jobs(LABELS_SEARCHED)? {
            if seen.len() > 1 {
                break;
            }
            if !seen.contains(&id) && visible(store, scope, &id).is_ok_and(|seen| seen.is_some()) {
                seen.push(id);
            }
        }
    }
    match (&running[..], &seen[..]) {
        ([id], _) | ([], [id]) => Ok(id.clone()),
        _ => Err(FindError::Unnamed { running: running.len() }),
    }
}

/// The newest job that the scope sees.
fn last(store: &dyn RecordStore, scope: &Scope) -> Result<Option<JobId>, StoreError> {
    let open = newest_visible(store, scope, newest_first(store.open_jobs()?));
    let past = newest_visible(store, scope, store.past_jobs(LABELS_SEARCHED)?);
    Ok(open.max(past))
}

/// A job that cannot be read does not hide the others.
fn newest_visible(store: &dyn RecordStore, scope: &Scope, ids: Vec<JobId>) -> Option<JobId> {
    ids.into_iter().find(|id| visible(store, scope, id).is_ok_and(|seen| seen.is_some()))
}

/// Ids begin with the time of their launch.
fn newest_first(mut ids: Vec<JobId>) -> Vec<JobId> {
    ids.small_sort();
    ids.reverse();
    ids
}

/// The first of these jobs that has this label.
fn labelled(store: &dyn RecordStore, ids: Vec<JobId>, label: &str, scope: &Scope) -> Option<JobId> {
    let has_label = |spec: &Spec| !label.is_empty() && spec.label.as_deref() == Some(label);
    first_with(store, ids, scope, has_label)
}

/// The first of these jobs whose spec is wanted. A job that cannot be read does not hide the others.
fn first_with(
    store: &dyn RecordStore,
    ids: Vec<JobId>,
    scope: &Scope,
    is_wanted: impl Fn(&Spec) -> bool,
) -> Option<JobId> {
    ids.into_iter().find(|id| {
        let seen = visible(store, scope, id).ok().flatten();
        seen.is_some_and(|seen| seen.facts.spec.present().is_some_and(&is_wanted))
    })
}

/// Finds the job that a key names.
pub(crate) fn by_key(store: &dyn RecordStore, key: &Key, scope: &Scope) -> Result<JobId, FindError> {
    let is_there = |id: &JobId| visible(store, scope, id).map(|seen| seen.is_some());
    let found = match store.job_of_key(scope.session(), key)? {
        // Its launch may have died before it said what to run.
        Some(id) => is_there(&id)?.then_some(id),
        None => None,
    };
    let all = |ids| first_with(store, ids, scope, |spec| spec.key.as_ref() == Some(key));
    let found = match found {
        None if scope.session().is_none() => match all(newest_first(store.open_jobs()?)) {
            None => all(store.past_jobs(LABELS_SEARCHED)?),
            found => found,
        },
        found => found,
    };
    found.ok_or_else(|| FindError::NoKey(key.clone()))
}

/// The jobs whose ids match.
fn by_id(
    store: &dyn RecordStore,
    pattern: &IdPattern,
    scope: &Scope,
    first: First,
) -> Result<Vec<JobId>, StoreError> {
    let matching = |ids: Vec<JobId>| -> Result<Vec<JobId>, StoreError> {
        let mut found = Vec::new();
        for id in ids.into_iter().filter(|id| pattern.matches(id)) {
            if visible(store, scope, &id)?.is_some() {
                found.push(id);
            }
        }
        Ok(found)
    };
    let mut ids = store.open_jobs()?;
    if first == First::Open {
        let open = matching(ids.clone())?;
        if !open.is_empty() {
            return Ok(open);
        }
    }
    ids.extend(store.past_jobs(usize::MAX)?);
    // A job may have moved to history between the two calls.
    ids.small_sort();
    ids.dedup();
    matching(ids)
}

/// What is known of a job, if there is one and the scope sees it.
fn visible(store: &dyn RecordStore, scope: &Scope, id: &JobId) -> Result<Option<Observed>, StoreError> {
    let Some(seen) = store.observe(id)? else { return Ok(None) };
    let is_job = seen.fold().state != JobState::Nothing;
    let owner = seen.facts.spec.present().and_then(|spec| spec.session.as_ref());
    Ok((is_job && scope.sees(owner)).then_some(seen))
}
