//! The monitor of a store, with the real ports, and the permissions of its callers.

use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::port::sink::{FollowUpSink, SinkError, Sinks};
use hearback_core::{StopKind, StopRequest};
use hearback_monitor::HostState;
use hearback_monitor::host::{
    HostRequests, Monitor, MonitorEnd, MonitorOptions, MonitorPolicy, Predecessor, SeenMonitor, StopResponse,
    await_end_of, host_state,
};
use hearback_platform::Native;
use tracing::debug;

use crate::Hearback;
use crate::permissions::{Capability, Guarded};
use crate::relaunch::Relauncher;

impl Hearback {
    /// Serves the whole store: records ends whose supervisor died, delivers, retries, hands messages over, prunes, and
    /// sleeps until something is due. Any number may run at once. One of them is the host, which obeys
    /// [`Hearback::request_stop`] and signals.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub fn run_monitor(
        self: &Arc<Self>,
        options: &MonitorOptions,
    ) -> Result<MonitorEnd, Guarded<StoreError>> {
        self.permissions().check(Capability::Monitor)?;
        let monitor = Monitor {
            ports: Arc::clone(&self.ports),
            watch: Arc::new(self.store.clone()),
            signals: Arc::new(Native::default()),
            relaunch: Arc::new(self.relauncher()),
            sinks: Arc::new(RegistryOf(Arc::clone(self))),
            active_turns: Arc::clone(&self.active_turns),
            policy: self.monitor_policy(),
        };
        Arc::new(monitor).run(options).map_err(Guarded::Failed)
    }

    /// Lets this process have as many open files as the system allows it, for a program that is a monitor and nothing
    /// else: deliveries that are on their way need about ten each. Sinks get the limit from before. Best effort.
    pub fn raise_descriptor_limit(&self) {
        if let Err(error) = Native::raise_descriptor_limit() {
            debug!(%error, "limit of open files not raised");
        }
    }

    fn monitor_policy(&self) -> MonitorPolicy {
        let settings = self.settings();
        MonitorPolicy {
            durability: settings.durability,
            retention: settings.retention,
            retry: settings.retry,
            notice: settings.notice,
            resume_window: settings.resume_window,
            drain_timeout: settings.drain_timeout,
            default_sink: settings.default_sink.clone(),
            notice_sink: settings.notice_sink.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn host_requests(&self) -> HostRequests<'_> {
        HostRequests { ports: &self.ports, watch: &self.store, durability: self.settings().durability }
    }

    fn relauncher(&self) -> Relauncher {
        let program = self.supervisor_program();
        Relauncher::new(Arc::clone(&self.ports), self.home().to_owned(), program)
    }

    /// Requests the monitor of this store to end, and waits until it has taken the request, but not longer than
    /// `within`.
    ///
    /// # Errors
    ///
    /// When the records cannot be read or written.
    pub fn request_stop(
        &self,
        request: &StopRequest,
        within: Duration,
    ) -> Result<StopResponse, Guarded<StoreError>> {
        self.permissions().check(Capability::Monitor)?;
        self.host_requests().request_stop(request, within).map_err(Guarded::Failed)
    }

    /// A request made now that names no turn.
    pub fn stop_request(&self, kind: StopKind) -> StopRequest {
        StopRequest::new(kind, self.ports.clock.stamp())
    }

    /// What is recorded of the monitor of this store, and whether it runs.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor(&self) -> Result<SeenMonitor, StoreError> {
        self.host_requests().seen()
    }

    /// Whether a monitor serves this store, and whether it does its work.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor_state(&self) -> Result<HostState, StoreError> {
        host_state(&self.ports, &self.settings().retry)
    }

    /// The number of the newest monitor that was the host; it grows with each.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn monitor_number(&self) -> Result<u32, StoreError> {
        self.host_requests().number()
    }

    /// Sleeps until a monitor with a higher number than this is the host, but not longer than `within`; tells whether
    /// there is one.
    ///
    /// # Errors
    ///
    /// When the records cannot be read.
    pub fn await_monitor_after(&self, number: u32, within: Duration) -> Result<bool, StoreError> {
        self.host_requests().await_host_after(number, within)
    }

    /// Sleeps until this process has ended, by its identity. Another monitor may be the host by then.
    ///
    /// # Errors
    ///
    /// When the processes cannot be seen.
    pub fn await_end_of(&self, before: &Predecessor) -> Result<(), StoreError> {
        await_end_of(&self.ports, before)
    }
}

/// The sinks of a store, for threads that outlive a borrow of it.
struct RegistryOf(Arc<Hearback>);

impl Sinks for RegistryOf {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        self.0.registry.find(name)
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        self.0.registry.is_elsewhere(name)
    }
}
