//! The follow-up that an owner gets: one versioned document in a CloudEvents envelope.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::{self, Excerpt, Timeliness};
use crate::note::Note;
use crate::{DOCUMENT_FORMAT, JobId, JobView, Session};

/// The event type of a follow-up.
pub const EVENT_TYPE: &str = "dev.hearback.job.ended.v1";

/// The most of the reason why a session was not reached that a follow-up shows.
const UNREACHED_BYTES: usize = 512;

/// The id of the follow-up of a job. It never changes, so that a repeat is recognisable.
pub fn delivery_id(job: &JobId) -> String {
    format!("{job}.end")
}

/// The job of a delivery, from the id of the delivery or of the job.
pub fn job_of_delivery(text: &str) -> &str {
    text.strip_suffix(".end").unwrap_or(text)
}

/// What a caller shows to acknowledge or release a follow-up that it has claimed: the delivery, the number of its
/// lease, and a secret that is recorded with that lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimToken {
    /// The job.
    pub job: JobId,
    /// The number of the lease.
    pub lease: u32,
    /// The secret.
    pub secret: String,
}

impl fmt::Display for ClaimToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, lease, secret } = self;
        write!(f, "{}.{lease}.{secret}", delivery_id(job))
    }
}

impl ClaimToken {
    /// Reads what was displayed; none for anything else, such as the id of a delivery.
    pub fn parse(text: &str) -> Option<Self> {
        let (delivery, rest) = text.split_once(".end.")?;
        let (lease, secret) = rest.split_once('.')?;
        Some(Self {
            job: JobId::parse(delivery).ok()?,
            lease: lease.parse().ok()?,
            secret: secret.to_owned(),
        })
    }
}

/// A follow-up, as a sink gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// The version of this document.
    pub format: u32,
    /// The id of the delivery, `<job>.end`: the same in every attempt, so that a repeat is recognisable.
    pub id: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Whether the job ended longer ago than the setting `late_after`.
    pub late: bool,
    /// The session that gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The length of the chain of follow-ups that led here, this one included.
    pub depth: u32,
    /// The job that has ended.
    pub job: JobView,
    /// The output of the job, cut to the setting `notice_bytes`.
    pub output: OutputExcerpt,
    /// A note about an interrupted turn of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// Why the session could not be reached, if this sink gets the follow-up in its place. The session is notified
    /// later, as soon as that is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreached: Option<String>,
    /// All of this as text for a model, with the output marked as data.
    pub text: String,
}

/// The output of a job, cut to a budget and without control characters. Of a line that was overwritten, such as a
/// progress bar, it has the last state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputExcerpt {
    /// The size of all output, in bytes.
    pub bytes: u64,
    /// The beginning of the output.
    pub head: String,
    /// How many bytes are left out between head and tail.
    pub omitted: u64,
    /// The end of the output; empty when the head is everything.
    pub tail: String,
}

impl OutputExcerpt {
    fn new(bytes: u64, excerpt: &Excerpt) -> Self {
        let text = message::shown;
        Self { bytes, head: text(&excerpt.head), omitted: excerpt.omitted, tail: text(&excerpt.tail) }
    }
}

impl Delivery {
    /// Builds the follow-up of an ended job.
    pub fn new(job: JobView, output: &Excerpt, attempt: u32, late: bool, depth: u32) -> Self {
        let timeliness = if late { Timeliness::Late } else { Timeliness::Timely };
        let text = message::follow_up_text(&job, output, timeliness);
        Self {
            format: DOCUMENT_FORMAT,
            id: delivery_id(&job.id),
            attempt,
            late,
            session: job.session.clone(),
            depth,
            output: OutputExcerpt::new(job.output.bytes, output),
            note: None,
            unreached: None,
            text,
            job,
        }
    }

    /// The same for a sink that is told because the session could not be reached.
    pub fn unreached(mut self, reason: &str) -> Self {
        let reason = message::shortened(&message::clean_line(reason), UNREACHED_BYTES);
        self.text = format!(
            "The session that launched this job could not be reached: {reason}. It is notified later, as soon as that \
             is possible.\n{}",
            self.text
        );
        self.unreached = Some(reason);
        self
    }

    /// Puts a note before the text.
    pub fn after(mut self, note: Option<Note>) -> Self {
        if let Some(note) = &note {
            self.text = note.before(&self.text);
        }
        self.note = note;
        self
    }
}

/// A document in its envelope: CloudEvents 1.0, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CloudEvent"))]
pub struct CloudEvent<T = Delivery> {
    /// The version of the envelope.
    pub specversion: String,
    /// The id of the document in `data`.
    pub id: String,
    /// The sender.
    pub source: String,
    /// The type of the event, such as `dev.hearback.job.ended.v1`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the event is about: for a follow-up, the job.
    pub subject: String,
    /// When it happened: for a follow-up, when the job ended (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The media type of `data`.
    pub datacontenttype: String,
    /// The document.
    pub data: T,
}

impl<T> CloudEvent<T> {
    /// Puts a document into its envelope.
    pub fn new(id: &str, kind: &str, subject: String, time: Option<String>, data: T) -> Self {
        Self {
            specversion: "1.0".into(),
            id: id.to_owned(),
            source: "hearback".into(),
            kind: kind.into(),
            subject,
            time,
            datacontenttype: "application/json".into(),
            data,
        }
    }
}

impl From<Delivery> for CloudEvent {
    fn from(data: Delivery) -> Self {
        Self::new(&data.id.clone(), EVENT_TYPE, data.job.id.to_string(), data.job.ended_at.clone(), data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::testing::sample;

    #[test]
    fn an_event_says_everything_once_and_nothing_that_a_terminal_obeys() {
        let hostile = Excerpt { head: b"\x1b[2Jhi\xff\n".to_vec(), tail: b"bye\n".to_vec(), omitted: 7 };
        let delivery = Delivery::new(sample::view(Outcome::Exited { code: 3 }), &hostile, 2, true, 1);
        let event = CloudEvent::from(delivery);
        let json = serde_json::to_string_pretty(&event).unwrap();
        insta::assert_snapshot!(json);
        assert_eq!(serde_json::from_str::<CloudEvent>(&json).unwrap(), event);
    }
}
