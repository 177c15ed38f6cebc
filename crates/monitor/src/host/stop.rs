//! How a monitor ends: by a recorded request, or by a signal.

use hearback_core::port::record::StoreError;
use hearback_core::{HostFact, LockState, Read, StopKind, StopRequest, Verdict};

use super::drain::Drain;
use super::monitor::MonitorEnd;
use super::run::Loop;

impl Loop {
    /// Obeys the open request to the host, if there is one; returns its kind when that is done.
    pub(super) fn obey(&self) -> Result<Option<StopKind>, StoreError> {
        if self.host.is_none() {
            return Ok(None);
        }
        let facts = self.monitor.ports.sessions.host()?;
        let Some((n, open)) = facts.open_request() else { return Ok(None) };
        let request = match &open.request {
            Read::Present(request) => request.clone(),
            // A request that cannot be read is still a request. The kind that promises least is assumed.
            _ => self.stop_request(),
        };
        self.drain(Some(n), &request);
        Ok(Some(request.kind))
    }

    /// A signal is recorded as a request, so that there is one way to end. A monitor that is not the host, or cannot
    /// record it, does the same unrecorded, and has ended then.
    pub(super) fn stop_by_signal(&self) -> MonitorEnd {
        if self.host.is_some()
            && self.record_own_request().is_ok()
            && let Ok(Some(kind)) = self.obey()
        {
            return MonitorEnd::Stopped(kind);
        }
        self.drain(None, &self.stop_request());
        MonitorEnd::Stopped(StopKind::Stop)
    }

    fn record_own_request(&self) -> Result<(), StoreError> {
        let (sessions, request) = (&self.monitor.ports.sessions, self.stop_request());
        let Verdict::Publish(n) = sessions.host()?.judge(LockState::Held, None, &request.at) else {
            return Ok(());
        };
        let fact = HostFact::Request(request);
        let _ = sessions.publish_host(n, &fact, self.monitor.policy.durability)?;
        Ok(())
    }

    pub(super) fn stop_request(&self) -> StopRequest {
        StopRequest::new(StopKind::Stop, self.monitor.ports.clock.stamp())
    }

    pub(super) fn drain(&self, number: Option<u32>, request: &StopRequest) {
        Drain { monitor: &self.monitor, number, request, succeed: self.options.succeed }.run();
    }
}
