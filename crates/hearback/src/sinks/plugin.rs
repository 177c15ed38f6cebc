//! Sinks of other people: a program that says hello, reads one line of JSON and answers with one.

use std::path::PathBuf;
use std::time::Duration;

use hearback_core::port::process::BoundedRunReport;
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback_core::{CloudEvent, SinkPayload, StartError};
use serde::{Deserialize, Serialize};

use super::Registry;
use super::exec::{complaint, line};
use super::route::SinkSettings;

/// The protocol, in the words of this build.
pub(crate) struct Protocol;

impl Protocol {
    /// The version that we speak.
    pub(crate) const VERSION: u32 = 1;
}

/// The first thing that a plugin says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) hearback_sink: HelloBody,
}

/// What it says there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HelloBody {
    /// Which versions it speaks.
    pub(crate) versions: Vec<u32>,
}

/// What a plugin is asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Request {
    /// To hand over a delivery.
    Deliver {
        /// Which version this is.
        version: u32,
        /// What it is handed, in its envelope.
        event: Box<CloudEvent<SinkPayload>>,
    },
}

impl Request {
    /// To hand over this delivery.
    pub(super) fn deliver(payload: &SinkPayload) -> Self {
        Self::Deliver { version: Protocol::VERSION, event: Box::new(payload.event()) }
    }

    /// As it is said.
    pub(super) fn line(&self) -> Result<Vec<u8>, SinkError> {
        line(self)
    }
}

/// A plugin that is given a delivery.
pub(crate) struct PluginSink<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) program: PathBuf,
    pub(crate) settings: SinkSettings,
}

impl FollowUpSink for PluginSink<'_> {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        let payload = self.registry.masked(payload);
        let request = Request::deliver(&payload).line()?;
        let report =
            self.speak(&payload, context, request).map_err(|error| SinkError::Failed(error.message))?;
        self.registry.told(understand(&report))
    }

    fn starts_turn(&self) -> bool {
        self.settings.turn
    }

    fn within(&self) -> Duration {
        self.settings.timeout
    }
}

impl PluginSink<'_> {
    /// Says something to the plugin once it has said hello, and hears all that it answers.
    pub(crate) fn speak(
        &self,
        payload: &SinkPayload,
        context: &DeliveryContext,
        said: Vec<u8>,
    ) -> Result<BoundedRunReport, StartError> {
        let program = hearback_platform::from_os(self.program.as_os_str());
        self.registry.send(payload, context, vec![program], said, true, self.settings.timeout)
    }
}

/// Reads hello and answer.
pub(crate) fn understand(report: &BoundedRunReport) -> Result<SinkReply, SinkError> {
    let failed = |what: &str| {
        let complaint = complaint(report);
        let colon = if complaint.is_empty() { "" } else { ": " };
        SinkError::Failed(format!("{what}{colon}{complaint}"))
    };
    if report.exit.is_none() {
        return Err(SinkError::TimedOut);
    }
    let mut lines = lines(report);
    let hello = lines.next().ok_or_else(|| failed("the plugin said nothing"))?;
    greeting(hello).map_err(|what| failed(&what))?;
    let answer = lines.next().ok_or_else(|| failed("the plugin gave no answer"))?;
    match Reply::parse(answer).ok_or_else(|| failed("the plugin's answer cannot be understood"))? {
        Reply::SinkReply(answer) => Ok(answer),
        Reply::Failed(reason) => Err(SinkError::Failed(reason)),
    }
}

/// What a plugin said, line by line.
pub(super) fn lines(report: &BoundedRunReport) -> impl Iterator<Item = &[u8]> {
    report.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Whether the first line of a plugin is a hello that we can go on from; otherwise what is wrong with it.
pub(super) fn greeting(line: &[u8]) -> Result<(), String> {
    let hello: Hello = serde_json::from_slice(line).map_err(|_| "the plugin did not say hello")?;
    let versions = hello.hearback_sink.versions;
    match versions.contains(&Protocol::VERSION) {
        true => Ok(()),
        false => Err(format!("the plugin speaks versions {versions:?}, and not {}", Protocol::VERSION)),
    }
}

/// One line of answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// What became of the delivery.
    SinkReply(SinkReply),
    /// It went wrong, and this is why.
    Failed(String),
}

impl Reply {
    /// Nothing when the line is no answer at all. One that is newer than we are is unknown.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Failed {
            kind: String,
            #[serde(default)]
            reason: String,
        }
        match serde_json::from_slice(line) {
            Ok(Failed { kind, reason }) if kind == "failed" => Some(Self::Failed(reason)),
            _ => serde_json::from_slice(line).ok().map(Self::SinkReply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::Exit;

    fn said(stdout: &str) -> Result<SinkReply, String> {
        let report = BoundedRunReport {
            exit: Some(Exit::Exited { code: 0 }),
            stdout: stdout.into(),
            stderr: b"boom\n".to_vec(),
        };
        understand(&report).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plugin_is_believed_when_it_speaks_our_version() {
        const HELLO: &str = "{\"hearback_sink\":{\"versions\":[1,2]}}\n";
        assert_eq!(said(&format!("{HELLO}{{\"kind\":\"delivered\"}}\n")), Ok(SinkReply::Delivered));
        assert_eq!(
            said(&format!("{HELLO}{{\"kind\":\"retry_after\",\"millis\":5}}\n")),
            Ok(SinkReply::RetryAfter { millis: 5 })
        );
        assert_eq!(
            said(&format!("{HELLO}{{\"kind\":\"sung\"}}\n")),
            Ok(SinkReply::Unknown),
            "a newer answer"
        );
        let failed = said(&format!("{HELLO}{{\"kind\":\"failed\",\"reason\":\"no room\"}}\n"));
        assert_eq!(failed, Err("the sink failed: no room".into()));
        for bad in ["", "hi\n", HELLO, "{\"hearback_sink\":{\"versions\":[9]}}\n{\"kind\":\"delivered\"}\n"] {
            assert!(said(bad).unwrap_err().ends_with(": boom"), "{bad}: {:?}", said(bad));
        }
    }
}
