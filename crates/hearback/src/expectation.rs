//! What an owner can expect when its job ends: said at launch, in one line, so that an agent that will be woken does
//! not poll, and one that will not be woken waits.

use hearback_core::message::{clean_line, quoted};
use hearback_core::{FollowUpState, NotifyPolicy, Session, Spec};
use hearback_platform::Native;

use crate::{Hearback, Job};

/// What an owner can expect when its job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expectation {
    /// Its session is woken.
    Woken {
        /// The sink that wakes it.
        sink: String,
    },
    /// Its session is woken once it is closed: the agent takes no messages in a session that is open.
    WokenWhenClosed {
        /// The sink that wakes it.
        sink: String,
        /// The agent.
        agent: &'static str,
    },
    /// A sink that starts no turn gets the follow-up.
    Sent {
        /// The sink.
        sink: String,
    },
    /// The follow-up waits until the session fetches it.
    Fetch,
    /// The sink cannot be used here. The follow-up waits.
    Unreachable {
        /// The sink.
        sink: String,
        /// Why.
        reason: String,
    },
    /// No follow-up is wanted.
    Nothing {
        /// Why.
        reason: String,
    },
}

impl Expectation {
    /// All of this in words, for the caller that launched the job. It may be the owner, which an agent says with
    /// `--session` as well; it is not if it is known to be in another session.
    pub fn text(&self, owner: Option<&Session>, caller: Option<&Session>) -> String {
        let other = owner.filter(|owner| caller.is_some_and(|caller| caller != *owner));
        let whose = other.map_or_else(
            || "this session".to_owned(),
            |other| format!("session `{}`", clean_line(other.as_str())),
        );
        let for_owner = |text: &str| if other.is_none() { text.to_owned() } else { String::new() };
        match self {
            Self::Woken { sink } => format!(
                "when it ends, {whose} is woken through `{}`{}",
                clean_line(sink),
                for_owner(": end your turn, do not poll")
            ),
            Self::WokenWhenClosed { sink, agent } => format!(
                "when it ends, {whose} is woken through `{}` once it is closed, because {agent} takes no messages in \
                 an open session{}",
                clean_line(sink),
                for_owner(": do not poll, and to hear of it in this turn use `hearback wait`")
            ),
            Self::Sent { sink } => {
                let rest = match owner {
                    Some(_) => {
                        let here = for_owner(": to hear of it here, use `hearback wait`");
                        format!("; {whose} is not woken{here}")
                    }
                    None => String::new(),
                };
                format!("when it ends, the sink `{}` is notified{rest}", clean_line(sink))
            }
            Self::Fetch => match other {
                None => "no sink wakes this session when it ends: use `hearback wait`, or fetch it with `hearback \
                         followups next`"
                    .to_owned(),
                Some(other) => format!(
                    "no sink wakes {whose} when it ends: it can be fetched with `hearback followups next --session {}`",
                    quoted(&clean_line(other.as_str()))
                ),
            },
            Self::Unreachable { sink, reason } => {
                let rest = match owner {
                    Some(_) => format!(", so {whose} is not woken{}", for_owner(": use `hearback wait`")),
                    None => String::new(),
                };
                format!("the sink `{}` cannot be used here ({}){rest}", clean_line(sink), clean_line(reason))
            }
            Self::Nothing { reason } => format!("no notification: {reason}"),
        }
    }
}

impl Hearback {
    /// What the owner of a job can expect when it ends. The way to it is looked at as far as that is possible without
    /// going it: the program, the session, the settings.
    pub fn expectation(&self, job: &Job) -> Expectation {
        let nothing = |reason: &str| Expectation::Nothing { reason: reason.to_owned() };
        let Some(spec) = job.seen.facts.spec.present() else { return nothing("its record cannot be read") };
        if job.view.follow_up.state == FollowUpState::NotWanted || spec.notify == NotifyPolicy::Never {
            return nothing(match (spec.notify, &spec.session) {
                (NotifyPolicy::Never, _) => "this job was launched with --notify never",
                (_, None) if spec.sinks.is_empty() => {
                    "this job has no session (pass --session S or --sink NAME)"
                }
                (NotifyPolicy::Failure, _) => "it succeeded, and --notify failure is for failures alone",
                (NotifyPolicy::Success, _) => {
                    "it did not succeed, and --notify success is for successes alone"
                }
                _ => "its own session killed it (--notify always is for that as well)",
            });
        }
        let Some(sink) = spec.sinks.first() else { return Expectation::Fetch };
        let sink = sink.clone();
        match self.obstacle(&sink, spec) {
            Some(reason) => Expectation::Unreachable { sink, reason },
            None if self.registry.starts_turn(&sink) && spec.session.is_some() => {
                match self.registry.settings(&sink).and_then(|settings| settings.deaf_agent(spec)) {
                    Some(agent) => Expectation::WokenWhenClosed { sink, agent: agent.title },
                    None => Expectation::Woken { sink },
                }
            }
            None => Expectation::Sent { sink },
        }
    }

    /// Why a sink cannot take the follow-up of a job, as far as that is known before.
    fn obstacle(&self, sink: &str, spec: &Spec) -> Option<String> {
        self.registry.settings(sink).and_then(|settings| settings.check_for(Native::default(), spec))
    }
}
