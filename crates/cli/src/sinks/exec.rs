//! Sinks that are a program: its exit code is the answer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hearback_core::message::{clean_line, command_text};
use hearback_core::port::process::{Errand, ErrandReport, ProcessControl};
use hearback_core::port::sink::{Answer, Delivery, FollowUpSink, SinkError};
use hearback_core::{CloudEvent, Exit, JobId, JobView, OsText, StartErrorKind};

use super::route::{Input, Route, SinkSettings};
use super::{Registry, SINK_COMMAND};
use crate::mask::Secrets;

/// How much is kept of what a sink says.
pub(super) const OUTPUT_MAX: usize = 64 * 1024;
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
    fn deliver(&self, delivery: &Delivery) -> Result<Answer, SinkError> {
        let delivery = &self.registry.masked(delivery);
        let mut missing = String::new();
        for argv in self.commands()? {
            let argv = argv.iter().map(|word| filled(word, delivery)).collect();
            let input = self.input(delivery)?;
            match self.registry.send(delivery, argv, input, false, self.settings.timeout) {
                Ok(report) => return answer(&report),
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
            let program = std::env::current_exe().map_err(|error| SinkError::Failed(error.to_string()))?;
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

    fn input(&self, delivery: &Delivery) -> Result<Vec<u8>, SinkError> {
        match self.settings.input {
            Input::Nothing => Ok(Vec::new()),
            Input::Text => Ok(delivery.text.clone().into_bytes()),
            Input::Json => line(&CloudEvent::from(delivery.clone())),
        }
    }
}

/// One line of JSON.
pub(super) fn line(value: &impl serde::Serialize) -> Result<Vec<u8>, SinkError> {
    let mut line = serde_json::to_vec(value).map_err(|error| SinkError::Failed(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Puts what a delivery says in place of the names of it. What is filled in is never looked at again.
fn filled(word: &str, delivery: &Delivery) -> OsText {
    let mut text = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        let Some(end) = rest.find('}') else { break };
        match &rest[1..end] {
            "session" => text.push_str(delivery.session.as_ref().map_or("", |session| session.as_str())),
            "text" => text.push_str(&delivery.text),
            "delivery" => text.push_str(&delivery.id),
            "job" => text.push_str(delivery.job.id.as_str()),
            "title" => text.push_str(delivery.text.lines().next().unwrap_or_default()),
            "command" => {
                let command = delivery.job.command.as_ref().map(command_text).unwrap_or_default();
                text.push_str(&clean_line(&command));
            }
            _ => text.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    OsText::Text(text)
}

fn answer(report: &ErrandReport) -> Result<Answer, SinkError> {
    match report.exit {
        None => Err(SinkError::TimedOut),
        Some(Exit::Exited { code: 0 }) => Ok(Answer::Delivered),
        Some(Exit::Exited { code: BUSY }) => Ok(Answer::Busy),
        Some(Exit::Exited { code: GONE }) => Ok(Answer::Gone { reason: complaint(report) }),
        Some(exit) => {
            let how = match exit {
                Exit::Exited { code } => format!("exit code {code}"),
                Exit::Signaled { signal, .. } => format!("signal {signal}"),
            };
            let complaint = complaint(report);
            let colon = if complaint.is_empty() { "" } else { ": " };
            Err(SinkError::Failed(format!("{how}{colon}{complaint}")))
        }
    }
}

/// The last thing that a sink complained about.
pub(super) fn complaint(report: &ErrandReport) -> String {
    let said = String::from_utf8_lossy(&report.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut last = clean_line(last.trim());
    last.truncate(last.floor_char_boundary(500));
    last
}

impl Registry {
    /// Runs a program with a delivery.
    pub(super) fn send(
        &self,
        delivery: &Delivery,
        argv: Vec<OsText>,
        stdin: Vec<u8>,
        speaks_first: bool,
        within: Duration,
    ) -> Result<ErrandReport, hearback_core::StartError> {
        let text = |name: &str, value: &str| (OsString::from(name), Some(OsString::from(value)));
        let mut env = vec![
            text("HEARBACK_DELIVERY", &delivery.id),
            text("HEARBACK_ATTEMPT", &delivery.attempt.to_string()),
            text(crate::session::DEPTH_VARIABLE, &delivery.depth.to_string()),
        ];
        // Whoever is woken launches for the session that it is woken in.
        env.extend(delivery.session.as_ref().map(|session| text("HEARBACK_SESSION", session.as_str())));
        let cwd = delivery.job.cwd.as_ref().map(|cwd| PathBuf::from(hearback_platform::to_os(cwd)));
        self.native.run_errand(&Errand {
            argv,
            cwd: cwd.filter(|cwd| cwd.is_dir()),
            env,
            stdin,
            speaks_first,
            within,
            output_max: OUTPUT_MAX,
            mark: self.native.mint(),
        })
    }

    /// Removes the values of secrets from everything that is sent.
    pub(crate) fn masked(&self, delivery: &Delivery) -> Delivery {
        let mut masked = self.mask(delivery.clone());
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

/// A fresh name for an errand.
pub(super) trait Mint {
    fn mint(&self) -> JobId;
}

impl Mint for hearback_platform::Native {
    fn mint(&self) -> JobId {
        use hearback_core::port::clock::Clock;
        use hearback_core::port::disk::Disk;
        JobId::mint(self.wall().as_millis().unsigned_abs(), self.nonce())
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
        let delivery = Delivery::new(job, &excerpt, 1, false, 1);
        let word = |word| filled(word, &delivery).to_string();
        assert!(word("{text}").contains("| {session} $(rm) `x`\n"), "{}", word("{text}"));
        assert_eq!(word("--id={session}"), "--id=s");
        assert_eq!(word("{unknown} {"), "{unknown} {");
        assert_eq!(word("{title}"), "done: exit code 0");
    }
}
