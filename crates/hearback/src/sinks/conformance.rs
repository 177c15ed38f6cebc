//! Checks that a plugin keeps to the protocol. The plugin is started anew for each check.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::message::clean_line;
use hearback_core::port::process::BoundedRunReport;
use hearback_core::port::sink::{Delivery, DeliveryContext, SinkError, SinkReply};
use hearback_core::{Exit, Session, SinkPayload, StartError};

use super::hand_over::{HandOver, OUTPUT_MAX, complaint};
use super::plugin::{PluginSink, Reply, Request, greeting, lines};
use crate::permissions::{Capability, Guarded};
use crate::{Hearback, argv};

/// How long a plugin may take for each check, from its start to its end.
const WITHIN: Duration = Duration::from_secs(10);
/// More than fits into a pipe, together with the rest of a delivery.
const HOSTILE_BYTES: usize = 60 * 1024;
const HOSTILE: &str = concat!(
    "\"'\\ {\"kind\":\"gone\"}\r\n\t\u{0}\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{7f}\u{2028}\u{202e}\u{fffd} \u{1f980}"
);

/// One check of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginCheck {
    /// Its name: stable between versions.
    pub name: &'static str,
    /// Whether the check passed.
    pub passed: bool,
    /// What the plugin did.
    pub seen: String,
}

impl PluginCheck {
    fn new(name: &'static str, found: Result<String, String>) -> Self {
        let passed = found.is_ok();
        Self { name, passed, seen: found.unwrap_or_else(|wrong| wrong) }
    }
}

impl Hearback {
    /// Checks whether a plugin keeps to the protocol, and returns the program that was checked. `plugin` is a path, or
    /// a name that is looked up as for a delivery. The plugin gets real deliveries of an invented job.
    ///
    /// # Errors
    ///
    /// When the caller may not try sinks, or there is no such program.
    pub fn check_plugin(&self, plugin: &Path) -> Result<(PathBuf, Vec<PluginCheck>), Guarded<SinkError>> {
        self.permissions().check(Capability::Sink)?;
        let program = self.plugin(plugin).map_err(Guarded::Failed)?;
        let plugin = Tried { plugin: PluginSink::new(&program), hearback: self, context: self.context() };
        let session = Session::parse("plugin-check").ok();
        let checks = match argv(["true"]) {
            Ok(request) => check(&plugin, &self.sample_delivery(&request, session)),
            Err(error) => vec![PluginCheck::new("hello", Err(error.to_string()))],
        };
        Ok((program, checks))
    }

    fn plugin(&self, plugin: &Path) -> Result<PathBuf, SinkError> {
        // A path has more than one part.
        if plugin.components().count() > 1 || plugin.is_absolute() {
            return fs_err::canonicalize(plugin).map_err(|error| SinkError::Failed(error.to_string()));
        }
        let name = plugin.to_string_lossy();
        self.registry.plugin(&name).ok_or_else(|| SinkError::Missing(name.into_owned()))
    }
}

/// A plugin that is tried.
struct Tried<'a> {
    plugin: PluginSink,
    hearback: &'a Hearback,
    context: DeliveryContext,
}

impl Tried<'_> {
    fn speak(&self, payload: &SinkPayload, input: Vec<u8>) -> Result<BoundedRunReport, StartError> {
        let native = self.hearback.registry.native;
        let (context, timeout) = (&self.context, WITHIN);
        self.plugin.speak(&HandOver { native, program: None, payload, context, timeout }, input)
    }
}

/// What is sent to a plugin, and how its answer is judged.
struct Trial {
    name: &'static str,
    input: Vec<u8>,
    payload: SinkPayload,
    judge: fn(&BoundedRunReport) -> Result<String, String>,
}

fn check(plugin: &Tried<'_>, sample: &Delivery) -> Vec<PluginCheck> {
    let hello = match plugin.speak(&sample.clone().into(), Vec::new()) {
        Ok(report) => report,
        Err(error) => return vec![PluginCheck::new("hello", Err(error.message))],
    };
    let mut checks = vec![PluginCheck::new("hello", says_hello(&hello))];
    if !checks[0].passed {
        // Every further check would fail for the same reason.
        return checks;
    }
    checks.push(PluginCheck::new("end_of_input", ends(&hello)));
    let mut impure = impurity(&hello);
    for trial in trials(sample) {
        let found = match plugin.speak(&trial.payload, trial.input) {
            Ok(report) => {
                impure = impure.or_else(|| impurity(&report));
                (trial.judge)(&report)
            }
            Err(error) => Err(error.message),
        };
        checks.push(PluginCheck::new(trial.name, found));
    }
    let pure = "nothing but hello and answers".to_owned();
    checks.push(PluginCheck::new("stdout", impure.map_or(Ok(pure), Err)));
    checks
}

fn trials(sample: &Delivery) -> Vec<Trial> {
    let request = |delivery: &Delivery| {
        let payload = SinkPayload::from(delivery.clone());
        Request::deliver(&payload).line().unwrap_or_default()
    };
    let again = Delivery { attempt: sample.attempt + 1, ..sample.clone() };
    let mut hostile = sample.clone();
    hostile.id.push_str(".hostile");
    hostile.text = HOSTILE.repeat(HOSTILE_BYTES / HOSTILE.len());
    hostile.output.head.clone_from(&hostile.text);
    let trial = |name, input, delivery: &Delivery, judge| Trial {
        name,
        input,
        payload: delivery.clone().into(),
        judge,
    };
    vec![
        trial("deliver", request(sample), sample, |report| answers(report, 1)),
        trial("repeat", request(&again), &again, |report| answers(report, 1)),
        trial("two_requests", request(sample).repeat(2), sample, |report| answers(report, 2)),
        trial("hostile_text", request(&hostile), &hostile, |report| answers(report, 1)),
        trial("unknown_request", b"{\"kind\":\"sing\",\"version\":1}\n".to_vec(), sample, refuses),
        trial("garbage", b"}{ \xff\x00 this is no request\n".to_vec(), sample, refuses),
    ]
}

fn says_hello(report: &BoundedRunReport) -> Result<String, String> {
    match lines(report).next() {
        Some(line) => greeting(line).map_err(|wrong| format!("{wrong}: {}", shown(line))),
        None if report.exit.is_none() => Err(format!(
            "it said nothing within {} s; it has to say hello before it gets a request",
            WITHIN.as_secs()
        )),
        None => Err(with_complaint("it ended without a hello", report)),
    }?;
    Ok("it said hello before it got a request".into())
}

fn ends(report: &BoundedRunReport) -> Result<String, String> {
    match report.exit {
        Some(Exit::Exited { code: 0 }) => Ok("it ended when its input was closed".into()),
        Some(exit) => {
            Err(with_complaint(&format!("its input was closed, and it ended with {}", how(exit)), report))
        }
        None => Err(late()),
    }
}

/// One known answer to each request, none of which says that the delivery failed, and then the end.
fn answers(report: &BoundedRunReport, requests: usize) -> Result<String, String> {
    in_time(report)?;
    let replies: Vec<_> = lines(report).skip(1).collect();
    if replies.len() != requests {
        let wrong = format!("it answered {} times to {requests}", replies.len());
        return Err(with_complaint(&wrong, report));
    }
    let unknown = Reply::SinkReply(SinkReply::Unknown);
    let known = |line: &&[u8]| Reply::parse(line).is_some_and(|reply| reply != unknown);
    let is_failure = |line: &&&[u8]| matches!(Reply::parse(line), Some(Reply::Failed(_)));
    match (replies.iter().find(|line| !known(line)), replies.iter().find(is_failure)) {
        (Some(line), _) => Err(format!("it gave an unknown answer: {}", shown(line))),
        // The other answers say what hearback is to do next, and this one that the plugin does not work here.
        (None, Some(line)) => Err(format!("it answered that the delivery failed: {}", shown(line))),
        (None, None) => Ok(format!("it answered {}", shown(&replies.join(&b' ')))),
    }
}

/// An answer that does not claim a delivery, or an end that is an error.
fn refuses(report: &BoundedRunReport) -> Result<String, String> {
    in_time(report)?;
    match (lines(report).nth(1), report.exit) {
        (Some(line), _) => match Reply::parse(line) {
            Some(Reply::SinkReply(SinkReply::Delivered)) => {
                Err(format!("it took this for a delivery: {}", shown(line)))
            }
            Some(_) => Ok(format!("it answered {}", shown(line))),
            None => Err(format!("its answer cannot be understood: {}", shown(line))),
        },
        (None, Some(Exit::Exited { code: 0 })) => {
            Err("it ended as if nothing were wrong, without an answer".into())
        }
        (None, Some(exit)) => Ok(format!("it ended with {}", how(exit))),
        (None, None) => Err("it has not ended".into()),
    }
}

fn in_time(report: &BoundedRunReport) -> Result<(), String> {
    report.exit.map(drop).ok_or_else(late)
}

fn late() -> String {
    format!("it had not ended {} s after its start, though its input was closed", WITHIN.as_secs())
}

/// The first thing on standard output that is no part of the protocol.
fn impurity(report: &BoundedRunReport) -> Option<String> {
    if report.stdout.len() >= OUTPUT_MAX {
        return Some(format!("it wrote {OUTPUT_MAX} bytes or more, and the rest was not read"));
    }
    let mut said = lines(report);
    let hello = said.next().filter(|line| greeting(line).is_err());
    let other = hello.or_else(|| said.find(|line| Reply::parse(line).is_none()));
    other.map(|line| format!("it wrote a line that is neither hello nor an answer: {}", shown(line)))
}

fn how(exit: Exit) -> String {
    exit.to_string()
}

fn with_complaint(wrong: &str, report: &BoundedRunReport) -> String {
    match complaint(report) {
        complaint if complaint.is_empty() => wrong.to_owned(),
        complaint => format!("{wrong}: {}", shown(complaint.as_bytes())),
    }
}

fn shown(line: &[u8]) -> String {
    let mut text = clean_line(&String::from_utf8_lossy(line));
    text.truncate(text.floor_char_boundary(200));
    text
}
