//! What a sink gets: a follow-up or several, a message, or a notice. Each is one document in an envelope.

use serde::{Deserialize, Deserializer, Serialize};

use crate::message::shortened;
use crate::note::Note;
use crate::session::Message;
use crate::{CloudEvent, DOCUMENT_FORMAT, Delivery, EVENT_TYPE, OsText, Session, StopKind, json};

/// The event type of several follow-ups.
pub const SEVERAL_EVENT_TYPE: &str = "dev.hearback.jobs.ended.v1";
/// The event type of a message.
pub const MESSAGE_EVENT_TYPE: &str = "dev.hearback.message.v1";
/// The event type of a notice.
pub const NOTICE_EVENT_TYPE: &str = "dev.hearback.notice.v1";

/// Several follow-ups of one session, as a sink gets them that starts a turn: one turn tells of all.
///
/// Each has an identity and attempts of its own. One that is repeated may come alone, or with others, so a receiver
/// that remembers identities remembers those in `deliveries`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FollowUps {
    /// The version of this document.
    pub format: u32,
    /// The id of this event, `<session>.turn.<number>`. It is used once: a repeat has another.
    pub id: String,
    /// The session that gets them.
    pub session: Session,
    /// The length of the longest chain of follow-ups that led here.
    pub depth: u32,
    /// The follow-ups, in the order in which their jobs ended.
    pub deliveries: Vec<Delivery>,
    /// A note about an interrupted turn of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Note and follow-ups as text for a model.
    pub text: String,
}

impl FollowUps {
    /// Builds the payload of a turn.
    pub fn new(session: Session, turn: u32, deliveries: Vec<Delivery>, note: Option<Note>) -> Self {
        Self::compose(format!("{session}.turn.{turn}"), session, deliveries, note)
    }

    fn compose(id: String, session: Session, deliveries: Vec<Delivery>, note: Option<Note>) -> Self {
        let text = deliveries.iter().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>().join("\n");
        Self {
            format: DOCUMENT_FORMAT,
            id,
            session,
            depth: deliveries.iter().map(|delivery| delivery.depth).max().unwrap_or(0),
            text: note.as_ref().map_or_else(|| text.clone(), |note| note.before(&text)),
            deliveries,
            note,
        }
    }

    /// The same with each follow-up changed.
    pub fn map(self, change: impl Fn(Delivery) -> Delivery) -> Self {
        let deliveries: Vec<_> = self.deliveries.into_iter().map(change).collect();
        Self::compose(self.id, self.session, deliveries, self.note)
    }

    /// The text in at most about `most` bytes, with a part of every follow-up.
    fn text_within(&self, most: usize) -> String {
        let each = most / self.deliveries.len().max(1);
        let texts: Vec<_> = self.deliveries.iter().map(|delivery| shortened(&delivery.text, each)).collect();
        let text = texts.join("\n");
        self.note.as_ref().map_or_else(|| text.clone(), |note| note.before(&text))
    }
}

/// A message, as a sink gets it; or, without a message, an interrupted turn to continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagePayload {
    /// The version of this document.
    pub format: u32,
    /// The id of the delivery: the same in every attempt, so that a repeat is recognisable.
    pub id: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The session that gets it.
    pub session: Session,
    /// Where the host shows the agent's messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The length of the chain of follow-ups that led here.
    pub depth: u32,
    /// The message as it was sent; absent when an interrupted turn continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A note about an interrupted turn of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Note and message as text for a model.
    pub text: String,
    /// The working directory for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<OsText>,
}

impl MessagePayload {
    /// The payload of a message.
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

    /// The payload that continues an interrupted turn.
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

/// A notice to a destination that the monitor is about to restart or stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// The version of this document.
    pub format: u32,
    /// The id of the notice.
    pub id: String,
    /// What is about to happen.
    pub kind: StopKind,
    /// The destination that is notified.
    pub destination: String,
    /// The sessions there that are in a turn.
    pub sessions: Vec<Session>,
    /// All of this as text.
    pub text: String,
}

impl Notice {
    /// Builds the notice. Only a restart promises that turns continue.
    pub fn new(request: u32, kind: StopKind, destination: &str, sessions: Vec<Session>) -> Self {
        let text = match kind {
            StopKind::Restart => {
                "hearback is about to restart. Current turns may be interrupted; they will continue afterwards."
            }
            StopKind::Stop | StopKind::Drain | StopKind::Unknown => {
                "hearback is about to stop. Current turns may be interrupted, and no new turn will start."
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

/// What a sink gets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant is the document that it holds")]
pub enum SinkPayload {
    FollowUp(Box<Delivery>),
    FollowUps(Box<FollowUps>),
    Message(Box<MessagePayload>),
    Notice(Box<Notice>),
}

impl<'de> Deserialize<'de> for SinkPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::first_of(
            deserializer,
            &[
                |value| json::from_value(value).map(Self::FollowUp),
                |value| json::from_value(value).map(Self::FollowUps),
                |value| json::from_value(value).map(Self::Message),
                |value| json::from_value(value).map(Self::Notice),
            ],
        )
    }
}

impl SinkPayload {
    /// The id of the delivery.
    pub fn id(&self) -> &str {
        match self {
            Self::FollowUp(delivery) => &delivery.id,
            Self::FollowUps(several) => &several.id,
            Self::Message(message) => &message.id,
            Self::Notice(notice) => &notice.id,
        }
    }

    /// The follow-ups in it.
    pub fn deliveries(&self) -> &[Delivery] {
        match self {
            Self::FollowUp(delivery) => std::slice::from_ref(delivery),
            Self::FollowUps(several) => &several.deliveries,
            Self::Message(_) | Self::Notice(_) => &[],
        }
    }

    /// The number of this attempt; of several follow-ups, the highest.
    pub fn attempt(&self) -> u32 {
        match self {
            Self::FollowUp(delivery) => delivery.attempt,
            Self::FollowUps(several) => several.deliveries.iter().map(|it| it.attempt).max().unwrap_or(1),
            Self::Message(message) => message.attempt,
            Self::Notice(_) => 1,
        }
    }

    /// The length of the chain of follow-ups that led here.
    pub fn depth(&self) -> u32 {
        match self {
            Self::FollowUp(delivery) => delivery.depth,
            Self::FollowUps(several) => several.depth,
            Self::Message(message) => message.depth,
            Self::Notice(_) => 0,
        }
    }

    /// The session that gets it; a notice has none.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::FollowUp(delivery) => delivery.session.as_ref(),
            Self::FollowUps(several) => Some(&several.session),
            Self::Message(message) => Some(&message.session),
            Self::Notice(_) => None,
        }
    }

    /// Where the host shows the agent's messages, if known.
    pub fn destination(&self) -> Option<&str> {
        match self {
            Self::FollowUp(_) | Self::FollowUps(_) => None,
            Self::Message(message) => message.destination.as_deref(),
            Self::Notice(notice) => Some(&notice.destination),
        }
    }

    /// The working directory for the program of the sink.
    pub fn cwd(&self) -> Option<&OsText> {
        match self {
            // Of several it is the same.
            Self::FollowUp(_) | Self::FollowUps(_) => self.deliveries().first()?.job.cwd.as_ref(),
            Self::Message(message) => message.cwd.as_ref(),
            Self::Notice(_) => None,
        }
    }

    /// The text for a model.
    pub fn text(&self) -> &str {
        match self {
            Self::FollowUp(delivery) => &delivery.text,
            Self::FollowUps(several) => &several.text,
            Self::Message(message) => &message.text,
            Self::Notice(notice) => &notice.text,
        }
    }

    /// The text for a model, in about `most` bytes if it is longer.
    pub fn text_within(&self, most: usize) -> String {
        match self {
            Self::FollowUps(several) if several.text.len() > most => several.text_within(most),
            _ => shortened(self.text(), most),
        }
    }

    /// The same with a note before its text, where it is read by an agent.
    pub fn after(self, note: Option<Note>) -> Self {
        match self {
            Self::FollowUp(delivery) => delivery.after(note).into(),
            Self::FollowUps(several) => {
                FollowUps::compose(several.id, several.session, several.deliveries, note).into()
            }
            Self::Message(message) => message.after(note).into(),
            Self::Notice(_) => self,
        }
    }

    /// The document in its envelope.
    pub fn event(&self) -> CloudEvent<SinkPayload> {
        let (kind, subject, time) = match self {
            Self::FollowUp(delivery) => {
                (EVENT_TYPE, delivery.job.id.to_string(), delivery.job.ended_at.clone())
            }
            Self::FollowUps(several) => {
                let last =
                    several.deliveries.iter().filter_map(|delivery| delivery.job.ended_at.clone()).max();
                (SEVERAL_EVENT_TYPE, several.session.to_string(), last)
            }
            Self::Message(message) => (MESSAGE_EVENT_TYPE, message.session.to_string(), None),
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

impl From<FollowUps> for SinkPayload {
    fn from(several: FollowUps) -> Self {
        Self::FollowUps(Box::new(several))
    }
}

impl From<MessagePayload> for SinkPayload {
    fn from(message: MessagePayload) -> Self {
        Self::Message(Box::new(message))
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
        assert!(text(StopKind::Restart).contains("will continue"));
        for kind in [StopKind::Stop, StopKind::Drain] {
            assert!(!text(kind).contains("will continue") && text(kind).contains("no new turn"), "{kind}");
        }
    }
}
