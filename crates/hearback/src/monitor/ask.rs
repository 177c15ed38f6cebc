//! What a store knows of its monitor, asking it to end, and starting the next one.

use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::process::DetachedRequest;
use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionStore;
use hearback_core::{HostFact, HostFacts, LockState, ProcessIdentity, StopKind, StopRequest, Verdict};

use crate::Hearback;
use crate::permissions::{Capability, Guarded};

/// How often to look whether a predecessor is gone.
const LOOK_FOR_PREDECESSOR: Duration = Duration::from_millis(10);

/// A process that is to be gone first: a number alone could be somebody else's by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predecessor {
    /// Its number.
    pub pid: u32,
    /// When the kernel says it was started.
    pub started: u64,
}

impl From<&ProcessIdentity> for Predecessor {
    fn from(who: &ProcessIdentity) -> Self {
        Self { pid: who.pid, started: who.started }
    }
}

/// The monitor of a store as it was seen.
#[derive(Debug, Clone)]
pub struct SeenMonitor {
    /// What is recorded of it.
    pub facts: HostFacts,
    /// Whether it runs.
    pub lock: LockState,
}

/// What became of a wish for the end of a monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopResponse {
    /// It heard it, and waits for so many turns.
    Taken {
        /// How many.
        awaited: u32,
    },
    /// It has not answered.
    Unanswered,
    /// It ended before it answered.
    Gone,
    /// There is none.
    NoMonitor,
    /// One is under way.
    UnderWay(StopKind),
    /// It is an old one that came again, and has been done.
    Redelivered,
}

impl Hearback {
    /// Asks the monitor of this store to end, and waits until it has heard that, but not longer than `within`.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn ask_monitor(
        &self,
        request: &StopRequest,
        within: Duration,
    ) -> Result<StopResponse, Guarded<StoreError>> {
        self.permissions().check(Capability::Monitor)?;
        self.request_stop(request, within).map_err(Guarded::Failed)
    }

    fn request_stop(&self, request: &StopRequest, within: Duration) -> Result<StopResponse, StoreError> {
        let n = loop {
            let facts = self.store.host()?;
            let n = match facts.judge(self.host_lock()?, request.sequence, &self.ports.clock.stamp()) {
                Verdict::Ask(n) => n,
                Verdict::NoHost => return Ok(StopResponse::NoMonitor),
                Verdict::UnderWay(kind) => return Ok(StopResponse::UnderWay(kind)),
                Verdict::Redelivered => return Ok(StopResponse::Redelivered),
            };
            let fact = HostFact::Request(request.clone());
            if self.store.publish_host(n, &fact, self.settings().durability)? == Publish::New {
                break n;
            }
            // Somebody else has asked at the same moment, and is judged first.
        };
        let deadline = self.ports.clock.awake().saturating_add(within);
        let mut watch = self.store.watch_host()?;
        loop {
            let lock = self.host_lock()?;
            let facts = self.store.host()?;
            let ours = facts.requests.iter().find(|(number, _)| *number == n).map(|(_, facts)| facts);
            if let Some(taken) = ours.and_then(|facts| facts.taken.present()) {
                return Ok(StopResponse::Taken { awaited: taken.awaited });
            }
            // Somebody else has closed it: whoever was asked is gone.
            if ours.is_none_or(|facts| !facts.done.is_absent()) {
                return Ok(StopResponse::Gone);
            }
            if lock == LockState::Free {
                return Ok(StopResponse::Gone);
            }
            let left = deadline.saturating_sub(self.ports.clock.awake());
            if left.is_zero() {
                return Ok(StopResponse::Unanswered);
            }
            watch.wait(left.min(Duration::from_secs(1)));
        }
    }

    /// A request of this moment, by nobody in particular.
    pub fn stop_request(&self, kind: StopKind) -> StopRequest {
        StopRequest::new(kind, self.ports.clock.stamp())
    }

    /// What is recorded of the monitor of this store, and whether it runs.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor(&self) -> Result<SeenMonitor, StoreError> {
        // The facts first: whoever is gone after that has said everything that it had to say.
        let facts = self.store.host()?;
        Ok(SeenMonitor { facts, lock: self.host_lock()? })
    }

    /// The number of the newest monitor that was the host; it grows with each.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor_number(&self) -> Result<u32, StoreError> {
        Ok(self.store.host()?.begins.last().map_or(0, |(n, _)| *n))
    }

    /// Sleeps until a monitor with a higher number than this is the host, but not longer than `within`; tells whether
    /// there is one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn await_monitor_after(&self, number: u32, within: Duration) -> Result<bool, StoreError> {
        let deadline = self.ports.clock.awake().saturating_add(within);
        let mut watch = self.store.watch_host()?;
        while self.monitor_number()? <= number {
            let left = deadline.saturating_sub(self.ports.clock.awake());
            if left.is_zero() {
                return Ok(false);
            }
            watch.wait(left.min(Duration::from_secs(1)));
        }
        Ok(true)
    }

    /// Starts a monitor that begins when this process is gone, detached from it.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn_successor(&self) -> Result<(), StoreError> {
        let me = Predecessor::from(&self.ports.processes.me()?);
        let after = format!("{}:{}", me.pid, me.started);
        let args = ["monitor", "run", "--after", &after].map(Into::into).to_vec();
        // The environment may name another store; this one is the working directory of the successor.
        let env = vec![(crate::home::HOME_VARIABLE.into(), Some(self.home().into()))];
        let program = hearback_platform::next_program()?;
        let home = self.home().to_owned();
        Ok(self.ports.processes.spawn_detached(&DetachedRequest { program, args, home, env })?)
    }

    /// Sleeps until this process is gone, by its identity. Another monitor may be the host by then.
    ///
    /// # Errors
    ///
    /// When the processes cannot be seen.
    pub fn await_end_of(&self, before: &Predecessor) -> Result<(), StoreError> {
        while self.ports.processes.identify(before.pid)?.is_some_and(|who| who.started == before.started) {
            std::thread::sleep(LOOK_FOR_PREDECESSOR);
        }
        Ok(())
    }
}
