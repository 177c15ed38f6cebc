//! Resources: the record of a job, and its output.

use std::fmt;

use hearback::core::JobId;
use hearback::core::message::clean_line;
use hearback::{Hearback, Job, LogRange, Select};
use rmcp::model::{MetaObject, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::caller::Caller;
use crate::failure::Failure;
use crate::tools;

const PREFIX: &str = "hearback://jobs/";
const LOG: &str = "/log";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// How many jobs of the history are listed.
const LISTED: usize = 50;
/// The most of a log that one read returns: its end. A client that wants the rest uses the tool `output`.
const LOG_MAX: u64 = 256 * 1024;

/// The address of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) job: JobId,
    pub(crate) part: Part,
}

/// What of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Record,
    Log,
}

impl Address {
    /// Reads an address; none if it is not one of ours.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(PREFIX)?;
        let (id, part) = match rest.strip_suffix(LOG) {
            Some(id) => (id, Part::Log),
            None => (rest, Part::Record),
        };
        Some(Self { job: JobId::parse(id).ok()?, part })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.part == Part::Log { LOG } else { "" };
        write!(f, "{PREFIX}{}{suffix}", self.job)
    }
}

/// The resources of a caller.
pub(crate) fn list(hearback: &Hearback, caller: &Caller) -> Result<Vec<Resource>, Failure> {
    let mut select = Select::default();
    select.scope = caller.scope();
    select.history_max = Some(LISTED);
    let jobs = hearback.jobs(&select)?.jobs;
    Ok(jobs.iter().flat_map(|job| [Part::Record, Part::Log].map(|part| resource(job, part))).collect())
}

fn resource(job: &Job, part: Part) -> Resource {
    let view = &job.view;
    let uri = Address { job: view.id.clone(), part }.to_string();
    let label = view.label.as_ref().map_or_else(String::new, |label| format!(" ({})", clean_line(label)));
    let about = format!("job {}{label}: {}", view.id, view.state.as_str());
    match part {
        Part::Record => Resource::new(uri, view.id.to_string()).with_title(about).with_mime_type(JSON),
        Part::Log => Resource::new(uri, format!("{}{LOG}", view.id))
            .with_title(format!("output of {about}"))
            .with_mime_type(TEXT)
            .with_size(view.output.bytes),
    }
}

/// The forms of our addresses.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{PREFIX}{{job}}"), "job")
            .with_title("The record of a job")
            .with_description("State, command, outcome and follow-up of a job; what `show` answers.")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{PREFIX}{{job}}{LOG}"), "log")
            .with_title("The output of a job")
            .with_description("The end of its output, at most 256 KiB. It is data that a program printed.")
            .with_mime_type(TEXT),
    ]
}

/// Finds the job of an address, and brings it up to date.
pub(crate) fn find(hearback: &Hearback, caller: &Caller, address: &Address) -> Result<Job, Failure> {
    let id = hearback.find(address.job.as_str(), &caller.scope())?;
    hearback.job(&id)?.ok_or_else(|| Failure::unknown(id.as_str()))
}

/// The content of a resource.
pub(crate) fn read(hearback: &Hearback, job: &Job, address: &Address) -> Result<ResourceContents, Failure> {
    if address.part == Part::Record {
        let text = serde_json::to_string_pretty(&job.view).unwrap_or_default();
        return Ok(ResourceContents::text(text, address.to_string()).with_mime_type(JSON));
    }
    let document = hearback.log_document(job, &LogRange::last(LOG_MAX))?;
    let mut meta = MetaObject::default();
    meta.insert("hearback/offset".to_owned(), json!(document.offset));
    meta.insert("hearback/bytes".to_owned(), json!(document.bytes));
    Ok(ResourceContents::text(tools::printed(&document), address.to_string())
        .with_mime_type(TEXT)
        .with_meta(meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written_and_no_other_is() {
        let id = JobId::mint(0, 0);
        for part in [Part::Record, Part::Log] {
            let address = Address { job: id.clone(), part };
            assert_eq!(Address::parse(&address.to_string()), Some(address));
        }
        for other in
            ["file:///etc/passwd", "hearback://jobs/", "hearback://jobs/../log", "hearback://jobs/x/y"]
        {
            assert_eq!(Address::parse(other), None, "{other}");
        }
    }
}
