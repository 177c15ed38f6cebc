//! How the owner of a job hears of its end: what a launch can promise, and what it must not.

use hearback_core::port::sink::Sinks;
use hearback_core::{FollowUpState, NotifyPolicy};

use crate::sinks::Route;
use crate::{Hearback, Job};

/// How the owner of a job hears of its end. It follows from the route that was fixed at launch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notification {
    /// A sink starts a turn of the session: its agent is woken.
    Wakes {
        /// The sink.
        sink: String,
    },
    /// Sinks are notified, but none of them wakes the session.
    Sends {
        /// The sinks.
        sinks: Vec<String>,
    },
    /// The follow-up is kept until the session fetches it.
    Keeps,
    /// No follow-up is wanted.
    Nothing {
        /// Why not.
        reason: &'static str,
    },
}

impl Hearback {
    /// How the owner of a job hears of its end, as far as it can be known now.
    pub fn notification(&self, job: &Job) -> Notification {
        let sinks = job.seen.facts.spec.present().map(|spec| spec.sinks.clone()).unwrap_or_default();
        if job.view.follow_up.state == FollowUpState::NotWanted {
            let reason = match job.view.follow_up.policy {
                Some(NotifyPolicy::Never) => "the launch asked for none",
                _ if job.view.session.is_none() && sinks.is_empty() => "the job has no session",
                _ => "the way it ended is left out",
            };
            return Notification::Nothing { reason };
        }
        let wakes = |name: &&String| job.view.session.is_some() && self.starts_turns(name);
        match sinks.iter().find(wakes) {
            Some(sink) => Notification::Wakes { sink: sink.clone() },
            None if sinks.is_empty() => Notification::Keeps,
            None => Notification::Sends { sinks },
        }
    }

    /// Whether a sink starts a turn of a session, and its program is there.
    fn starts_turns(&self, name: &str) -> bool {
        let has_program = match self.registry.settings(name).map(|settings| settings.route) {
            Some(Route::Command(command)) => command
                .alternatives
                .iter()
                .filter_map(|words| words.first())
                .any(|program| self.registry.native.find_program(program).is_some()),
            _ => true,
        };
        has_program && self.registry.find(name).is_ok_and(|sink| sink.starts_turn())
    }
}
