//! Sinks of other people: a program that says hello, reads one line of JSON and answers with one.

use std::path::PathBuf;
use std::time::Duration;

use hearback_core::port::process::ErrandReport;
use hearback_core::port::sink::{Answer, Delivery, FollowUpSink, SinkError};
use hearback_core::{CloudEvent, StartError};
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
        /// The delivery in its envelope.
        event: Box<CloudEvent>,
    },
}

/// A plugin that is given a delivery.
pub(crate) struct PluginSink<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) program: PathBuf,
    pub(crate) settings: SinkSettings,
}

impl FollowUpSink for PluginSink<'_> {
    fn deliver(&self, delivery: &Delivery) -> Result<Answer, SinkError> {
        let delivery = self.registry.masked(delivery);
        let request = Request::Deliver {
            version: Protocol::VERSION,
            event: Box::new(CloudEvent::from(delivery.clone())),
        };
        let report =
            self.speak(&delivery, line(&request)?).map_err(|error| SinkError::Failed(error.message))?;
        understand(&report)
    }

    fn starts_turn(&self) -> bool {
        self.settings.turn
    }

    fn within(&self) -> Duration {
        self.settings.timeout
    }
}

impl PluginSink<'_> {
    /// Says something to the plugin, and hears all that it answers.
    pub(crate) fn speak(&self, delivery: &Delivery, said: Vec<u8>) -> Result<ErrandReport, StartError> {
        let program = hearback_platform::from_os(self.program.as_os_str());
        self.registry.send(delivery, vec![program], said, self.settings.timeout)
    }
}

/// Reads hello and answer.
pub(crate) fn understand(report: &ErrandReport) -> Result<Answer, SinkError> {
    let failed = |what: &str| {
        let complaint = complaint(report);
        let colon = if complaint.is_empty() { "" } else { ": " };
        SinkError::Failed(format!("{what}{colon}{complaint}"))
    };
    if report.exit.is_none() {
        return Err(SinkError::TimedOut);
    }
    let mut lines = report.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let hello = lines.next().ok_or_else(|| failed("the plugin said nothing"))?;
    let hello: Hello = serde_json::from_slice(hello).map_err(|_| failed("the plugin did not say hello"))?;
    if !hello.hearback_sink.versions.contains(&Protocol::VERSION) {
        let versions = hello.hearback_sink.versions;
        return Err(failed(&format!(
            "the plugin speaks versions {versions:?}, and not {}",
            Protocol::VERSION
        )));
    }
    let answer = lines.next().ok_or_else(|| failed("the plugin gave no answer"))?;
    serde_json::from_slice(answer).map_err(|_| failed("the plugin's answer cannot be understood"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::Exit;

    fn said(stdout: &str) -> Result<Answer, String> {
        let report = ErrandReport {
            exit: Some(Exit::Exited { code: 0 }),
            stdout: stdout.into(),
            stderr: b"boom\n".to_vec(),
        };
        understand(&report).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plugin_is_believed_when_it_speaks_our_version() {
        const HELLO: &str = "{\"hearback_sink\":{\"versions\":[1,2]}}\n";
        assert_eq!(said(&format!("{HELLO}{{\"kind\":\"delivered\"}}\n")), Ok(Answer::Delivered));
        assert_eq!(
            said(&format!("{HELLO}{{\"kind\":\"retry_after\",\"millis\":5}}\n")),
            Ok(Answer::RetryAfter { millis: 5 })
        );
        assert_eq!(said(&format!("{HELLO}{{\"kind\":\"sung\"}}\n")), Ok(Answer::Unknown), "a newer answer");
        for bad in ["", "hi\n", HELLO, "{\"hearback_sink\":{\"versions\":[9]}}\n{\"kind\":\"delivered\"}\n"] {
            assert!(said(bad).unwrap_err().ends_with(": boom"), "{bad}: {:?}", said(bad));
        }
    }
}
