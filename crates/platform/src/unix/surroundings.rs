//! What a supervisor has around its target: the bell, requests to stop, the log, and the one wait for all of it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use hearback_core::Output;
use hearback_core::port::surroundings::{
    OutputLog, OutsideEvent, Ready, Source, Sources, SurroundRequest, Surroundings,
};

use super::bell::Bell;
use super::clock;
use super::signals::{self, SignalWatch};
use crate::log::SharedLog;

/// Where the sources of the target come after ours.
const OURS: usize = 2;

pub(crate) fn surround(request: &SurroundRequest<'_>) -> io::Result<Box<dyn Surroundings>> {
    let stops = SignalWatch::stops()?;
    let log = SharedLog::open(request.log, request.log_tail, request.log_cap, signals::wake_up)?;
    let bell = Bell::hang(request.bell)?;
    Ok(Box::new(LocalSurroundings { stops, bell, log: Arc::new(log), rung: false, gave_memory_back: false }))
}

struct LocalSurroundings {
    stops: SignalWatch,
    bell: Bell,
    log: Arc<SharedLog>,
    /// The bell was rung since that was last reported.
    rung: bool,
    /// What the start needed has been given back.
    gave_memory_back: bool,
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
        if self.stops.take_stop() {
            return Some(OutsideEvent::Stop);
        }
        if std::mem::take(&mut self.rung) {
            return Some(OutsideEvent::Bell);
        }
        self.log.take_over_cap().then_some(OutsideEvent::OverCap)
    }

    fn wait(&mut self, sources: &Sources<'_>, deadline: Option<Duration>) -> Option<Ready> {
        let left = deadline.map(|deadline| deadline.saturating_sub(clock::awake()));
        if left == Some(Duration::ZERO) {
            return None;
        }
        if !sources.list.is_empty() && !std::mem::replace(&mut self.gave_memory_back, true) {
            give_memory_back();
        }
        let left = left.into_iter().chain(sources.poll_within).min();
        let ours = [source(&self.stops), source(&self.bell)];
        let ready = poll(ours.iter().chain(&sources.list), left);
        if ready.contains(0) {
            self.stops.acknowledge();
        }
        if ready.contains(1) {
            self.bell.acknowledge();
            self.rung = true;
        }
        let theirs = (0..sources.list.len()).filter(|place| ready.contains(OURS + place));
        Some(theirs.fold(Ready::NONE, Ready::with))
    }
}

/// A descriptor, as it crosses the port.
pub(super) fn source(owner: &impl AsFd) -> Source<'_> {
    Source::of(owner, owner.as_fd().as_raw_fd().unsigned_abs() as usize)
}

/// Waits until one of these can be read or has come to its end, or `left` has passed, and reports which.
pub(super) fn poll<'a>(sources: impl IntoIterator<Item = &'a Source<'a>>, left: Option<Duration>) -> Ready {
    // Rounded up, so that a deadline has passed when we wake; the longest sleep is 24 days, then one more.
    let millis =
        left.map_or(-1, |left| i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX));
    let polled = |source: &Source<'_>| libc::pollfd {
        fd: i32::try_from(source.number()).unwrap_or(-1),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<_> = sources.into_iter().map(polled).collect();
    let count = libc::nfds_t::try_from(polled.len()).expect("a handful");
    // SAFETY: the pointer is to as many entries of ours as are said; a number that is no descriptor is only refused.
    if unsafe { libc::poll(polled.as_mut_ptr(), count, millis) } <= 0 {
        return Ready::NONE; // Interrupted, or out of time; whatever it was, the next look tells.
    }
    let ready = polled.iter().enumerate().filter(|(_, entry)| entry.revents != 0);
    ready.fold(Ready::NONE, |ready, (place, _)| ready.with(place))
}

/// Starting a job takes more memory than watching one. Hundreds of supervisors may sleep side by side.
fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: returns free pages of the allocator to the system, and touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0)
    };
    #[cfg(target_os = "linux")]
    give_stack_back();
}

/// Gives back the pages of the stack that only the start needed: those below the frames that are in use.
#[cfg(target_os = "linux")]
fn give_stack_back() {
    /// Deeper than a start reaches, and less than the gap that Linux keeps free below the main stack.
    const DEPTH: usize = 128 * 1024;
    // Other mappings may lie right below the stack of another thread.
    if nix::unistd::gettid() != nix::unistd::getpid() {
        return;
    }
    let page = rustix::param::page_size();
    let here = std::ptr::from_ref(&page).addr();
    // One page stays between, for the frames of the call itself.
    let Some(top) = (here & !(page - 1)).checked_sub(page) else { return };
    let Some(start) = top.checked_sub(DEPTH) else { return };
    // SAFETY: this is the main thread, and the range lies below every frame in use, in its stack or in the unmapped gap
    // under it. No live value is there; the kernel provides zeroed pages when the stack grows there again.
    let _ =
        unsafe { libc::madvise(std::ptr::without_provenance_mut(start), top - start, libc::MADV_DONTNEED) };
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
