//! Settings: environment over file over default. A bad value is named and passed over.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use hearback_core::{Busy, Durability, NoticeBytes};
use hearback_monitor::follow_up::Retry;
use hearback_monitor::prune::Retention;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::mask::Secrets;
use crate::sinks::{SinkSettings, route};

/// What can be set.
///
/// Zero has one meaning for every time: a time to wait is not waited, and an age that is not to be exceeded is
/// unlimited, which these fields say as [`Duration::MAX`]. Less than zero is taken for zero, with a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Every setting that is one value, in the order in which they are shown.
const VALUES: [(&str, Kind); 16] = [
    ("durability", Kind::Durability),
    ("retention", Kind::Age(|settings| &mut settings.retention.max_age)),
    ("max_jobs", Kind::Count(|settings| &mut settings.retention.max_jobs)),
    ("default_sink", Kind::Name(|settings| &mut settings.default_sink)),
    ("attempts", Kind::Few { least: 1, field: |settings| &mut settings.retry.attempts_max }),
    ("retry_first", Kind::Wait(|settings| &mut settings.retry.first)),
    ("retry_most", Kind::Wait(|settings| &mut settings.retry.most)),
    ("late_after", Kind::Age(|settings| &mut settings.retry.late_after)),
    ("expire_after", Kind::Age(|settings| &mut settings.retry.expire_after)),
    ("notice_bytes", Kind::NoticeBytes),
    ("max_depth", Kind::Few { least: 0, field: |settings| &mut settings.max_depth }),
    ("max_rate", Kind::Count(|settings| &mut settings.max_rate)),
    ("busy", Kind::Busy),
    ("drain_timeout", Kind::Wait(|settings| &mut settings.drain_timeout)),
    ("resume_window", Kind::Age(|settings| &mut settings.resume_window)),
    ("notice_sink", Kind::Name(|settings| &mut settings.notice_sink)),
];
/// The two that are more than that, and have no variable.
const SINKS: &str = "sink";
const SECRETS: &str = "secrets";

/// A place in the settings.
type Field<T> = fn(&mut Settings) -> &mut T;

/// What a setting holds, and where it is kept.
#[derive(Clone, Copy)]
enum Kind {
    Durability,
    Busy,
    NoticeBytes,
    Count(Field<usize>),
    Few {
        least: u32,
        field: Field<u32>,
    },
    /// A name; an empty one is none.
    Name(Field<Option<String>>),
    /// A time to wait. Zero: not at all.
    Wait(Field<Duration>),
    /// An age that is not to be exceeded. Zero: there is no such limit.
    Age(Field<Duration>),
}

/// What became of a value.
enum Taken {
    Yes,
    /// It was less than zero.
    AsZero,
    No,
}

impl Kind {
    fn take(self, settings: &mut Settings, text: &str) -> Taken {
        fn put<T>(place: &mut T, value: Option<T>) -> Taken {
            match value {
                None => Taken::No,
                Some(value) => {
                    *place = value;
                    Taken::Yes
                }
            }
        }
        match self {
            Self::Durability => put(&mut settings.durability, from_word(text)),
            Self::Busy => put(&mut settings.busy, from_word(text)),
            Self::NoticeBytes => put(&mut settings.notice, parse_size(text).ok().and_then(NoticeBytes::new)),
            Self::Count(field) => put(field(settings), text.parse().ok()),
            Self::Few { least, field } => {
                put(field(settings), text.parse().ok().filter(|number| *number >= least))
            }
            Self::Name(field) => {
                put(field(settings), Some(Some(text.to_owned()).filter(|name| !name.is_empty())))
            }
            Self::Wait(field) | Self::Age(field) => {
                let zero = if matches!(self, Self::Age(_)) { Duration::MAX } else { Duration::ZERO };
                let time = parse_time(text);
                let taken = put(field(settings), time.map(|time| if time.is_zero() { zero } else { time }));
                if text.trim_start().starts_with('-') && time.is_some() { Taken::AsZero } else { taken }
            }
        }
    }

    fn show(self, settings: &mut Settings) -> Option<String> {
        let time = |time: &Duration| {
            let time = if *time == Duration::MAX { Duration::ZERO } else { *time };
            Some(humantime::format_duration(time).to_string())
        };
        match self {
            Self::Durability => to_word(settings.durability),
            Self::Busy => to_word(settings.busy),
            Self::NoticeBytes => Some(settings.notice.bytes().to_string()),
            Self::Count(field) => Some(field(settings).to_string()),
            Self::Few { field, .. } => Some(field(settings).to_string()),
            Self::Name(field) => field(settings).clone(),
            Self::Wait(field) | Self::Age(field) => time(field(settings)),
        }
    }
}

impl Settings {
    /// The secrets that this process holds.
    pub(crate) fn secrets_here(&self) -> Secrets {
        Secrets::new(self.secrets.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))))
    }

    /// Every setting with its value, and where that comes from; of secrets the names, and no sinks.
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        let mut copy = self.clone();
        let show = |name: &'static str, value, variable| EffectiveSetting {
            name: name.to_owned(),
            value,
            source: self.sources.get(name).copied().unwrap_or(SettingSource::Default),
            variable,
        };
        let mut all: Vec<_> = VALUES
            .iter()
            .map(|(name, kind)| show(name, kind.show(&mut copy), Some(variable(name))))
            .collect();
        let secrets = Some(self.secrets.join(", ")).filter(|names| !names.is_empty());
        all.push(show(SECRETS, secrets, None));
        all
    }

    /// Merges the text of the settings file with the environment.
    pub(crate) fn merge(path: &Path, file: &str, env: impl Fn(&str) -> Option<String>) -> Self {
        let mut settings = Self::default();
        let table = file.parse::<toml::Table>().unwrap_or_else(|error| {
            let reason = error.message();
            settings
                .warnings
                .push(format!("`{}` is not valid TOML and was ignored: {reason}", path.display()));
            toml::Table::new()
        });
        let is_known =
            |name: &str| [SINKS, SECRETS].contains(&name) || VALUES.iter().any(|(known, _)| *known == name);
        for name in table.keys().filter(|name| !is_known(name)) {
            settings.warnings.push(format!("{name} in {} is no setting, and was ignored", path.display()));
        }
        settings.merge_tables(&table);
        for (name, kind) in VALUES {
            let variable = variable(name);
            let from_env = env(&variable).map(|value| (variable, value, SettingSource::Environment));
            let from_file = table.get(name).map(|value| {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Integer(number) => number.to_string(),
                    toml::Value::Float(number) => number.to_string(),
                    other => other.type_str().to_owned(),
                };
                (format!("{name} in {}", path.display()), text, SettingSource::File)
            });
            for (place, value, source) in [from_env, from_file].into_iter().flatten() {
                let (taken, problem) = match kind.take(&mut settings, &value) {
                    Taken::Yes => (true, None),
                    Taken::AsZero => (true, Some("is less than zero, and was taken for 0")),
                    Taken::No => (false, Some("makes no sense here, and was ignored")),
                };
                settings.warnings.extend(problem.map(|why| format!("{place} is `{value}`, which {why}")));
                if taken {
                    settings.sources.insert(name, source);
                    break;
                }
            }
        }
        settings
    }

    fn merge_tables(&mut self, table: &toml::Table) {
        if let Some(sinks) = table.get(SINKS) {
            match sinks.as_table() {
                Some(sinks) => self.sinks = route::parse_all(sinks, |warning| self.warnings.push(warning)),
                None => self.warnings.push("`sink` is no table, and was ignored".into()),
            }
        }
        if let Some(secrets) = table.get(SECRETS) {
            let names = secrets.as_array().and_then(|names| names.iter().map(|name| name.as_str()).collect());
            match names.map(|names: Vec<&str>| names.into_iter().map(str::to_owned).collect()) {
                Some(names) => self.secrets = names,
                None => self.warnings.push("`secrets` is no list of names, and was ignored".into()),
            }
        }
        // What signs a webhook is nothing that a job needs to know, even if the rest of the sink makes no sense.
        let tables = table.get(SINKS).and_then(toml::Value::as_table).into_iter().flatten();
        for secret_env in tables.filter_map(|(_, sink)| sink.get("secret_env")?.as_str()) {
            if !self.secrets.iter().any(|name| name == secret_env) {
                self.secrets.push(secret_env.to_owned());
            }
        }
        if !self.secrets.is_empty() {
            self.sources.insert(SECRETS, SettingSource::File);
        }
    }
}

/// The variable that sets it.
fn variable(name: &str) -> String {
    format!("HEARBACK_{}", name.to_uppercase())
}

/// A choice by the word for it, which is that of its JSON.
fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

fn to_word(choice: impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}

/// A time such as `90s`; zero for anything less. A number without a unit is none, unless it is zero or less.
fn parse_time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let Some(less) = text.strip_prefix('-') else { return humantime::parse_duration(text).ok() };
    let is_number = less.parse::<f64>().is_ok() || humantime::parse_duration(less).is_ok();
    is_number.then_some(Duration::ZERO)
}

/// Reads a number of bytes, with a unit or without.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let unit: Option<u64> = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kb" => Some(1000),
        "k" | "kib" => Some(1 << 10),
        "mb" => Some(1000 * 1000),
        "m" | "mib" => Some(1 << 20),
        "gb" => Some(1000 * 1000 * 1000),
        "g" | "gib" => Some(1 << 30),
        _ => None,
    };
    let size = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    size.ok_or_else(|| "give a size such as `16000`, `500KiB` or `8MiB`".into())
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
        for (name, bad) in [("busy", "wait"), ("drain_timeout", "soon"), ("max_jobs", "-1")] {
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
    fn what_is_no_setting_is_named() {
        assert!(merge("max_job = 5", &[]).warnings[0].contains("max_job"));
        assert!(merge("not toml at all [", &[]).warnings[0].contains("config.toml"));
        assert!(merge("attempts = 0", &[]).warnings[0].contains("attempts"), "none would tell nobody");
    }

    #[test]
    fn of_secrets_the_names_are_shown() {
        let settings = merge("secrets = ['A', 'B']", &[]);
        assert_eq!(shown(&settings, "secrets"), "A, B from file");
        assert_eq!(shown(&Settings::default(), "secrets"), "none from default");
    }
}
