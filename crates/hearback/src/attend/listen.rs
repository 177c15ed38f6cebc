//! The threads of a host: one hears of changes in the store, and one looks at what has changed. Neither wakes up while
//! nothing happens.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::Duration;

use hearback_core::JobId;
use hearback_core::port::record::{FactStore, StoreError};
use hearback_monitor::host::{Changed, JobChanges};
use tracing::warn;

use super::host::Host;
use super::look::{Heard, Loop};

/// A listener wakes at least this often, so that it ends after its host has.
const WAKE_EVERY: Duration = Duration::from_secs(60);
const AFTER_AN_ERROR: Duration = Duration::from_secs(2);

pub(super) fn start(host: &Arc<Host>, heard: Receiver<Heard>) -> Result<(), StoreError> {
    let looking = Arc::clone(host);
    // The first watch is made now, so that whoever attends a session next misses nothing.
    let (sender, is_watched) = std::sync::mpsc::channel();
    let listening = Arc::downgrade(host);
    Builder::new().name("watch".into()).spawn(move || {
        let mut report = Some(sender);
        while let Some(host) = listening.upgrade() {
            match listen(&host, &listening, &mut report) {
                Ok(()) => return,
                Err(error) => match report.take() {
                    Some(report) => return drop(report.send(Err(error))),
                    None => warn!(%error, "changes are not heard, trying again"),
                },
            }
            std::thread::sleep(AFTER_AN_ERROR);
        }
    })?;
    is_watched.recv().unwrap_or(Ok(()))?;
    Builder::new().name("host".into()).spawn(move || Loop::new(&looking).run(&heard))?;
    Ok(())
}

/// Reports changes until the host is closed.
fn listen(
    host: &Arc<Host>,
    is_there: &Weak<Host>,
    report: &mut Option<std::sync::mpsc::Sender<Result<(), StoreError>>>,
) -> Result<(), StoreError> {
    let hearback = Arc::clone(&host.hearback);
    let mut changes: JobChanges<'_> = hearback.job_changes()?.with_sessions().with_host();
    if let Some(report) = report.take() {
        let _ = report.send(Ok(()));
    }
    host.hear(Heard::Everything);
    let is_wanted = |id: &JobId| {
        let spec = hearback.store.spec(id).ok();
        let session = spec.as_ref().and_then(|spec| spec.present()?.session.as_ref());
        session.is_some_and(|session| is_there.upgrade().is_some_and(|host| host.attends(session)))
    };
    loop {
        let changed = changes.wait(WAKE_EVERY, is_wanted);
        let Some(host) = is_there.upgrade().filter(|host| !host.is_closed()) else { return Ok(()) };
        match changed {
            Changed::Everything => host.hear(Heard::Everything),
            Changed::Jobs(jobs) => {
                let jobs: Vec<_> = jobs.into_iter().map(|(id, _)| id).collect();
                let (sessions, monitor) = (changes.take_sessions(), changes.take_host());
                if !jobs.is_empty() || !sessions.is_empty() || monitor {
                    host.hear(Heard::Changed { jobs, sessions, monitor });
                }
            }
        }
    }
}
