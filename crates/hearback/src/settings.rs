//! Settings: environment over file over default. A bad value is named and passed over.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use hearback_core::{Busy, Durability, NoticeBytes};
use hearback_monitor::delivery::Retry;
use hearback_monitor::prune::Retention;
use serde::{Deserialize, Serialize};

use crate::mask::Secrets;
use crate::setting_values::{Kind, Taken, VALUES};
use crate::settings_file::{Scalar, SpannedTable, SpannedValue, position, suggestion};
use crate::sinks::SinkSettings;

/// What can be set.
///
/// Zero has one meaning for every time: a time to wait is not waited, and an age that is not to be exceeded is
/// unlimited, which these fields say as [`Duration::MAX`]. Less than zero is taken for zero, with a warning.
///
/// A program that embeds hearback can make its own, without a file:
///
/// ```
/// use hearback::{FileSink, Settings, SinkSettings};
///
/// let mut settings = Settings::default();
/// settings.max_depth = 2;
/// settings.sinks.insert("journal".into(), SinkSettings::new(FileSink::new("/var/log/follow-ups.jsonl")));
/// settings.default_sink = Some("journal".into());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// What has to survive a power cut (`durability`, `HEARBACK_DURABILITY`): `power` or `process`.
    pub durability: Durability,
    /// How long settled jobs are kept (`retention`, `HEARBACK_RETENTION`: a duration such as `30d`), and how many
    /// (`max_jobs`, `HEARBACK_MAX_JOBS`).
    pub retention: Retention,
    /// Where follow-ups of a session's jobs go unless a launch says otherwise (`default_sink`).
    pub default_sink: Option<String>,
    /// Where notices about restarts go besides those who were interrupted (`notice_sink`).
    pub notice_sink: Option<String>,
    /// What becomes of a message to a session that is in a turn (`busy`): `queue` or `interrupt`.
    pub busy: Busy,
    /// How long a drain waits for turns to end (`drain_timeout`); zero does not wait at all.
    pub drain_timeout: Duration,
    /// How long after it was interrupted a session is continued (`resume_window`).
    pub resume_window: Duration,
    /// The sinks of the settings file (`[sink.NAME]`).
    pub sinks: BTreeMap<String, SinkSettings>,
    /// How often a delivery is tried (`attempts`), with which pauses (`retry_first`, `retry_most`), when it counts as
    /// late (`late_after`) and when it expires (`expire_after`).
    pub retry: Retry,
    /// The most of a job's output that its follow-up holds (`notice_bytes`: a size such as `8KiB`).
    pub notice: NoticeBytes,
    /// How many follow-ups may lead from one launch to the next (`max_depth`).
    pub max_depth: u32,
    /// How many jobs a session may launch in an hour from within follow-ups (`max_rate`).
    pub max_rate: usize,
    /// Variables that hold secrets (`secrets`, a list of names, and the `secret_env` of each webhook): no job inherits
    /// them, and what they hold is masked in what is shown and sent.
    pub secrets: Vec<String>,
    /// Values that were passed over, each with its reason.
    pub warnings: Vec<String>,
    /// Where those come from that are not what they are by default.
    sources: BTreeMap<&'static str, SettingSource>,
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SettingSource {
    /// A variable of the environment.
    Environment,
    /// The settings file.
    File,
    /// The program that embeds hearback.
    Code,
    /// No value is set, or only an invalid one.
    Default,
}

/// One setting as it is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectiveSetting {
    /// Its name in the settings file.
    pub name: String,
    /// Its value, as it could be written there; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where that comes from.
    pub source: SettingSource,
    /// The variable that sets it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

impl EffectiveSetting {
    /// Where it comes from, for people.
    pub fn origin(&self) -> impl fmt::Display {
        match (self.source, &self.variable) {
            (SettingSource::Environment, Some(variable)) => format!("environment {variable}"),
            (SettingSource::Environment, None) => "environment".to_owned(),
            (SettingSource::File, _) => "file".to_owned(),
            (SettingSource::Code, _) => "code".to_owned(),
            (SettingSource::Default, _) => "default".to_owned(),
        }
    }
}

const DEFAULT_MAX_DEPTH: u32 = 8;
const DEFAULT_MAX_RATE: usize = 60;
const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_RESUME_WINDOW: Duration = Duration::from_secs(60 * 60);

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            retention: Retention::default(),
            default_sink: None,
            notice_sink: None,
            busy: Busy::default(),
            drain_timeout: DEFAULT_DRAIN_TIMEOUT,
            resume_window: DEFAULT_RESUME_WINDOW,
            sinks: BTreeMap::new(),
            retry: Retry::default(),
            notice: NoticeBytes::default(),
            max_depth: DEFAULT_MAX_DEPTH,
            max_rate: DEFAULT_MAX_RATE,
            secrets: Vec::new(),
            warnings: Vec::new(),
            sources: BTreeMap::new(),
        }
    }
}

/// The two settings that are more than one value, and have no variable.
const SINKS: &str = "sink";
const SECRETS: &str = "secrets";

impl Settings {
    /// The secrets that this process holds.
    pub(crate) fn secrets_here(&self) -> Secrets {
        Secrets::new(self.secrets.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))))
    }

    /// Every setting with its value, and where that comes from; of secrets the names, and no sinks.
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        let (mut copy, mut defaults) = (self.clone(), Self::default());
        let show = |name: &'static str, value, default: Option<String>, variable| {
            let unsaid = if value == default { SettingSource::Default } else { SettingSource::Code };
            let source = self.sources.get(name).copied().unwrap_or(unsaid);
            EffectiveSetting { name: name.to_owned(), value, source, variable }
        };
        let mut all: Vec<_> = VALUES
            .iter()
            .map(|(name, kind)| {
                show(name, kind.show(&mut copy), kind.show(&mut defaults), Some(variable(name)))
            })
            .collect();
        let secrets = Some(self.secrets.join(", ")).filter(|names| !names.is_empty());
        all.push(show(SECRETS, secrets, None, None));
        all
    }

    /// Merges the text of the settings file with the environment.
    pub(crate) fn merge(path: &Path, file: &str, env: impl Fn(&str) -> Option<String>) -> Self {
        let mut settings = Self::default();
        let place = |at: usize| {
            let (line, column) = position(file, at);
            format!("{}:{line}:{column}", path.display())
        };
        let table = SpannedTable::parse(file).unwrap_or_else(|problem| {
            let place = place(problem.at.unwrap_or_default());
            let reason = problem.message;
            settings.warnings.push(format!("{place} is not valid TOML, so the file was ignored: {reason}"));
            SpannedTable::default()
        });
        let known = || VALUES.iter().map(|(name, _)| *name).chain([SINKS, SECRETS]);
        for name in table.keys().filter(|name| !known().any(|known| known == *name)) {
            let place = place(table.key_at(name).unwrap_or_default());
            let meant = suggestion(name, known());
            settings.warnings.push(format!("`{name}` in {place} is no setting and was ignored{meant}"));
        }
        settings.merge_tables(&table, &place);
        settings.merge_values(&table, &place, env);
        settings
    }

    /// Environment over file. What cannot be used is named, and what would hold without it does.
    fn merge_values(
        &mut self,
        table: &SpannedTable<'_>,
        place: &dyn Fn(usize) -> String,
        env: impl Fn(&str) -> Option<String>,
    ) {
        for (name, kind) in VALUES {
            let variable = variable(name);
            let from_env = env(&variable).map(|value| (variable, Ok(value), SettingSource::Environment));
            let from_file = table.get(name).map(|value| {
                let place = format!("{name} in {}", place(value.at()));
                let text = value.clone().read().map(|Scalar(text)| text);
                (place, text.map_err(|problem| problem.message), SettingSource::File)
            });
            for (place, value, source) in [from_env, from_file].into_iter().flatten() {
                let (is_taken, problem) = match value {
                    Ok(value) => self.take(kind, &value),
                    Err(reason) => (false, Some(format!(" is invalid and was ignored: {reason}"))),
                };
                self.warnings.extend(problem.map(|problem| place + &problem));
                if is_taken {
                    self.sources.insert(name, source);
                    break;
                }
            }
        }
    }

    /// Takes a value if it can be used, and tells what is wrong with it.
    fn take(&mut self, kind: Kind, value: &str) -> (bool, Option<String>) {
        match kind.take(self, value) {
            Taken::Yes => (true, None),
            Taken::AsZero => {
                (true, Some(format!(" is `{value}`, which is less than zero and was taken for 0")))
            }
            Taken::No => {
                let expected = kind.expected();
                (false, Some(format!(" is `{value}`, which is invalid and was ignored: expected {expected}")))
            }
        }
    }

    fn merge_tables(&mut self, table: &SpannedTable<'_>, place: &dyn Fn(usize) -> String) {
        let (names, sinks) = (table.get(SECRETS).cloned(), table.get(SINKS).cloned());
        let mut warn = |what: &str, at: usize, reason: &str| {
            let place = place(at);
            self.warnings.push(format!("{what} in {place} is invalid and was ignored: {reason}"));
        };
        if let Some(names) = names {
            let at = names.at();
            match names.read() {
                Ok(names) => self.secrets = names,
                Err(problem) => warn("`secrets`", problem.at.unwrap_or(at), "expected a list of names"),
            }
        }
        let sinks = match sinks.map(SpannedValue::table) {
            Some(Ok(sinks)) => sinks,
            Some(Err(problem)) => {
                warn("`sink`", problem.at.unwrap_or_default(), &problem.message);
                SpannedTable::default()
            }
            None => SpannedTable::default(),
        };
        for (name, at, sink) in sinks.entries() {
            let table = sink.table();
            // What signs a webhook is nothing that a job needs to know, even if the rest of the sink is invalid.
            let secret = table.as_ref().ok().and_then(|table| table.get("secret_env")).cloned();
            self.secrets.extend(secret.and_then(|secret| secret.read().ok()));
            match table.and_then(SinkSettings::parse) {
                Ok(settings) => drop(self.sinks.insert(name, settings)),
                Err(problem) => {
                    warn(&format!("[sink.{name}]"), problem.at.unwrap_or(at), &problem.message);
                }
            }
        }
        self.note_secrets();
    }

    fn note_secrets(&mut self) {
        let mut seen = HashSet::new();
        self.secrets.retain(|name| seen.insert(name.clone()));
        if !self.secrets.is_empty() {
            self.sources.insert(SECRETS, SettingSource::File);
        }
    }
}

/// The variable that sets it.
fn variable(name: &str) -> String {
    format!("HEARBACK_{}", name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(file: &str, env: &[(&str, &str)]) -> Settings {
        Settings::merge(Path::new("config.toml"), file, |name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// The value of a setting and where it comes from.
    fn shown(settings: &Settings, name: &str) -> String {
        let all = settings.effective();
        let setting = all.iter().find(|setting| setting.name == name).unwrap();
        format!("{} from {}", setting.value.as_deref().unwrap_or("none"), setting.origin())
    }

    #[test]
    fn what_signs_a_webhook_is_a_secret_whatever_else_is_wrong_with_it() {
        let good = "[sink.a]\nurl = 'https://example.org/'\nsecret_env = 'HOOK'\n";
        let bad = "[sink.b]\nurl = 'nonsense'\nsecret_env = 'OTHER'\n";
        let settings = merge(&format!("secrets = ['HOOK']\n{good}{bad}"), &[]);
        assert_eq!(settings.secrets, ["HOOK", "OTHER"]);
        assert!(!settings.sinks.contains_key("b"));
    }

    #[test]
    fn the_budget_of_a_notice_is_a_size_within_reason() {
        let notice = |file: &str, env: &[(&str, &str)]| merge(file, env).notice;
        let bytes = |bytes| NoticeBytes::new(bytes).unwrap();
        assert_eq!(notice("notice_bytes = 2000", &[]), bytes(2000));
        assert_eq!(notice("notice_bytes = \"16KiB\"", &[]), bytes(16 * 1024));
        assert_eq!(notice("notice_bytes = 2000", &[("HEARBACK_NOTICE_BYTES", "0")]), bytes(0));
        let absurd = merge("notice_bytes = \"2MiB\"", &[("HEARBACK_NOTICE_BYTES", "some")]);
        assert_eq!((absurd.notice, absurd.warnings.len()), (NoticeBytes::default(), 2));
    }

    #[test]
    fn scenario_89_environment_beats_file_beats_default_and_a_bad_value_is_named() {
        assert_eq!(merge("", &[]), Settings::default());
        for (name, default, file, env) in [
            ("busy", "queue", "interrupt", "queue"),
            ("drain_timeout", "1m", "5s", "2m"),
            ("resume_window", "1h", "2h", "3h"),
            ("retention", "30days", "7days", "8days"),
            ("max_jobs", "10000", "5", "9"),
            ("durability", "power", "process", "power"),
            ("notice_sink", "none", "here", "there"),
        ] {
            let (text, variable) = (format!("{name} = \"{file}\""), variable(name));
            assert_eq!(shown(&merge("", &[]), name), format!("{default} from default"));
            assert_eq!(shown(&merge(&text, &[]), name), format!("{file} from file"));
            let both = merge(&text, &[(&variable, env)]);
            assert_eq!(shown(&both, name), format!("{env} from environment {variable}"));
            assert_eq!(both.warnings, Vec::<String>::new());
        }
        let bad =
            [("busy", "wait"), ("drain_timeout", "soon"), ("max_jobs", "-1"), ("durability", "unknown")];
        for (name, bad) in bad {
            let variable = variable(name);
            let settings = merge("", &[(&variable, bad)]);
            assert_eq!(shown(&settings, name), shown(&Settings::default(), name), "bad falls back");
            let [warning] = &settings.warnings[..] else { panic!("{:?}", settings.warnings) };
            assert!(warning.contains(&variable) && warning.contains(bad), "{warning}");
        }
        let second = merge("drain_timeout = '5s'", &[("HEARBACK_DRAIN_TIMEOUT", "soon")]);
        assert_eq!(shown(&second, "drain_timeout"), "5s from file", "to what would hold without it");
    }

    #[test]
    fn scenario_89_zero_has_its_meaning_and_less_is_taken_for_it() {
        for (zero, is_clamped) in [("0", false), ("0s", false), ("-5s", true), ("-1", true)] {
            for (name, kind) in VALUES {
                let (Kind::Wait(field) | Kind::Age(field)) = kind else { continue };
                let mut settings = merge(&format!("{name} = '{zero}'"), &[]);
                let unlimited = matches!(kind, Kind::Age(_));
                let meaning = if unlimited { Duration::MAX } else { Duration::ZERO };
                assert_eq!(*field(&mut settings), meaning, "{name} = {zero}");
                assert_eq!(shown(&settings, name), "0s from file");
                assert_eq!(settings.warnings.len(), usize::from(is_clamped), "{:?}", settings.warnings);
                assert!(settings.warnings.iter().all(|warning| warning.contains(name)));
            }
        }
        assert_eq!(
            shown(&merge("drain_timeout = -1", &[]), "drain_timeout"),
            "0s from file",
            "a bare number"
        );
        assert_eq!(merge("drain_timeout = 60", &[]).warnings.len(), 1, "of what?");
    }

    #[test]
    fn what_is_wrong_in_the_file_is_named_with_its_place_and_the_rest_holds() {
        let file = "busy = 'interrupt'\nmax_job = 5\nretention = 'soon'\nattempts = [1]\nsecrets = ['A', 4]\n\
                    max_depth = 3\n\n[sink.a]\nfile = '/x'\ntimout = '5s'\n\n[sink.b]\nfile = '/y'\n\n[sink.c]\n";
        let settings = merge(file, &[]);
        assert_eq!(
            settings.warnings,
            [
                "`max_job` in config.toml:2:1 is no setting and was ignored; did you mean `max_jobs`?",
                "`secrets` in config.toml:5:17 is invalid and was ignored: expected a list of names",
                "[sink.a] in config.toml:10:1 is invalid and was ignored: `timout` is no key of a sink; did you mean \
                 `timeout`?",
                "[sink.c] in config.toml:15:7 is invalid and was ignored: it needs one of `command`, `preset`, `url` \
                 and `file`",
                "retention in config.toml:3:13 is `soon`, which is invalid and was ignored: expected a time such as \
                 `90s` or `30days`",
                "attempts in config.toml:4:12 is invalid and was ignored: expected text or a number",
            ]
        );
        assert_eq!((settings.busy, settings.max_depth), (Busy::Interrupt, 3));
        assert_eq!(settings.sinks.keys().collect::<Vec<_>>(), ["b"]);
        let broken = merge("busy = 'interrupt'\nmax_depth = = 3\n", &[]);
        let [warning] = &broken.warnings[..] else { panic!("{:?}", broken.warnings) };
        assert!(
            warning.starts_with("config.toml:2:13 is not valid TOML, so the file was ignored:"),
            "{warning}"
        );
        assert_eq!(
            merge("sink = 5", &[]).warnings,
            ["`sink` in config.toml:1:8 is invalid and was ignored: expected a table"]
        );
    }

    #[test]
    fn what_is_no_setting_is_named() {
        assert!(merge("max_job = 5", &[]).warnings[0].contains("max_job"));
        assert!(merge("not toml at all [", &[]).warnings[0].contains("config.toml"));
        assert!(merge("attempts = 0", &[]).warnings[0].contains("attempts"), "none would tell nobody");
    }

    #[test]
    fn settings_can_be_made_in_code() {
        let settings = Settings { max_depth: 2, ..Settings::default() };
        assert_eq!(shown(&settings, "max_depth"), "2 from code");
        assert_eq!(shown(&settings, "max_rate"), "60 from default");
    }

    #[test]
    fn of_secrets_the_names_are_shown() {
        let settings = merge("secrets = ['A', 'B']", &[]);
        assert_eq!(shown(&settings, "secrets"), "A, B from file");
        assert_eq!(shown(&Settings::default(), "secrets"), "none from default");
    }
}
