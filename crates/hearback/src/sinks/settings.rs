//! The settings of a sink: `[sink.NAME]` of the settings file, or the same in code.

use std::time::Duration;

use hearback_core::Spec;
use hearback_core::agents::Agent;
use hearback_platform::Native;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::kind::{Route, TABLES};
use crate::settings_file::{Problem, SpannedTable, suggestion};

/// The settings of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkSettings {
    /// Where a delivery goes.
    pub route: Route,
    /// Whether it starts a turn of the session. A session has one turn at a time.
    pub turn: bool,
    /// How long it may take.
    pub timeout: Duration,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// A turn of an agent may take long.
const TURN_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl SinkSettings {
    /// A sink that starts no turn and has a minute.
    pub fn new(route: impl Into<Route>) -> Self {
        Self { route: route.into(), turn: false, timeout: DEFAULT_TIMEOUT }
    }

    /// A sink that starts a turn of the session, and has an hour for it.
    pub fn turn(route: impl Into<Route>) -> Self {
        Self { route: route.into(), turn: true, timeout: TURN_TIMEOUT }
    }

    /// Why the sink cannot be run here, as far as that is known without running it.
    pub(crate) fn check(&self, native: Native) -> Option<String> {
        self.route.kind().check(native)
    }

    /// Whether it can only take the follow-up of a job that has a session.
    pub(crate) fn needs_session(&self) -> bool {
        self.route.kind().needs_session()
    }

    /// Why it cannot take the follow-up of a job, as far as that is known at launch.
    pub(crate) fn check_for(&self, native: Native, spec: &Spec) -> Option<String> {
        self.route.kind().check_for(native, spec)
    }

    /// The agent that would be woken and takes no messages while its session is open, as it is at launch.
    pub(crate) fn deaf_agent(&self, spec: &Spec) -> Option<&'static Agent> {
        let Route::Agent(sink) = &self.route else { return None };
        sink.is_deaf(spec).then_some(sink.agent)
    }

    /// Reads one `[sink.NAME]` of the settings file.
    pub(crate) fn parse(table: SpannedTable<'_>) -> Result<Self, Problem> {
        let all = || TABLES.iter().flat_map(|kind| kind.keys.iter().copied()).chain(COMMON_KEYS);
        if let Some(key) = table.keys().find(|key| !all().any(|known| known == *key)) {
            return Err(table.at(key, format!("`{key}` is no key of a sink{}", suggestion(key, all()))));
        }
        let chosen: Vec<_> = TABLES.iter().filter(|kind| table.keys().any(|key| key == kind.key)).collect();
        let [kind] = chosen[..] else {
            let keys: Vec<_> = TABLES.iter().map(|kind| kind.key).collect();
            return Err(format!("it needs one of {}", list(&keys, "and")).into());
        };
        let is_foreign = |key: &&str| !kind.keys.contains(key) && !COMMON_KEYS.contains(key);
        if let Some(key) = table.keys().find(is_foreign) {
            let with = TABLES.iter().filter(|kind| kind.keys.contains(&key)).map(|kind| kind.key);
            let with: Vec<_> = with.collect();
            return Err(table.at(key, format!("`{key}` goes with {}", list(&with, "or"))));
        }
        let (common, own) = table.split(|key| COMMON_KEYS.contains(&key));
        let Common { turn, timeout } = common.read()?;
        let mut settings = (kind.parse)(own)?;
        settings.turn = turn.unwrap_or(settings.turn);
        settings.timeout = timeout.map_or(settings.timeout, |SinkTime(timeout)| timeout);
        Ok(settings)
    }
}

/// The keys of every sink.
const COMMON_KEYS: [&str; 2] = ["turn", "timeout"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Common {
    turn: Option<bool>,
    timeout: Option<SinkTime>,
}

/// A time that is not zero.
struct SinkTime(Duration);

impl<'de> Deserialize<'de> for SinkTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time = humantime::parse_duration(&text).ok().filter(|time| !time.is_zero());
        time.map(Self).ok_or_else(|| D::Error::custom("expected a time such as `10m`"))
    }
}

/// `a`, `b` and `c`.
fn list(names: &[&str], last: &str) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((end, [])) => end.clone(),
        Some((end, others)) => format!("{} {last} {end}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CommandSink, FileSink, Input};
    use super::*;
    use crate::settings_file::position;

    fn parse(text: &str) -> Result<SinkSettings, String> {
        SinkSettings::parse(SpannedTable::parse(text).unwrap()).map_err(|problem| {
            let (line, column) = problem.at.map_or((0, 0), |at| position(text, at));
            format!("{line}:{column}: {}", problem.message)
        })
    }

    #[test]
    fn a_table_is_one_kind_of_sink_with_the_keys_of_that_kind() {
        let file = parse("file = '/x'\ntimeout = '5s'\nturn = true").unwrap();
        let expected =
            SinkSettings { timeout: Duration::from_secs(5), ..SinkSettings::turn(FileSink::new("/x")) };
        assert_eq!(file, expected);
        let command = parse("command = ['page', '{job}']\nstdin = 'none'").unwrap();
        let expected = CommandSink { input: Input::Nothing, ..CommandSink::new(["page", "{job}"]) };
        assert_eq!(command, SinkSettings::new(expected));
        let preset = parse("preset = 'desktop'\nstdin = 'json'").unwrap();
        assert!(matches!(&preset.route, Route::Command(command) if command.input == Input::Json));
        for (bad, why) in [
            ("", "one of `command`, `preset`, `url` and `file`"),
            ("file = '/x'\ncommand = ['y']", "one of"),
            ("file = '/x'\nstdin = 'text'", "2:1: `stdin` goes with `command` or `preset`"),
            ("file = '/x'\ntimeot = '5s'", "2:1: `timeot` is no key of a sink; did you mean `timeout`?"),
            ("file = '/x'\nzzz = 1", "2:1: `zzz` is no key of a sink"),
            ("file = '/x'\ntimeout = 'soon'", "2:11: `timeout`: expected a time such as `10m`"),
            ("file = '/x'\ntimeout = '0s'", "expected a time"),
            ("file = '/x'\nturn = 'yes'", "2:8: `turn`: expected a boolean"),
            ("file = 'x'", "`file` has to be an absolute path, and `x` is not"),
            ("file = '~/x'", "`~/x` is not"),
            ("file = 5", "1:8: `file`: expected"),
            ("command = []", "`command` is a list"),
            ("command = 'hush-4711'", "1:11: `command`: expected a sequence"),
            ("command = ['x', 5]", "1:17: `command`: expected a string"),
            ("command = ['x']\nstdin = 'all'", "2:9: `stdin`: expected one of `json`, `text`, `none`"),
            ("preset = 'unheard-of'", "there is no preset `unheard-of`"),
            ("preset = 'claude'\nstdin = 'json'", "what an agent reads is not a setting"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(why) && !error.contains("hush"), "{bad}: {error}");
        }
    }

    #[test]
    fn every_key_that_a_kind_names_is_one_that_it_reads() {
        for kind in &TABLES {
            for key in kind.keys {
                let text = format!("{key} = 1979-05-27");
                let problem = (kind.parse)(SpannedTable::parse(&text).unwrap()).unwrap_err();
                assert!(!problem.message.contains("unknown"), "{}: {problem:?}", kind.key);
            }
        }
    }

    #[test]
    #[cfg(feature = "webhook")]
    fn a_webhook_needs_an_address_that_is_safe_and_the_name_of_a_secret() {
        let good = parse("url = 'https://example.org/x'\nsecret_env = 'HOOK'").unwrap();
        let expected = super::super::WebhookSink::new("https://example.org/x", "HOOK").unwrap();
        assert_eq!(good, SinkSettings::new(expected));
        for (bad, why) in [
            ("url = 'https://example.org/x'", "secret_env"),
            ("url = 'http://example.org/x'\nsecret_env = 'HOOK'", "not encrypted"),
            ("url = 'https://example.org/x'\nsecret_env = 'whsec_abcdef'", "name of a variable"),
            ("url = 'https://example.org/x'\nsecret_env = 'HOOK'\nstdin = 'text'", "stdin"),
            ("url = 'https://example.org/x'\nsecret_env = 'HOOK'\nfile = 'y'", "one of"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(why) && !error.contains("abcdef"), "{bad}: {error}");
        }
    }
}
