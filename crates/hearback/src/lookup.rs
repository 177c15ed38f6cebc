//! Finding a job by what a user typed.

use hearback_core::port::record::{RecordStore, StoreError};
use hearback_core::{IdPattern, JobId, JobState, ParseIdError, fold};

use crate::Scope;

/// Why no job was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// What was typed cannot name a job.
    #[error(transparent)]
    NotAnId(#[from] ParseIdError),
    /// The scope has no such job.
    #[error("no job `{0}`")]
    NotFound(String),
    /// Several jobs could be meant.
    #[error("`{pattern}` could be any of {}", list(candidates))]
    Ambiguous {
        /// What was typed.
        pattern: String,
        /// The jobs that match.
        candidates: Vec<JobId>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(ids: &[JobId]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<_> = ids.iter().take(SHOWN).map(|id| format!("`{id}`")).collect();
    let more = ids.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Finds a job among the open ones, and only if none matches, among all: a kill must not be ambiguous because of jobs
/// that ended long ago.
pub(crate) fn find_open_first(
    store: &dyn RecordStore,
    text: &str,
    scope: &Scope,
) -> Result<JobId, FindError> {
    let pattern = IdPattern::parse(text)?;
    let open = store.open_jobs()?.into_iter().filter(|id| pattern.matches(id)).collect();
    match pick(store, text, scope, open) {
        Err(FindError::NotFound(_)) => find(store, text, scope),
        other => other,
    }
}

/// Finds the one job that `text` names among those that `scope` sees.
pub(crate) fn find(store: &dyn RecordStore, text: &str, scope: &Scope) -> Result<JobId, FindError> {
    let pattern = IdPattern::parse(text)?;
    let candidates = match pattern.whole() {
        Some(id) => vec![id],
        None => {
            let mut ids = store.open_jobs()?;
            ids.extend(store.past_jobs(usize::MAX)?);
            // A job may have moved to history between the two calls.
            ids.sort();
            ids.dedup();
            ids.retain(|id| pattern.matches(id));
            ids
        }
    };
    pick(store, text, scope, candidates)
}

/// The one of `candidates` that is a job and may be seen.
fn pick(
    store: &dyn RecordStore,
    text: &str,
    scope: &Scope,
    candidates: Vec<JobId>,
) -> Result<JobId, FindError> {
    let mut visible = Vec::new();
    for id in candidates {
        let Some(seen) = store.observe(&id)? else { continue };
        let is_job = fold(&seen.facts, seen.locks).state != JobState::Nothing;
        let owner = seen.facts.spec.present().and_then(|spec| spec.session.as_ref());
        if is_job && scope.sees(owner) {
            visible.push(id);
        }
    }
    match visible.len() {
        0 => Err(FindError::NotFound(text.to_owned())),
        1 => Ok(visible.remove(0)),
        _ => Err(FindError::Ambiguous { pattern: text.to_owned(), candidates: visible }),
    }
}
