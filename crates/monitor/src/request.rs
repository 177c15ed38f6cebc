//! Filling in a launch request, one choice at a time.

use std::ffi::OsString;
use std::time::Duration;

use hearback_core::{Durability, Key, NotifyPolicy, Session};

use crate::launch::Request;

/// Each method changes one choice and returns the request, so that they chain:
///
/// ```
/// use std::time::Duration;
/// use hearback_core::{CommandLine, NotifyPolicy};
/// use hearback_monitor::launch::Request;
///
/// let request = Request::new(CommandLine::Argv(vec!["make".into(), "all".into()]), "/src".into())
///     .label("nightly build")
///     .timeout(Some(Duration::from_secs(600)))
///     .notify(NotifyPolicy::Failure);
/// assert_eq!(request.limits.timeout_ms, Some(600_000));
/// ```
impl Request {
    /// Its owner, who is notified when it has ended.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// A name for people.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Makes the launch repeatable: the same key finds the same job.
    #[must_use]
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// When the owner is notified.
    #[must_use]
    pub fn notify(mut self, policy: NotifyPolicy) -> Self {
        self.notify = policy;
        self
    }

    /// Adds a sink to the route of the follow-up. Later ones are tried when the session is gone from the earlier.
    #[must_use]
    pub fn sink(mut self, name: impl Into<String>) -> Self {
        self.sinks.push(name.into());
        self
    }

    /// Sets a variable for the target, which inherits the rest from the launcher.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Keeps a variable of the launcher from the target.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// How long it may run; `None` for as long as it takes.
    #[must_use]
    pub fn timeout(mut self, limit: Option<Duration>) -> Self {
        self.limits.timeout_ms = limit.map(millis);
        self
    }

    /// How long it may be silent; `None` for as long as it likes.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Option<Duration>) -> Self {
        self.limits.idle_timeout_ms = limit.map(millis);
        self
    }

    /// How long its processes have between being terminated and being killed.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace_ms = millis(grace);
        self
    }

    /// What has to survive a power cut.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
