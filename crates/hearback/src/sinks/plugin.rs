//! Plugins: a program that says hello, reads one line of JSON and answers with one.

use std::path::PathBuf;

use hearback_core::port::process::BoundedRunReport;
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{CloudEvent, SinkPayload, StartError, json};
use hearback_platform::Native;
use serde::{Deserialize, Serialize};

use super::hand_over::{HandOver, Opening, complaint, line, timed_out};
use super::kind::SinkKind;

/// The protocol, as this build speaks it.
pub(crate) struct Protocol;

impl Protocol {
    /// The version that this build speaks.
    pub(crate) const VERSION: u32 = 1;
}

/// The first line of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) hearback_sink: HelloBody,
}

/// The content of a hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HelloBody {
    /// The versions that it speaks.
    pub(crate) versions: Vec<u32>,
}

/// A request to a plugin.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Deliver this.
    Deliver {
        /// The version of the protocol.
        version: u32,
        /// The delivery, in its envelope.
        event: Box<CloudEvent<SinkPayload>>,
    },
}

impl Request {
    /// The request to deliver this payload.
    pub(super) fn deliver(payload: &SinkPayload) -> Self {
        Self::Deliver { version: Protocol::VERSION, event: Box::new(payload.event()) }
    }

    /// The request as a line of JSON.
    pub(super) fn line(&self) -> Result<Vec<u8>, SinkError> {
        line(self)
    }
}

/// A program that speaks the plugin protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginSink {
    /// Where it is.
    pub program: PathBuf,
}

impl PluginSink {
    /// The plugin of this program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// Sends lines to the plugin after its hello, and returns all that it answers.
    pub(super) fn speak(
        &self,
        hand_over: &HandOver<'_>,
        input: Vec<u8>,
    ) -> Result<BoundedRunReport, StartError> {
        let program = hearback_platform::from_os(self.program.as_os_str());
        hand_over.run(vec![program], input, Opening::Greeting)
    }
}

impl SinkKind for PluginSink {
    /// A plugin that was found can be run.
    fn check(&self, _: Native) -> Option<String> {
        None
    }

    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError> {
        let request = Request::deliver(hand_over.payload).line()?;
        let report = self.speak(hand_over, request).map_err(|error| hand_over.not_started(error))?;
        understand(&report)
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
        return Err(timed_out(report));
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

/// The output of a plugin, line by line.
pub(super) fn lines(report: &BoundedRunReport) -> impl Iterator<Item = &[u8]> {
    report.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Checks that the first line of a plugin is a hello with a known version; otherwise says what is wrong.
pub(super) fn greeting(line: &[u8]) -> Result<(), String> {
    let hello: Hello = json::from_slice(line).map_err(|_| "the plugin did not say hello")?;
    let versions = hello.hearback_sink.versions;
    match versions.contains(&Protocol::VERSION) {
        true => Ok(()),
        false => Err(format!("the plugin speaks versions {versions:?}, and not {}", Protocol::VERSION)),
    }
}

/// One line of a plugin's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// The result of the delivery.
    SinkReply(SinkReply),
    /// The delivery failed, for this reason.
    Failed(String),
}

impl Reply {
    /// None if the line is no answer. An answer of a newer protocol is unknown.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Failed {
            kind: String,
            #[serde(default)]
            reason: String,
        }
        match json::from_slice(line) {
            Ok(Failed { kind, reason }) if kind == "failed" => Some(Self::Failed(reason)),
            _ => json::from_slice(line).ok().map(Self::SinkReply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::Exit;

    fn said(stdout: &str) -> Result<SinkReply, String> {
        let report = BoundedRunReport {
            survivors: Vec::new(),
            exit: Some(Exit::Exited { code: 0 }),
            stdout: stdout.into(),
            stderr: b"boom\n".to_vec(),
        };
        understand(&report).map_err(|error| error.to_string())
    }

    #[test]
    fn the_answer_of_a_plugin_counts_if_it_speaks_the_version_of_this_build() {
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
