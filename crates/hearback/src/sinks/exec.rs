//! Sinks that are a program: its exit code is the answer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hearback_core::message::{clean_line, command_text, shortened};
use hearback_core::port::process::{BoundedRun, BoundedRunReport, ProcessControl};
use hearback_core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback_core::{Delivery, Exit, JobView, OsText, SinkPayload, StartErrorKind};

use super::plugin::Reply;
use super::route::{Input, Route, SinkSettings};
use super::{Registry, SINK_COMMAND};
use crate::mask::Secrets;

/// How much is recorded of why a sink failed.
const REASON_BYTES: usize = 500;
/// How much is kept of what a sink says.
pub(super) const OUTPUT_MAX: usize = 64 * 1024;
/// What is longer may be no argument: Windows has room for some 32,000 characters in all, Linux for 128 KiB in one.
const ARGUMENT_BYTES: usize = 24 * 1024;
/// The session is in a turn. From sysexits: a temporary failure.
pub(super) const BUSY: u32 = 75;
/// The session is gone. From sysexits: a service is unavailable.
pub(super) const GONE: u32 = 69;

/// A program that is given a delivery.
pub(crate) struct ExecSink<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) settings: SinkSettings,
}

impl FollowUpSink for ExecSink<'_> {
    fn deliver(&self, payload: &SinkPayload, context: &DeliveryContext) -> Result<SinkReply, SinkError> {
        let payload = &self.registry.masked(payload);
        let mut missing = String::new();
        for words in self.commands()? {
            let argv = match arguments(&words, payload) {
                Ok(argv) => argv,
                Err(reason) => return Ok(SinkReply::Gone { reason }),
            };
            let input = self.input(payload)?;
            match self.registry.send(payload, context, argv, input, false, self.settings.timeout) {
                Ok(report) => return self.registry.told(self.answer(&report)),
                Err(error) if error.kind == StartErrorKind::NotFound => missing = error.message,
                Err(error) => return Err(SinkError::Failed(error.message)),
            }
        }
        Err(SinkError::Failed(missing))
    }

    fn starts_turn(&self) -> bool {
        self.settings.turn
    }

    fn within(&self) -> Duration {
        self.settings.timeout
    }
}

impl ExecSink<'_> {
    /// What to run: the first of these that is installed.
    fn commands(&self) -> Result<Vec<Vec<String>>, SinkError> {
        let ourselves = |words: &[&str]| {
            let program = crate::supervisor::program(self.registry.program.as_deref());
            let program = program.map_err(|error| SinkError::Failed(error.to_string()))?;
            let program = program.into_os_string().into_string();
            let program = program.map_err(|_| SinkError::Failed("hearback's own path is no text".into()))?;
            let words = words.iter().map(|word| (*word).to_owned());
            Ok(vec![[program, SINK_COMMAND.to_owned()].into_iter().chain(words).collect::<Vec<_>>()])
        };
        match &self.settings.route {
            Route::Command(alternatives) => Ok(alternatives.clone()),
            Route::File(path) => ourselves(&["file", &path.to_string_lossy()]),
            Route::Webhook { url, secret_env } => ourselves(&["webhook", url, secret_env]),
            Route::Plugin(_) => Err(SinkError::Failed("a plugin is spoken to".into())),
        }
    }

    /// Those that are built in can say more than by their exit code.
    fn answer(&self, report: &BoundedRunReport) -> Result<SinkReply, SinkError> {
        let said = match (&self.settings.route, report.exit) {
            (Route::Webhook { .. }, Some(_)) => Reply::parse(&report.stdout),
            _ => None,
        };
        match said {
            Some(Reply::SinkReply(asked @ SinkReply::RetryAfter { .. })) => Ok(asked),
            _ => answer(report),
        }
    }

    fn input(&self, payload: &SinkPayload) -> Result<Vec<u8>, SinkError> {
        match self.settings.input {
            Input::Nothing => Ok(Vec::new()),
            Input::Text => Ok(payload.text().as_bytes().to_vec()),
            Input::Json => line(&payload.event()),
        }
    }
}

/// What to run, with what a delivery says filled in; otherwise why that cannot be done, now or later.
fn arguments(words: &[String], payload: &SinkPayload) -> Result<Vec<OsText>, String> {
    // An agent that is to resume nothing in particular would resume something else.
    if payload.session().is_none() && words.iter().any(|word| word.contains("{session}")) {
        return Err("it is for no session that could be woken".into());
    }
    let mut options = true;
    let mut argv = Vec::with_capacity(words.len());
    for word in words {
        options &= word != "--";
        let mut filled = filled(word, payload);
        // What is said may begin as it likes.
        if word == "{text}" && filled.starts_with('-') {
            filled.insert(0, ' ');
        }
        // Whoever names a session does not choose the options of the agent that is woken in it.
        if options && word.starts_with('{') && filled.starts_with('-') {
            return Err(format!("`{}` would be taken for an option", clean_line(&shortened(&filled, 100))));
        }
        argv.push(OsText::Text(filled));
    }
    Ok(argv)
}

/// One line of JSON.
pub(super) fn line(value: &impl serde::Serialize) -> Result<Vec<u8>, SinkError> {
    let mut line = serde_json::to_vec(value).map_err(|error| SinkError::Failed(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Puts what a payload says in place of the names of it. What is filled in is never looked at again.
fn filled(word: &str, payload: &SinkPayload) -> String {
    let job = match payload {
        SinkPayload::FollowUp(delivery) => Some(&delivery.job),
        _ => None,
    };
    let mut text = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        let Some(end) = rest.find('}') else { break };
        match &rest[1..end] {
            "session" => text.push_str(payload.session().map_or("", |session| session.as_str())),
            "destination" => text.push_str(payload.destination().unwrap_or_default()),
            "text" => text.push_str(&shortened(payload.text(), ARGUMENT_BYTES)),
            "delivery" => text.push_str(payload.id()),
            "job" => text.push_str(job.map_or("", |job| job.id.as_str())),
            // Not the first line of the text: that may be about the news, and not about the job.
            "title" => match job.and_then(|job| job.outcome.as_ref()) {
                Some(outcome) => text.push_str(&clean_line(&outcome.to_string())),
                None => text.push_str(payload.text().lines().next().unwrap_or_default()),
            },
            "command" => {
                let command = job.and_then(|job| job.command.as_ref()).map(command_text).unwrap_or_default();
                text.push_str(&shortened(&clean_line(&command), ARGUMENT_BYTES / 8));
            }
            _ => text.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    text
}

/// What the exit code of a program says.
fn answer(report: &BoundedRunReport) -> Result<SinkReply, SinkError> {
    match report.exit {
        None => Err(SinkError::TimedOut),
        Some(Exit::Exited { code: 0 }) => Ok(SinkReply::Delivered),
        Some(Exit::Exited { code: BUSY }) => Ok(SinkReply::Busy),
        Some(Exit::Exited { code: GONE }) => Ok(SinkReply::Gone { reason: complaint(report) }),
        Some(exit) => {
            let complaint = complaint(report);
            let colon = if complaint.is_empty() { "" } else { ": " };
            Err(SinkError::Failed(format!("{exit}{colon}{complaint}")))
        }
    }
}

/// The last thing that a sink complained about.
pub(super) fn complaint(report: &BoundedRunReport) -> String {
    let said = String::from_utf8_lossy(&report.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    clean_line(last.trim())
}

impl Registry {
    /// Runs a program with a payload.
    pub(super) fn send(
        &self,
        payload: &SinkPayload,
        context: &DeliveryContext,
        argv: Vec<OsText>,
        stdin: Vec<u8>,
        speaks_first: bool,
        within: Duration,
    ) -> Result<BoundedRunReport, hearback_core::StartError> {
        let text = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value)));
        let mut env = vec![
            text("HEARBACK_DELIVERY", payload.id()),
            text("HEARBACK_ATTEMPT", &payload.attempt().to_string()),
            text(crate::session::DEPTH_VARIABLE, &payload.depth().to_string()),
        ];
        // Whoever is woken launches for the session that it is woken in, whoever sent it out.
        let others = crate::session::variables_of_others(payload.session());
        env.extend(others.map(|name| (OsString::from(name), None)));
        env.extend(payload.session().map(|session| text(crate::session::VARIABLE, session.as_str())));
        let turn = context.turn.map(|turn| OsString::from(turn.to_string()));
        env.push((crate::session::TURN_VARIABLE.into(), turn));
        // What somebody else was told first is in no payload of ours.
        env.push((crate::session::NOTE_VARIABLE.into(), None));
        let cwd = payload.cwd().map(|cwd| PathBuf::from(hearback_platform::to_os(cwd)));
        self.native.run_bounded(&BoundedRun {
            argv,
            cwd: cwd.filter(|cwd| cwd.is_dir()),
            env,
            stdin,
            speaks_first,
            within,
            output_max: OUTPUT_MAX,
            mark: context.mark.clone(),
        })
    }

    /// What a sink said, as it may be recorded: short, harmless and without secrets.
    pub(super) fn told(&self, answer: Result<SinkReply, SinkError>) -> Result<SinkReply, SinkError> {
        let words = |said: &str| {
            let mut words = self.secrets.masked(&clean_line(said));
            words.truncate(words.floor_char_boundary(REASON_BYTES));
            words
        };
        match answer {
            Ok(SinkReply::Gone { reason }) => Ok(SinkReply::Gone { reason: words(&reason) }),
            Err(SinkError::Failed(reason)) => Err(SinkError::Failed(words(&reason))),
            other => other,
        }
    }

    /// Removes the values of secrets from everything that is sent.
    pub(crate) fn masked(&self, payload: &SinkPayload) -> SinkPayload {
        match payload {
            SinkPayload::FollowUp(delivery) => self.masked_delivery((**delivery).clone()).into(),
            other => self.mask(other.clone()),
        }
    }

    /// The same for a follow-up, which may have been cut in the middle of one.
    pub(crate) fn masked_delivery(&self, delivery: Delivery) -> Delivery {
        let mut masked = self.mask(delivery);
        self.secrets.mask_excerpt(&mut masked);
        masked
    }

    /// Removes the values of secrets from what is shown.
    pub(crate) fn masked_view(&self, view: JobView) -> JobView {
        self.mask(view)
    }

    fn mask<T: serde::Serialize + serde::de::DeserializeOwned>(&self, shown: T) -> T {
        if self.secrets.is_empty() {
            return shown;
        }
        let masked = serde_json::to_value(&shown).and_then(|mut value| {
            mask(&mut value, &self.secrets);
            serde_json::from_value(value)
        });
        masked.unwrap_or(shown)
    }
}

fn mask(value: &mut serde_json::Value, secrets: &Secrets) {
    match value {
        serde_json::Value::String(text) => *text = secrets.masked(text),
        serde_json::Value::Array(list) => list.iter_mut().for_each(|value| mask(value, secrets)),
        serde_json::Value::Object(map) => map.values_mut().for_each(|value| mask(value, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::message::Excerpt;
    use hearback_core::testing::sample;

    #[test]
    fn what_a_job_says_cannot_be_filled_in_twice_or_become_an_argument() {
        let excerpt = Excerpt { head: b"{session} $(rm) `x`\n".to_vec(), tail: vec![], omitted: 0 };
        let job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        let payload = SinkPayload::from(Delivery::new(job, &excerpt, 1, false, 1));
        let word = |word| filled(word, &payload);
        assert!(word("{text}").contains("| {session} $(rm) `x`\n"), "{}", word("{text}"));
        assert_eq!(word("--id={session}"), "--id=s");
        assert_eq!(word("{unknown} {"), "{unknown} {");
        assert_eq!(word("{title}"), "done: exit code 0");
        let job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        let late = SinkPayload::from(Delivery::new(job, &excerpt, 1, true, 1));
        assert_eq!(filled("{title}", &late), "done: exit code 0", "late or not");
    }

    #[test]
    fn a_session_is_named_and_is_no_option() {
        let nothing = Excerpt { head: vec![], tail: vec![], omitted: 0 };
        let job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        let mut delivery = Delivery::new(job, &nothing, 1, false, 1);
        let words = |words: &[&str], delivery: &Delivery| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments(&words, &delivery.clone().into())
                .map(|argv| argv.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            words(&["agent", "--resume", "{session}"], &delivery).unwrap(),
            ["agent", "--resume", "s"]
        );
        delivery.session = hearback_core::Session::parse("--yolo").ok();
        assert!(words(&["agent", "--resume", "{session}"], &delivery).unwrap_err().contains("`--yolo`"));
        assert_eq!(words(&["agent", "--id={session}"], &delivery).unwrap()[1], "--id=--yolo");
        assert_eq!(words(&["note", "--", "{session}"], &delivery).unwrap()[2], "--yolo");
        delivery.session = None;
        assert!(words(&["agent", "--resume={session}"], &delivery).unwrap_err().contains("no session"));
        assert_eq!(words(&["page", "{job}"], &delivery).unwrap()[1], delivery.job.id.as_str());
    }

    #[test]
    fn no_argument_is_too_long_to_be_one() {
        let nothing = Excerpt { head: vec![b'x'; 1 << 20], tail: vec![], omitted: 0 };
        let mut job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        job.command = Some(hearback_core::CommandLine::Shell { shell: "y".repeat(1 << 20), program: None });
        let delivery = SinkPayload::from(Delivery::new(job, &nothing, 1, false, 1));
        for word in ["{text}", "{command}"] {
            assert!(filled(word, &delivery).len() <= ARGUMENT_BYTES, "{word}");
        }
        let text = filled("{text}", &delivery);
        assert!(text.starts_with("done: exit code 0\n") && text.contains("bytes left out"));
    }
}
