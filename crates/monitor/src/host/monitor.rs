//! What a monitor works with: ports, sinks, the turns of this process, and the policy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::port::relaunch::Relaunch;
use hearback_core::port::sink::Sinks;
use hearback_core::port::stop::StopSignals;
use hearback_core::port::watch::StoreWatch;
use hearback_core::{Durability, NoticeBytes, StopKind};

use super::run::Loop;
use super::successor::{Predecessor, await_end_of};
use crate::Ports;
use crate::delivery::{Deliverer, Inbox, Retry};
use crate::prune::Retention;
use crate::session::{ActiveTurns, Turns};

/// How to run a monitor.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MonitorOptions {
    /// Do what is due now, and return.
    pub once: bool,
    /// A service manager starts this program again when it exits with
    /// [`RESTART_EXIT_CODE`](hearback_core::service::RESTART_EXIT_CODE).
    pub service: bool,
    /// On a restart, start a successor, which begins when this process has ended. Otherwise the caller has to.
    pub succeed: bool,
    /// Begin when this process has ended.
    pub after: Option<Predecessor>,
}

/// Why a monitor returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MonitorEnd {
    /// Everything that was due is done.
    Done,
    /// It was requested to end.
    Stopped(StopKind),
}

/// The settings of a monitor.
#[derive(Debug, Clone)]
pub struct MonitorPolicy {
    /// What has to survive a power cut.
    pub durability: Durability,
    /// How long settled jobs are kept.
    pub retention: Retention,
    /// How often a delivery is tried.
    pub retry: Retry,
    /// How much of a job's output is sent along.
    pub notice: NoticeBytes,
    /// How old an interruption may be for a turn to continue from it; zero means any age.
    pub resume_window: Duration,
    /// How long a drain waits for turns to end, unless the request says otherwise.
    pub drain_timeout: Duration,
    /// Where a session is continued whose last turn names no sink.
    pub default_sink: Option<String>,
    /// Where notices about a restart or a stop go.
    pub notice_sink: Option<String>,
    /// The version that is recorded when this monitor becomes the host.
    pub version: String,
}

/// Serves a whole store: finds ends whose supervisor died, delivers, retries, hands messages over and prunes.
pub struct Monitor {
    /// The ports.
    pub ports: Arc<Ports>,
    /// How it hears of changes in the store.
    pub watch: Arc<dyn StoreWatch>,
    /// How it hears that this process is to terminate.
    pub signals: Arc<dyn StopSignals>,
    /// How it starts what has to outlive this process.
    pub relaunch: Arc<dyn Relaunch>,
    /// Where follow-ups, messages and notices go.
    pub sinks: Arc<dyn Sinks>,
    /// The turns of this process.
    pub active_turns: Arc<ActiveTurns>,
    /// Its settings.
    pub policy: MonitorPolicy,
}

impl Monitor {
    /// Runs until it is requested to end; with [`MonitorOptions::once`], until everything that was due is done.
    /// Any number may run at once; one of them is the host, which takes requests.
    ///
    /// # Errors
    ///
    /// When the store cannot be read, again and again.
    pub fn run(self: &Arc<Self>, options: &MonitorOptions) -> Result<MonitorEnd, StoreError> {
        self.active_turns.start();
        if let Some(before) = &options.after {
            await_end_of(&self.ports, before)?;
        }
        Loop::new(self, options).run()
    }

    pub(super) fn turns(&self) -> Turns<'_> {
        Turns {
            ports: &self.ports,
            active_turns: &self.active_turns,
            window: self.policy.resume_window,
            durability: self.policy.durability,
        }
    }

    pub(super) fn inbox(&self) -> Inbox<'_> {
        Inbox { turns: self.turns(), sinks: &*self.sinks, retry: self.policy.retry }
    }

    pub(super) fn deliverer(&self) -> Deliverer<'_> {
        Deliverer {
            ports: &self.ports,
            sinks: &*self.sinks,
            retry: self.policy.retry,
            notice: self.policy.notice,
            turns: self.turns(),
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("policy", &self.policy).finish_non_exhaustive()
    }
}
