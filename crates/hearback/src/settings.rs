//! Settings: environment over file over default. Invalid values are reported and ignored.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use hearback_core::port::sink::HOST_SINK;
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
/// Zero has one meaning for each kind of time: a pause of zero is no pause, and a largest age of zero is no limit,
/// which these fields store as [`Duration::MAX`]. A negative value counts as zero, with a warning.
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
    /// How long a job may run unless its launch says otherwise (`timeout`): `auto`, `none` or a duration.
    pub timeout: DefaultTimeout,
    /// Where follow-ups of a session's jobs go unless a launch says otherwise (`default_sink`).
    pub default_sink: Option<String>,
    /// The sink for notices about restarts and stops (`notice_sink`).
    pub notice_sink: Option<String>,
    /// What to do with a message to a session that is in a turn (`busy`): `queue` or `interrupt`.
    pub busy: Busy,
    /// How long a drain waits for turns to end (`drain_timeout`); zero does not wait at all.
    pub drain_timeout: Duration,
    /// How long after it was interrupted a session is continued (`resume_window`).
    pub resume_window: Duration,
    /// The sinks of the settings file (`[sink.NAME]`).
    pub sinks: BTreeMap<String, SinkSettings>,
    /// The `[sink.NAME]` of the file that are invalid, each with its place and what is wrong there.
    pub(crate) invalid_sinks: Vec<(String, String)>,
    /// How often a delivery is tried (`attempts`), with which pauses (`retry_first`, `retry_most`), when it counts as
    /// late (`late_after`) and when it expires (`expire_after`).
    pub retry: Retry,
    /// The most of a job's output that its follow-up holds (`notice_bytes`: a size such as `8KiB`).
    pub notice: NoticeBytes,
    /// How many follow-ups may lead from one launch to the next (`max_depth`).
    pub max_depth: u32,
    /// How many jobs a session may launch in an hour from follow-ups (`max_rate`).
    pub max_rate: usize,
    /// Variables that hold secrets (`secrets`, a list of names, and the `secret_env` of each webhook): no job inherits
    /// them, and their values are masked in everything that is shown or sent.
    pub secrets: Vec<String>,
    /// Whether text that looks like a credential is masked in everything that is stored, shown or sent
    /// (`mask_credentials`), except in the log of a job.
    pub mask_credentials: bool,
    /// Invalid values that were ignored, each with its reason.
    pub warnings: Vec<String>,
    /// Where each value comes from that is not the default.
    sources: BTreeMap<&'static str, SettingSource>,
}

/// How long a job may run unless its launch says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefaultTimeout {
    /// A job that an agent launched has [`DEFAULT_TIMEOUT`]: the agent may have forgotten it. A job of a person has
    /// none.
    #[default]
    Auto,
    /// No limit.
    None,
    /// The same limit for all.
    After(Duration),
}

/// How long a job of a session, or one that is launched through MCP, may run, unless the settings or its launch say
/// otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl DefaultTimeout {
    /// The limit of a job, which an agent or a person has launched; none if it may run as long as it takes.
    pub(crate) fn of(self, is_of_agent: bool) -> Option<Duration> {
        match self {
            Self::Auto => is_of_agent.then_some(DEFAULT_TIMEOUT),
            Self::None => None,
            Self::After(limit) => Some(limit),
        }
    }
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
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
#[non_exhaustive]
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
            timeout: DefaultTimeout::default(),
            default_sink: None,
            notice_sink: None,
            busy: Busy::default(),
            drain_timeout: DEFAULT_DRAIN_TIMEOUT,
            resume_window: DEFAULT_RESUME_WINDOW,
            sinks: BTreeMap::new(),
            invalid_sinks: Vec::new(),
            retry: Retry::default(),
            notice: NoticeBytes::default(),
            max_depth: DEFAULT_MAX_DEPTH,
            max_rate: DEFAULT_MAX_RATE,
            secrets: Vec::new(),
            mask_credentials: true,
            warnings: Vec::new(),
            sources: BTreeMap::new(),
        }
    }
}

/// The two settings that are more than one value, and have no variable.
const SINKS: &str = "sink";
const SECRETS: &str = "secrets";

impl Settings {
    /// The secrets in the environment of this process.
    pub(crate) fn secrets_here(&self) -> Secrets {
        self.secrets_with(|name| std::env::var(name).ok())
    }

    /// The secrets whose values are known from elsewhere.
    pub(crate) fn secrets_with(&self, value: impl Fn(&str) -> Option<String>) -> Secrets {
        let named = self.secrets.iter().filter_map(|name| Some((name.clone(), value(name)?)));
        Secrets::new(named).with_credentials(self.mask_credentials)
    }

    /// Every setting with its value and its source. Of secrets it holds the names; sinks are left out.
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        let (mut copy, mut defaults) = (self.clone(), Self::default());
        let show = |name: &'static str, value, default: Option<String>, variable| {
            let unset = if value == default { SettingSource::Default } else { SettingSource::Code };
            let source = self.sources.get(name).copied().unwrap_or(unset);
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

    /// Environment over file. Invalid values are reported and ignored.
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

    /// Takes a value if it is valid; returns whether it did, and what is wrong.
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
            // No job needs the secret of a webhook, even if the rest of the sink is invalid.
            let secret = table.as_ref().ok().and_then(|table| table.get("secret_env")).cloned();
            self.secrets.extend(secret.and_then(|secret| secret.read().ok()));
            match table.and_then(SinkSettings::parse) {
                Ok(_) if name == HOST_SINK => {
                    let why = "`host` is the program that attends a session, so this sink needs another name";
                    warn(&format!("[sink.{name}]"), at, why);
                }
                Ok(settings) => drop(self.sinks.insert(name, settings)),
                Err(problem) => {
                    let at = problem.at.unwrap_or(at);
                    warn(&format!("[sink.{name}]"), at, &problem.message);
                    self.invalid_sinks.push((name, format!("{}: {}", place(at), problem.message)));
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
mod tests;
