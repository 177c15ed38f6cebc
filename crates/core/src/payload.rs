//! What a sink is handed: a follow-up, a message, or a notice. Each is one document in an envelope.

use serde::{Deserialize, Serialize};

use crate::note::Note;
use crate::session::Message;
use crate::{CloudEvent, DOCUMENT_FORMAT, Delivery, EVENT_TYPE, OsText, Session, StopKind};

/// What the envelope of a message says it is.
pub const MESSAGE_EVENT_TYPE: &str = "dev.hearback.message.v1";
/// What the envelope of a notice says it is.
pub const NOTICE_EVENT_TYPE: &str = "dev.hearback.notice.v1";

/// A message on its way; or, without a message, a turn that is to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagePayload {
    /// The version of this document.
    pub format: u32,
    /// Its identity: the same in every attempt, so that a repeat is recognisable.
    pub id: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Whom it is for.
    pub session: Session,
    /// Where the host shows what the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// How many follow-ups led here.
    pub depth: u32,
    /// The message as it was sent; absent when there is only something to go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What goes before it, if the last turn was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Both, ready for a model.
    pub text: String,
    /// Where the agent is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
}

impl MessagePayload {
    /// A message as it is sent.
    pub fn message(n: u32, attempt: u32, message: &Message) -> Self {
        Self {
            format: DOCUMENT_FORMAT,
            id: format!("{}.message.{n}", message.session),
            attempt,
            session: message.session.clone(),
            destination: message.destination.clone(),
            depth: message.depth,
            text: message.text.clone(),
            message: Some(message.text.clone()),
            note: None,
            cwd: message.cwd.clone(),
        }
    }

    /// The same with a note before its text.
    pub fn after(mut self, note: Option<Note>) -> Self {
        if let Some(note) = &note {
            self.text = note.before(&self.text);
        }
        self.note = note;
        self
    }

    /// A turn that goes on where one was cut short.
    pub fn resume(session: &Session, turn: u32, note: Note) -> Self {
        Self {
            format: DOCUMENT_FORMAT,
            id: format!("{session}.turn.{turn}.resume"),
            attempt: 1,
            session: session.clone(),
            destination: None,
            depth: 0,
            text: note.text.clone(),
            message: None,
            note: Some(note),
            cwd: None,
        }
    }
}

/// What a destination is told when the host is about to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// The version of this document.
    pub format: u32,
    /// Its identity.
    pub id: String,
    /// What is about to happen.
    pub kind: StopKind,
    /// Who is told.
    pub destination: String,
    /// The sessions that are busy there.
    pub sessions: Vec<Session>,
    /// The same in words.
    pub text: String,
}

impl Notice {
    /// Tells a destination what is about to happen. Only a restart promises to go on.
    pub fn new(request: u32, kind: StopKind, destination: &str, sessions: Vec<Session>) -> Self {
        let text = match kind {
            StopKind::Restart => {
                "hearback is about to restart. What is under way may be cut short; it will go on afterwards."
            }
            StopKind::Stop | StopKind::Drain | StopKind::Unknown => {
                "hearback is about to stop. What is under way may be cut short, and no further turn is taken."
            }
        };
        Self {
            format: DOCUMENT_FORMAT,
            id: format!("notice.{request}.{destination}"),
            kind,
            destination: destination.to_owned(),
            sessions,
            text: text.to_owned(),
        }
    }
}

/// What a sink is handed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant is the document that it holds")]
pub enum SinkPayload {
    FollowUp(Box<Delivery>),
    Message(Box<MessagePayload>),
    Notice(Box<Notice>),
}

impl SinkPayload {
    /// Its identity.
    pub fn id(&self) -> &str {
        match self {
            Self::FollowUp(delivery) => &delivery.id,
            Self::Message(letter) => &letter.id,
            Self::Notice(notice) => &notice.id,
        }
    }

    /// Which attempt this is.
    pub fn attempt(&self) -> u32 {
        match self {
            Self::FollowUp(delivery) => delivery.attempt,
            Self::Message(letter) => letter.attempt,
            Self::Notice(_) => 1,
        }
    }

    /// How many follow-ups led here.
    pub fn depth(&self) -> u32 {
        match self {
            Self::FollowUp(delivery) => delivery.depth,
            Self::Message(letter) => letter.depth,
            Self::Notice(_) => 0,
        }
    }

    /// Whom it is for, where that is one session.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::FollowUp(delivery) => delivery.session.as_ref(),
            Self::Message(letter) => Some(&letter.session),
            Self::Notice(_) => None,
        }
    }

    /// Where the host shows what the agent says, where that is known.
    pub fn destination(&self) -> Option<&str> {
        match self {
            Self::FollowUp(_) => None,
            Self::Message(letter) => letter.destination.as_deref(),
            Self::Notice(notice) => Some(&notice.destination),
        }
    }

    /// Where whoever takes it is to run.
    pub fn cwd(&self) -> Option<&OsText> {
        match self {
            Self::FollowUp(delivery) => delivery.job.cwd.as_ref(),
            Self::Message(letter) => letter.cwd.as_ref(),
            Self::Notice(_) => None,
        }
    }

    /// What it says, in words.
    pub fn text(&self) -> &str {
        match self {
            Self::FollowUp(delivery) => &delivery.text,
            Self::Message(letter) => &letter.text,
            Self::Notice(notice) => &notice.text,
        }
    }

    /// The same with a note before its text, where it is read by an agent.
    pub fn after(self, note: Option<Note>) -> Self {
        match self {
            Self::FollowUp(delivery) => delivery.after(note).into(),
            Self::Message(message) => message.after(note).into(),
            Self::Notice(_) => self,
        }
    }

    /// What it says, in its envelope.
    pub fn event(&self) -> CloudEvent<SinkPayload> {
        let (kind, subject, time) = match self {
            Self::FollowUp(delivery) => {
                (EVENT_TYPE, delivery.job.id.to_string(), delivery.job.ended_at.clone())
            }
            Self::Message(letter) => (MESSAGE_EVENT_TYPE, letter.session.to_string(), None),
            Self::Notice(notice) => (NOTICE_EVENT_TYPE, notice.destination.clone(), None),
        };
        CloudEvent::new(self.id(), kind, subject, time, self.clone())
    }
}

impl From<Delivery> for SinkPayload {
    fn from(delivery: Delivery) -> Self {
        Self::FollowUp(Box::new(delivery))
    }
}

impl From<MessagePayload> for SinkPayload {
    fn from(letter: MessagePayload) -> Self {
        Self::Message(Box::new(letter))
    }
}

impl From<Notice> for SinkPayload {
    fn from(notice: Notice) -> Self {
        Self::Notice(Box::new(notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_96_only_a_restart_promises_to_go_on() {
        let text = |kind| Notice::new(1, kind, "chat", Vec::new()).text;
        assert!(text(StopKind::Restart).contains("will go on"));
        for kind in [StopKind::Stop, StopKind::Drain] {
            assert!(!text(kind).contains("will go on") && text(kind).contains("no further turn"), "{kind}");
        }
    }
}
