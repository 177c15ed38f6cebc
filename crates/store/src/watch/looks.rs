//! Changes of a store by looking from time to time, where the system reports none: which facts there are, and which
//! locks are held. Both only ever tell of something new, so nothing is missed however long the pause is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use hearback_core::port::disk::Disk;
use hearback_core::port::watch::Changes;
use hearback_core::{JobId, LockState};

use crate::Store;
use crate::layout::{self, Sign};

/// How often to look at a store with few jobs.
const EVERY: Duration = Duration::from_millis(200);
/// How much longer the pause is for each job or session, which takes about a tenth of that to look at.
const EVERY_MORE: Duration = Duration::from_micros(500);
/// After so many looks, it is tried again whether the system has events to give.
const TRY_EVENTS_AFTER: u32 = 32;

/// The signs that one look found, by the name of their folder.
type Signs = BTreeMap<String, BTreeSet<String>>;

/// Hears of changes by looking.
pub(super) struct Looks {
    jobs: Signs,
    sessions: Signs,
    requests: BTreeSet<String>,
    /// Logs whose growth is to be told, and their sizes.
    outputs: BTreeMap<JobId, u64>,
    /// How often it looked since it was last tried to get events; none if there are none on this system.
    tried: Option<u32>,
}

impl Looks {
    pub(super) fn new<D: Disk>(store: &Store<D>, is_for_ever: bool) -> Self {
        let tried = (!is_for_ever).then_some(0);
        let mut looks = Self {
            jobs: Signs::new(),
            sessions: Signs::new(),
            requests: BTreeSet::new(),
            outputs: BTreeMap::new(),
            tried,
        };
        looks.look(store);
        looks
    }

    pub(super) fn add_output<D: Disk>(&mut self, store: &Store<D>, id: &JobId) {
        let size = store.disk().size(&layout::log(&store.layout.job(id))).unwrap_or(0);
        self.outputs.insert(id.clone(), size);
    }

    pub(super) fn is_time_to_try_events(&mut self) -> bool {
        self.tried.as_mut().is_some_and(|tried| {
            *tried += 1;
            tried.is_multiple_of(TRY_EVENTS_AFTER)
        })
    }

    /// Sleeps for one pause and looks, unless there is something to be seen at once.
    pub(super) fn wait<D: Disk>(&mut self, store: &Store<D>, within: Duration) -> Changes {
        let changes = self.look(store);
        if !changes.is_empty() {
            return changes;
        }
        let count = u32::try_from(self.jobs.len() + self.sessions.len()).unwrap_or(u32::MAX);
        std::thread::sleep(EVERY.saturating_add(EVERY_MORE.saturating_mul(count)).min(within));
        self.look(store)
    }

    /// What cannot be looked at now stays as it was seen last, and is seen by a later look.
    fn look<D: Disk>(&mut self, store: &Store<D>) -> Changes {
        let mut changes = Changes::default();
        let jobs = store.layout.jobs();
        if let Ok(names) = store.disk().list(&jobs) {
            let names: Vec<_> = names.into_iter().filter(|name| JobId::parse(name).is_ok()).collect();
            let changed = renew(&mut self.jobs, names, |name| signs_of_job(store, &jobs.join(name)));
            changes.jobs = changed.iter().filter_map(|name| JobId::parse(name).ok()).collect();
        }
        let sessions = store.layout.sessions();
        if let Ok(names) = store.disk().list(&sessions) {
            let changed =
                renew(&mut self.sessions, names, |name| signs_of_session(store, &sessions.join(name)));
            let found = changed.iter().filter_map(|name| store.session_of(name).ok()?);
            changes.sessions = found.collect();
        }
        if let Ok(names) = store.disk().list(&store.layout.monitor()) {
            let requests: BTreeSet<_> = names.into_iter().filter(|name| layout::is_of_host(name)).collect();
            changes.host = requests != self.requests;
            self.requests = requests;
        }
        self.outputs.retain(|id, size| {
            let now = store.disk().size(&layout::log(&store.layout.job(id))).unwrap_or(*size);
            if now != *size {
                changes.outputs.insert(id.clone());
            }
            now == *size
        });
        changes
    }
}

/// Looks at every folder; returns the names of those that have changed, that are new, or that are gone.
fn renew(
    known: &mut Signs,
    names: Vec<String>,
    look: impl Fn(&str) -> io::Result<BTreeSet<String>>,
) -> Vec<String> {
    let mut before = std::mem::take(known);
    let mut changed = Vec::new();
    for name in names {
        let last = before.remove(&name);
        let now = match look(&name) {
            Ok(now) => now,
            Err(_) => {
                known.extend(last.map(|last| (name, last)));
                continue;
            }
        };
        if last.as_ref() != Some(&now) {
            changed.push(name.clone());
        }
        known.insert(name, now);
    }
    changed.extend(before.into_keys());
    changed
}

/// The facts of a job, and its locks that are held.
fn signs_of_job<D: Disk>(store: &Store<D>, folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut signs = BTreeSet::new();
    for name in store.disk().list(folder)? {
        let is_sign = match layout::sign(&name) {
            Some(Sign::Fact) => true,
            Some(Sign::Lock(_)) => store.disk().probe(&folder.join(&name))? == LockState::Held,
            None => false,
        };
        if is_sign {
            signs.insert(name);
        }
    }
    Ok(signs)
}

/// The facts of a session and of its inbox, and the lock of its turn if it is held.
fn signs_of_session<D: Disk>(store: &Store<D>, folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = store.disk().list(folder)?;
    names.extend(store.disk().list(&layout::inbox(folder))?);
    let is_sign = |name: &String| match layout::is_turn_lock(name) {
        true => store.disk().probe(&folder.join(name)).is_ok_and(|lock| lock == LockState::Held),
        false => layout::parse_session_fact(name).is_some(),
    };
    Ok(names.into_iter().filter(is_sign).collect())
}
