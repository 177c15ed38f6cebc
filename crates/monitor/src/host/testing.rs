//! A monitor over fakes, for the tests of this folder.

use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::disk::{LockMode, Wait};
use hearback_core::port::session::SessionStore;
use hearback_core::testing::{
    FakeClock, FakeExecutor, FakeProcesses, FakeRelaunch, FakeSink, FakeStop, FakeStore, sample,
};
use hearback_core::{
    Durability, Facts, HostFact, JobId, NoticeBytes, Read, Session, Spec, StopKind, StopRequest,
};

use super::monitor::{Monitor, MonitorOptions, MonitorPolicy};
use super::run::Loop;
use crate::Ports;
use crate::delivery::Retry;
use crate::prune::Retention;
use crate::session::ActiveTurns;

/// Far longer than any thread of a test takes.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A store, and a monitor for it.
pub(super) struct World {
    pub(super) clock: FakeClock,
    pub(super) store: FakeStore,
    pub(super) sink: Arc<FakeSink>,
    pub(super) stop: FakeStop,
    pub(super) relaunch: FakeRelaunch,
    pub(super) monitor: Arc<Monitor>,
}

impl World {
    pub(super) fn new() -> Self {
        let (clock, store) = (FakeClock::default(), FakeStore::default());
        let (sink, stop, relaunch) =
            (Arc::new(FakeSink::default()), FakeStop::default(), FakeRelaunch::default());
        let monitor = Monitor {
            ports: Arc::new(Ports::new(
                store.clone(),
                FakeProcesses::default(),
                clock.clone(),
                FakeExecutor::default(),
            )),
            watch: Arc::new(store.clone()),
            signals: Arc::new(stop.clone()),
            relaunch: Arc::new(relaunch.clone()),
            sinks: Arc::clone(&sink) as _,
            active_turns: Arc::new(ActiveTurns::default()),
            policy: policy(),
        };
        Self { clock, store, sink, stop, relaunch, monitor: Arc::new(monitor) }
    }

    /// A monitor that stays, before its first round. It has no threads that listen.
    pub(super) fn stays(&self) -> Loop {
        Loop::new(&self.monitor, &MonitorOptions::default())
    }

    /// The same as the host.
    pub(super) fn host(&self) -> Loop {
        let mut host = self.stays();
        let lock = self.store.lock_monitor(LockMode::Exclusive, Wait::Try).unwrap().unwrap();
        host.become_host(lock, &self.monitor.ports.clock.stamp());
        host
    }

    /// Puts a job of this session into the store that has ended, and whose follow-up is due.
    pub(super) fn ended(&self, n: u64, session: &str) -> JobId {
        let id = sample::id(n);
        let spec = Spec { id: id.clone(), sinks: vec!["a".into()], ..sample::spec(session) };
        let facts = Facts {
            spec: Read::Present(spec),
            begin: Read::Present(sample::begin()),
            end: Read::Present(sample::end(0)),
            ..Facts::default()
        };
        self.store.put(&id, facts);
        id
    }

    /// Requests the host to end.
    pub(super) fn request(&self, kind: StopKind) {
        let request = HostFact::Request(StopRequest::new(kind, self.monitor.ports.clock.stamp()));
        let _ = self.store.publish_host(1, &request, Durability::Process).unwrap();
    }

    /// The jobs whose owners were notified, in the order of their ids.
    pub(super) fn delivered(&self) -> Vec<JobId> {
        let mut jobs: Vec<_> = self.sink.taken().into_iter().map(|delivery| delivery.job.id).collect();
        jobs.sort();
        jobs
    }
}

pub(super) fn session(name: &str) -> Session {
    Session::parse(name).unwrap()
}

fn policy() -> MonitorPolicy {
    MonitorPolicy {
        durability: Durability::Process,
        retention: Retention::default(),
        retry: Retry::default(),
        notice: NoticeBytes::default(),
        resume_window: Duration::ZERO,
        drain_timeout: Duration::ZERO,
        default_sink: None,
        notice_sink: Some("a".into()),
        version: "1".into(),
    }
}
