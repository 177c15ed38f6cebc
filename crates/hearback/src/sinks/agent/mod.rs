//! Sinks that wake an agent in its session: its doors are tried in order, and the first that is open counts.

mod claude;
mod claude_hook;
mod command;
mod input_file;
mod plugin;

use std::path::PathBuf;

use hearback_core::agents::{Agent, Door, LaunchingAgent};
use hearback_core::port::process::{Presence, ProcessControl};
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{ProcessIdentity, Session, SinkPayload, Spec};
use hearback_platform::{Native, to_os};

pub(super) use self::claude::BUILT_IN;
pub use self::claude_hook::ClaudeHook;
use super::hand_over::HandOver;
use super::kind::SinkKind;

/// An agent that is woken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentSink {
    /// Which one.
    pub agent: &'static Agent,
}

/// What came of trying a door.
enum Knock {
    /// The sink's reply.
    Answered(SinkReply),
    /// This door is closed, and another may be open.
    Closed {
        /// Why.
        reason: String,
    },
}

/// One delivery at the doors of an agent.
struct Visit<'a> {
    agent: &'static Agent,
    session: &'a Session,
    hand_over: &'a HandOver<'a>,
    /// The agent that launched the job, if it is this one.
    launched_by: Option<&'a LaunchingAgent>,
}

impl SinkKind for AgentSink {
    fn check(&self, native: Native) -> Option<String> {
        if self.agent.doors.is_empty() {
            return Some(format!(
                "{} cannot be woken: it resumes a session only in a terminal",
                self.agent.title
            ));
        }
        let program = self.agent.program;
        native.find_program(program).is_none().then(|| format!("`{program}` was not found on the PATH"))
    }

    fn needs_session(&self) -> bool {
        true
    }

    fn check_for(&self, native: Native, spec: &Spec) -> Option<String> {
        if let Err(reason) = self.session(spec.session.as_ref()) {
            return Some(reason);
        }
        let by = spec.agent.as_ref().filter(|by| by.name == self.agent.name);
        let has_program = by.and_then(program_of).is_some() && !self.agent.doors.is_empty();
        if has_program { None } else { self.check(native) }
    }

    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError> {
        let agent = self.agent;
        let session = match self.session(hand_over.payload.session()) {
            Ok(session) => session,
            Err(reason) => return Ok(SinkReply::Gone { reason }),
        };
        let launched_by = launching_agent(hand_over.payload).filter(|by| by.name == agent.name);
        let visit = Visit { agent, session, hand_over, launched_by };
        let mut reasons = Vec::new();
        for door in agent.doors {
            let knock = match door {
                Door::ClaudeSocket => claude::knock(&visit)?,
                Door::Plugin { loaded } => plugin::knock(&visit, loaded.as_ref()),
                Door::InputFile(option) => input_file::knock(&visit, option),
                Door::Headless(command) => command::resume(&visit, command)?,
                Door::Queue(command) => command::queue(&visit, command)?,
                _ => continue,
            };
            match knock {
                Knock::Answered(reply) => return Ok(reply),
                Knock::Closed { reason } => reasons.push(reason),
            }
        }
        // The session is there, and a door may be open later: at the latest when it is closed where it is open.
        let process = visit.open_in().cloned();
        Ok(SinkReply::Unreachable { reason: reasons.pop().unwrap_or_default(), process })
    }
}

impl AgentSink {
    /// Whether the agent takes no messages in the session that launches a job, as it is at launch.
    pub(super) fn is_deaf(&self, spec: &Spec) -> bool {
        let by = spec.agent.as_ref().filter(|by| by.name == self.agent.name);
        let Some((by, process)) = by.and_then(|by| Some((by, by.process.as_ref()?))) else { return false };
        self.agent.is_deaf_when_open(|door| match door {
            Door::ClaudeSocket => spec.session.as_ref().is_none_or(|session| claude::hears(session, by)),
            Door::Plugin { loaded } => plugin::is_loaded(by, process.pid, loaded.as_ref()),
            Door::InputFile(option) => input_file::is_named_by(process.pid, option),
            _ => true,
        })
    }

    /// The session to wake; otherwise why there is none. Without a session, an agent would resume another one, and a
    /// session must not set options of the agent.
    fn session<'a>(&self, session: Option<&'a Session>) -> Result<&'a Session, String> {
        let session = session.ok_or("it has no session to wake")?;
        if session.as_str().starts_with('-') {
            return Err(format!("the session `{session}` would be taken for an option"));
        }
        self.agent.refuses(session).map_or(Ok(session), Err)
    }
}

/// The program of an agent that launched a job, if it is still there.
fn program_of(by: &LaunchingAgent) -> Option<PathBuf> {
    by.program.as_ref().map(|program| PathBuf::from(to_os(program))).filter(|program| program.is_file())
}

fn launching_agent(payload: &SinkPayload) -> Option<&LaunchingAgent> {
    payload.deliveries().first().and_then(|delivery| delivery.job.agent.as_ref())
}

/// The directory of an agent that launched a job.
fn directory_of(by: &LaunchingAgent) -> Option<PathBuf> {
    by.cwd.as_ref().map(|cwd| PathBuf::from(to_os(cwd)))
}

impl Visit<'_> {
    /// The directory of the session, if it is known and there; otherwise that of the job.
    fn directory(&self) -> Option<PathBuf> {
        let own = self.launched_by.and_then(|by| by.cwd.as_ref());
        let places = own.into_iter().chain(self.hand_over.payload.cwd());
        places.map(|place| PathBuf::from(to_os(place))).find(|place| place.is_dir())
    }

    fn program(&self) -> Option<PathBuf> {
        self.launched_by.and_then(program_of)
    }

    /// The process in which the session was open at launch, if it still lives.
    fn open_in(&self) -> Option<&ProcessIdentity> {
        let process = self.launched_by.and_then(|by| by.process.as_ref())?;
        (self.hand_over.native.presence(process) == Presence::Same).then_some(process)
    }
}
