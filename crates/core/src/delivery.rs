//! What an owner is sent: one versioned document in an envelope that others know how to route.

use serde::{Deserialize, Serialize};

use crate::message::{self, Excerpt};
use crate::note::Note;
use crate::{DOCUMENT_FORMAT, JobId, JobView, Session};

/// What the envelope says this is.
pub const EVENT_TYPE: &str = "dev.hearback.job.ended.v1";

/// The identity of the follow-up of a job. It never changes, so that a repeat is recognisable.
pub fn delivery_id(job: &JobId) -> String {
    format!("{job}.end")
}

/// The job that a delivery is about, from its identity or the job's own.
pub fn job_of_delivery(text: &str) -> &str {
    text.strip_suffix(".end").unwrap_or(text)
}

/// One follow-up on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// The version of this document.
    pub format: u32,
    /// Its identity, `<job>.end`: the same in every attempt, so that a repeat is recognisable.
    pub id: String,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The job ended so long ago that the owner may be busy with something else by now.
    pub late: bool,
    /// Whom it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// How many follow-ups led here, this one included.
    pub depth: u32,
    /// What it is about.
    pub job: JobView,
    /// What the job printed, cut to a budget.
    pub output: OutputExcerpt,
    /// What goes before it, if the last turn of the session was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The same in words, with output framed as data.
    pub text: String,
}

/// What a job printed, cut to a budget and cleaned of what a terminal would obey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputExcerpt {
    /// Every byte that it printed.
    pub bytes: u64,
    /// The beginning.
    pub head: String,
    /// How many bytes are left out between the two.
    pub omitted: u64,
    /// The end; empty when the head is everything.
    pub tail: String,
}

impl OutputExcerpt {
    fn new(bytes: u64, excerpt: &Excerpt) -> Self {
        let text = |bytes: &[u8]| message::clean(&String::from_utf8_lossy(bytes));
        Self { bytes, head: text(&excerpt.head), omitted: excerpt.omitted, tail: text(&excerpt.tail) }
    }
}

impl Delivery {
    /// Puts what is known of an ended job into words.
    pub fn new(job: JobView, output: &Excerpt, attempt: u32, late: bool, depth: u32) -> Self {
        let mut text = message::result_text(&job, output);
        if late {
            text.insert_str(
                0,
                "(late: this ended a while ago, and you may be busy with something else by now)\n",
            );
        }
        Self {
            format: DOCUMENT_FORMAT,
            id: delivery_id(&job.id),
            attempt,
            late,
            session: job.session.clone(),
            depth,
            output: OutputExcerpt::new(job.output.bytes, output),
            note: None,
            text,
            job,
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
}

/// A delivery, or another document, in its envelope: CloudEvents 1.0, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CloudEvent"))]
pub struct CloudEvent<T = Delivery> {
    /// The version of the envelope.
    pub specversion: String,
    /// The identity of what is in it.
    pub id: String,
    /// Who sends it.
    pub source: String,
    /// What it is: [`EVENT_TYPE`] for a delivery.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is about: of a delivery, the job.
    pub subject: String,
    /// When that happened: of a delivery, when the job ended (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What `data` is.
    pub datacontenttype: String,
    /// The document itself.
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
