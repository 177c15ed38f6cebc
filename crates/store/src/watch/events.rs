//! Changes of a store by the events of its folders: those of all jobs, of all sessions, and of the monitor.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use hearback_core::JobId;
use hearback_core::port::disk::{Disk, FolderEvent, FolderWatch};
use hearback_core::port::watch::Changes;

use crate::layout::{self, Sign};
use crate::{Store, hash};

/// Hears of changes by events.
pub(super) struct Events(Box<dyn FolderWatch>);

impl Events {
    /// Watches every folder that tells a monitor something.
    pub(super) fn new<D: Disk>(store: &Store<D>) -> io::Result<Self> {
        let mut events = Self(store.disk().watch_folders()?);
        events.add_all(store)?;
        Ok(events)
    }

    /// Sleeps until something changes. A folder that cannot be watched, because there are no more watches, is an
    /// error: no event would tell of it.
    pub(super) fn wait<D: Disk>(&mut self, store: &Store<D>, within: Duration) -> io::Result<Changes> {
        let mut changes = Changes::default();
        for event in self.0.wait(within) {
            match event {
                FolderEvent::At { folder, name } => self.take(store, &folder, &name, &mut changes)?,
                FolderEvent::Missed => {
                    self.add_all(store)?;
                    changes.everything = true;
                }
            }
        }
        Ok(changes)
    }

    /// Best effort: a job that has not printed yet has no log, and one that has ended prints nothing.
    pub(super) fn add_output<D: Disk>(&mut self, store: &Store<D>, id: &JobId) {
        let _ = self.0.add_next_write(&layout::log(&store.layout.job(id)));
    }

    fn add_all<D: Disk>(&mut self, store: &Store<D>) -> io::Result<()> {
        // A folder comes before what is in it: what is made meanwhile is an event.
        for folder in [store.layout.monitor(), store.layout.jobs(), store.layout.sessions()] {
            self.add(&folder)?;
        }
        for name in store.disk().list(&store.layout.jobs())? {
            if let Ok(id) = JobId::parse(&name) {
                self.add(&store.layout.job(&id))?;
            }
        }
        for name in store.disk().list(&store.layout.sessions())? {
            self.add_session(store, &name)?;
        }
        Ok(())
    }

    /// Watches a folder that may have gone meanwhile, or that is a file of another program.
    fn add(&mut self, folder: &Path) -> io::Result<()> {
        match self.0.add(folder) {
            Err(error) if is_no_folder(&error) => {
                self.0.remove(folder);
                Ok(())
            }
            added => added,
        }
    }

    fn add_session<D: Disk>(&mut self, store: &Store<D>, name: &str) -> io::Result<()> {
        let folder = store.layout.session(name);
        self.add(&folder)?;
        self.add(&layout::inbox(&folder))
    }

    /// Takes note of what has happened to one name of a folder.
    fn take<D: Disk>(
        &mut self,
        store: &Store<D>,
        folder: &Path,
        name: &str,
        changes: &mut Changes,
    ) -> io::Result<()> {
        let (jobs, sessions) = (store.layout.jobs(), store.layout.sessions());
        if folder == jobs {
            if let Ok(id) = JobId::parse(name) {
                // It was made, or it was moved away. What happened in it before it was watched is seen by looking.
                self.add(&store.layout.job(&id))?;
                changes.jobs.insert(id);
            }
        } else if folder == sessions {
            self.add_session(store, name)?;
            Self::session(store, name, changes);
        } else if folder == store.layout.monitor() {
            changes.host |= layout::is_of_host(name);
        } else if folder.parent() == Some(&jobs) {
            let id = last_name(folder).map(JobId::parse);
            if layout::log(folder).ends_with(name) {
                changes.outputs.extend(id.and_then(Result::ok));
            } else if let (Some(sign), Some(Ok(id))) = (layout::sign(name), id) {
                match sign {
                    Sign::Fact => drop(changes.jobs.insert(id)),
                    Sign::Lock(lock) => drop(changes.closed.insert((id, lock))),
                }
            }
        } else {
            let is_inbox = folder.file_name() == layout::inbox(folder).file_name();
            let session = if is_inbox { folder.parent() } else { Some(folder) };
            let Some(hash) = session.and_then(last_name) else { return Ok(()) };
            // A turn that was cut short by a death has no end, and its lock is closed.
            let is_fact = layout::parse_session_fact(name).is_some() || layout::is_turn_lock(name);
            if is_inbox || is_fact {
                Self::session(store, hash, changes);
            } else if layout::inbox(folder).ends_with(name) {
                self.add_session(store, hash)?;
                Self::session(store, hash, changes);
            }
        }
        Ok(())
    }

    /// One that cannot be read now is found by the next look at everything.
    fn session<D: Disk>(store: &Store<D>, hash: &str, changes: &mut Changes) {
        // Several events of one session are common, and its name is in a file.
        let is_known = changes.sessions.iter().any(|session| hash::session_name(session) == hash);
        if !is_known && let Ok(Some(session)) = store.session_of(hash) {
            changes.sessions.insert(session);
        }
    }
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn last_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
