//! What a supervisor has around its target: the bell, requests to stop, the log, and the one wait for all of it.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hearback_core::Output;
use hearback_core::port::surroundings::{
    OutputLog, OutsideEvent, Ready, Source, Sources, SurroundRequest, Surroundings,
};

use super::bell::{self, Bell};
use super::{clock, identity, stop};
use crate::log::SharedLog;

/// How long to pause where the system refuses to wait.
const REFUSED: Duration = Duration::from_millis(50);

/// Set when the output exceeds the cap. There is one supervisor in a process.
static OVER_CAP: OnceLock<OwnedHandle> = OnceLock::new();

pub(crate) fn surround(request: &SurroundRequest<'_>) -> io::Result<Box<dyn Surroundings>> {
    let bell = Bell::hang(request.bell)?;
    let stop = stop::listen()?;
    let over_cap = match OVER_CAP.get() {
        Some(event) => event,
        None => {
            let event = bell::event(None)?;
            OVER_CAP.get_or_init(|| event)
        }
    };
    let log = SharedLog::open(request.log, request.log_tail, request.log_cap, wake_up)?;
    Ok(Box::new(LocalSurroundings { bell, stop, over_cap, log: Arc::new(log), heard: None }))
}

/// Wakes a supervisor whose log has news.
fn wake_up() {
    if let Some(event) = OVER_CAP.get() {
        let _ = bell::set(event); // Never refused for an event of ours.
    }
}

struct LocalSurroundings {
    bell: Bell,
    /// Set when the system requests this process to stop.
    stop: &'static OwnedHandle,
    over_cap: &'static OwnedHandle,
    log: Arc<SharedLog>,
    /// What was heard and not reported yet.
    heard: Option<OutsideEvent>,
}

impl Surroundings for LocalSurroundings {
    fn log(&self) -> Arc<dyn OutputLog> {
        Arc::clone(&self.log) as _
    }

    fn last_output(&self) -> Duration {
        self.log.last_output()
    }

    fn finish_log(&mut self) -> Output {
        self.log.finish()
    }

    fn take_event(&mut self) -> Option<OutsideEvent> {
        if identity::wait(&[self.stop], Some(Duration::ZERO)).is_ok_and(|first| first.is_some()) {
            return Some(OutsideEvent::Stop);
        }
        let heard = self.heard.take();
        heard.or_else(|| self.log.take_over_cap().then_some(OutsideEvent::OverCap))
    }

    fn wait(&mut self, sources: &Sources<'_>, deadline: Option<Duration>) -> Option<Ready> {
        let left = deadline.map(|deadline| deadline.saturating_sub(clock::awake()));
        if left == Some(Duration::ZERO) {
            return None;
        }
        let left = left.into_iter().chain(sources.poll_within).min();
        let ours = [source(self.bell.event()), source(self.stop), source(self.over_cap)];
        let handles: Vec<_> = ours.iter().chain(&sources.list).map(|source| source.number()).collect();
        match identity::wait_for_numbers(&handles, left) {
            Ok(Some(0)) => self.heard = Some(OutsideEvent::Bell),
            Ok(Some(1)) => self.heard = Some(OutsideEvent::Stop),
            Ok(Some(first)) if first >= ours.len() => return Some(Ready::NONE.with(first - ours.len())),
            // Out of time, or the log has news.
            Ok(_) => {}
            // Never refused for handles that are ours; if it were, we would look again and again.
            Err(_) => std::thread::sleep(left.map_or(REFUSED, |left| left.min(REFUSED))),
        }
        Some(Ready::NONE)
    }
}

/// A handle, as it crosses the port.
pub(super) fn source(owner: &OwnedHandle) -> Source<'_> {
    Source::of(owner, owner.as_raw_handle() as usize)
}

#[cfg(test)]
mod tests {
    use hearback_core::testing::suite;

    #[test]
    fn this_machine_passes_the_suite_of_surroundings() {
        let dir = tempfile::tempdir().unwrap();
        let bell = dir.path().join("bell");
        let ring = || assert!(crate::sys::bell::ring(&bell).unwrap());
        suite::surroundings(&crate::Native::default(), &ring, dir.path());
        assert_eq!(fs_err::read(dir.path().join("log")).unwrap(), b"hello, world");
        assert!(!bell.exists(), "a bell without a supervisor is taken down");
    }
}
