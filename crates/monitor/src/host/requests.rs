//! What other processes know of a monitor, and how they request it to end.

use std::ops::ControlFlow;
use std::time::Duration;

use hearback_core::port::disk::Publish;
use hearback_core::port::record::StoreError;
use hearback_core::port::watch::StoreWatch;
use hearback_core::{Durability, HostFact, HostFacts, LockState, StopKind, StopRequest, Verdict};

use crate::Ports;

/// A process that waits for a monitor looks at least this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The monitor of a store as it was seen.
#[derive(Debug, Clone)]
pub struct SeenMonitor {
    /// What is recorded of it.
    pub facts: HostFacts,
    /// Whether it runs.
    pub lock: LockState,
}

/// The response to a request to a monitor to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopResponse {
    /// It took the request, and waits for so many turns.
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
    /// The same request came before, and has been carried out.
    Redelivered,
}

/// Speaks to the monitor of a store.
#[derive(Clone, Copy)]
pub struct HostRequests<'a> {
    /// The ports.
    pub ports: &'a Ports,
    /// How it hears of answers.
    pub watch: &'a dyn StoreWatch,
    /// What has to survive a power cut.
    pub durability: Durability,
}

impl HostRequests<'_> {
    /// What is recorded of the monitor, and whether it runs.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn seen(&self) -> Result<SeenMonitor, StoreError> {
        // The facts first: a monitor that has ended after that has recorded everything that it had to.
        let facts = self.ports.sessions.host()?;
        Ok(SeenMonitor { facts, lock: self.ports.host_lock()? })
    }

    /// The number of the newest monitor that was the host; it grows with each.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn number(&self) -> Result<u32, StoreError> {
        Ok(self.ports.sessions.host()?.begins.last().map_or(0, |(n, _)| *n))
    }

    /// Requests the monitor to end, and waits until it has taken the request, but not longer than `within`.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn request_stop(&self, request: &StopRequest, within: Duration) -> Result<StopResponse, StoreError> {
        match self.publish(request)? {
            ControlFlow::Continue(n) => self.await_answer(n, within),
            ControlFlow::Break(response) => Ok(response),
        }
    }

    fn publish(&self, request: &StopRequest) -> Result<ControlFlow<StopResponse, u32>, StoreError> {
        loop {
            let facts = self.ports.sessions.host()?;
            let now = self.ports.clock.stamp();
            let n = match facts.judge(self.ports.host_lock()?, request.sequence, &now) {
                Verdict::Publish(n) => n,
                Verdict::NoHost => return Ok(ControlFlow::Break(StopResponse::NoMonitor)),
                Verdict::UnderWay(kind) => return Ok(ControlFlow::Break(StopResponse::UnderWay(kind))),
                Verdict::Redelivered => return Ok(ControlFlow::Break(StopResponse::Redelivered)),
            };
            let fact = HostFact::Request(request.clone());
            if self.ports.sessions.publish_host(n, &fact, self.durability)? == Publish::New {
                return Ok(ControlFlow::Continue(n));
            }
            // Another process published a request at the same moment. It is judged first.
        }
    }

    fn await_answer(&self, n: u32, within: Duration) -> Result<StopResponse, StoreError> {
        let response = self.await_some(within, || {
            let lock = self.ports.host_lock()?;
            let facts = self.ports.sessions.host()?;
            let ours = facts.requests.iter().find(|(number, _)| *number == n).map(|(_, facts)| facts);
            if let Some(taken) = ours.and_then(|facts| facts.taken.present()) {
                return Ok(Some(StopResponse::Taken { awaited: taken.awaited }));
            }
            // Another monitor has closed it: the one that got the request has ended.
            let is_closed = ours.is_none_or(|facts| !facts.done.is_absent());
            Ok((is_closed || lock == LockState::Free).then_some(StopResponse::Gone))
        })?;
        Ok(response.unwrap_or(StopResponse::Unanswered))
    }

    /// Sleeps until a monitor with a higher number than this is the host, but not longer than `within`; tells whether
    /// there is one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn await_host_after(&self, number: u32, within: Duration) -> Result<bool, StoreError> {
        let begun = self.await_some(within, || Ok((self.number()? > number).then_some(())))?;
        Ok(begun.is_some())
    }

    /// Looks until there is something to be seen, asleep while nothing changes, but not longer than `within`.
    fn await_some<T>(
        &self,
        within: Duration,
        look: impl Fn() -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let deadline = self.ports.clock.awake().saturating_add(within);
        let mut watch = self.watch.watch_host()?;
        loop {
            if let Some(seen) = look()? {
                return Ok(Some(seen));
            }
            let left = deadline.saturating_sub(self.ports.clock.awake());
            if left.is_zero() {
                return Ok(None);
            }
            watch.wait(left.min(LOOK_EVERY));
        }
    }
}

impl std::fmt::Debug for HostRequests<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRequests").field("durability", &self.durability).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::testing::World;

    fn requests(world: &World) -> HostRequests<'_> {
        let (ports, watch) = (&*world.monitor.ports, &world.store);
        HostRequests { ports, watch, durability: Durability::Process }
    }

    #[test]
    fn only_a_running_monitor_gets_a_request_and_only_one() {
        let world = World::new();
        let requests = requests(&world);
        let request = StopRequest::new(StopKind::Stop, world.monitor.ports.clock.stamp());
        let stop = || requests.request_stop(&request, Duration::ZERO).unwrap();
        assert_eq!(stop(), StopResponse::NoMonitor);
        let mut host = world.host();
        assert_eq!(requests.seen().unwrap().lock, LockState::Held);
        assert_eq!(stop(), StopResponse::Unanswered);
        assert_eq!(stop(), StopResponse::UnderWay(StopKind::Stop));
        host.round().unwrap();
        drop(host);
        assert_eq!(stop(), StopResponse::NoMonitor);
    }

    #[test]
    fn a_new_host_closes_what_the_one_before_left_open_and_has_a_number_of_its_own() {
        let world = World::new();
        let requests = requests(&world);
        drop(world.host());
        world.request(StopKind::Restart);
        world.clock.advance(Duration::from_secs(1));
        assert!(!requests.await_host_after(1, Duration::ZERO).unwrap());
        let mut host = world.host();
        assert!(requests.await_host_after(1, Duration::ZERO).unwrap());
        assert_eq!(requests.number().unwrap(), 2);
        let done = requests.seen().unwrap().facts.requests[0].1.done.clone();
        assert_eq!(done.present().map(|done| done.interrupted), Some(None), "no monitor carried it out");
        assert!(matches!(host.round().unwrap(), crate::host::run::Round::LookAgainIn(_)));
    }
}
