//! Settings: environment over file over default. A bad value is named and passed over.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hearback_core::{Durability, NoticeBytes};
use hearback_monitor::follow_up::Retry;
use hearback_monitor::prune::Retention;

use crate::mask::Secrets;
use crate::sinks::{SinkSettings, route};

/// What can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What has to survive a power cut (`durability`, `HEARBACK_DURABILITY`): `power` or `process`.
    pub durability: Durability,
    /// How long settled jobs are kept (`retention`, `HEARBACK_RETENTION`: a duration such as `30d`), and how many
    /// (`max_jobs`, `HEARBACK_MAX_JOBS`).
    pub retention: Retention,
    /// Where follow-ups of a session's jobs go unless a launch says otherwise (`default_sink`).
    pub default_sink: Option<String>,
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
}

const DEFAULT_MAX_DEPTH: u32 = 8;
const DEFAULT_MAX_RATE: usize = 60;

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            retention: Retention::default(),
            default_sink: None,
            sinks: BTreeMap::new(),
            retry: Retry::default(),
            notice: NoticeBytes::default(),
            max_depth: DEFAULT_MAX_DEPTH,
            max_rate: DEFAULT_MAX_RATE,
            secrets: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Settings {
    /// The secrets that this process holds.
    pub(crate) fn secrets_here(&self) -> Secrets {
        Secrets::new(self.secrets.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))))
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
        const KNOWN: [&str; 14] = [
            "durability",
            "retention",
            "max_jobs",
            "default_sink",
            "sink",
            "attempts",
            "retry_first",
            "retry_most",
            "late_after",
            "expire_after",
            "notice_bytes",
            "max_depth",
            "max_rate",
            "secrets",
        ];
        for name in table.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
            settings.warnings.push(format!("{name} in {} is no setting, and was ignored", path.display()));
        }
        if let Some(sinks) = table.get("sink") {
            match sinks.as_table() {
                Some(sinks) => {
                    let Self { sinks: parsed, warnings, .. } = &mut settings;
                    *parsed = route::parse_all(sinks, |warning| warnings.push(warning));
                }
                None => settings.warnings.push("`sink` is no table, and was ignored".into()),
            }
        }
        if let Some(secrets) = table.get("secrets") {
            let names = secrets.as_array().and_then(|names| names.iter().map(|name| name.as_str()).collect());
            match names.map(|names: Vec<&str>| names.into_iter().map(str::to_owned).collect()) {
                Some(names) => settings.secrets = names,
                None => settings.warnings.push("`secrets` is no list of names, and was ignored".into()),
            }
        }
        // What signs a webhook is nothing that a job needs to know, even if the rest of the sink makes no sense.
        let tables = table.get("sink").and_then(toml::Value::as_table).into_iter().flatten();
        for secret_env in tables.filter_map(|(_, sink)| sink.get("secret_env")?.as_str()) {
            if !settings.secrets.iter().any(|name| name == secret_env) {
                settings.secrets.push(secret_env.to_owned());
            }
        }
        let mut pick = |name: &str, set: &mut dyn FnMut(&mut Self, &str) -> bool| {
            let variable = format!("HEARBACK_{}", name.to_uppercase());
            let from_env = env(&variable).map(|value| (variable, value));
            let from_file = table.get(name).map(|value| {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Integer(number) => number.to_string(),
                    other => other.type_str().to_owned(),
                };
                (format!("{name} in {}", path.display()), text)
            });
            for (place, value) in [from_env, from_file].into_iter().flatten() {
                if set(&mut settings, &value) {
                    break;
                }
                settings
                    .warnings
                    .push(format!("{place} is `{value}`, which makes no sense here, and was ignored"));
            }
        };
        pick("durability", &mut |settings, value| {
            let known = match value {
                "power" => Some(Durability::Power),
                "process" => Some(Durability::Process),
                _ => None,
            };
            known.map(|durability| settings.durability = durability).is_some()
        });
        pick("retention", &mut |settings, value| {
            let parsed = parse_duration(value);
            parsed.map(|age| settings.retention.max_age = age).is_some()
        });
        pick("max_jobs", &mut |settings, value| {
            value.parse().map(|most| settings.retention.max_jobs = most).is_ok()
        });
        pick("default_sink", &mut |settings, value| {
            settings.default_sink = Some(value.to_owned()).filter(|name| !name.is_empty());
            true
        });
        pick("attempts", &mut |settings, value| {
            let parsed = value.parse().ok().filter(|attempts| *attempts > 0);
            parsed.map(|attempts| settings.retry.attempts_max = attempts).is_some()
        });
        pick("notice_bytes", &mut |settings, value| {
            let parsed = parse_size(value).ok().and_then(NoticeBytes::new);
            parsed.map(|notice| settings.notice = notice).is_some()
        });
        pick("max_depth", &mut |settings, value| {
            value.parse().map(|depth| settings.max_depth = depth).is_ok()
        });
        pick("max_rate", &mut |settings, value| value.parse().map(|rate| settings.max_rate = rate).is_ok());
        type Place = fn(&mut Retry) -> &mut Duration;
        let times: [(&str, Place); 4] = [
            ("retry_first", |retry| &mut retry.first),
            ("retry_most", |retry| &mut retry.most),
            ("late_after", |retry| &mut retry.late_after),
            ("expire_after", |retry| &mut retry.expire_after),
        ];
        for (name, place) in times {
            pick(name, &mut |settings, value| {
                parse_duration(value).map(|time| *place(&mut settings.retry) = time).is_some()
            });
        }
        settings
    }
}

/// Reads a number of bytes, with a unit or without.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
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

fn parse_duration(value: &str) -> Option<Duration> {
    humantime::parse_duration(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(file: &str, env: &[(&str, &str)]) -> Settings {
        Settings::merge(Path::new("config.toml"), file, |name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn environment_beats_file_beats_default() {
        assert_eq!(merge("", &[]), Settings::default());
        let file = "retention = \"7d\"\nmax_jobs = 5\ndurability = \"process\"\n";
        let settings = merge(file, &[("HEARBACK_MAX_JOBS", "9")]);
        assert_eq!(settings.retention.max_age, Duration::from_secs(7 * 24 * 3600));
        assert_eq!(settings.retention.max_jobs, 9);
        assert_eq!(settings.durability, Durability::Process);
        assert!(settings.warnings.is_empty());
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
    fn a_bad_value_is_named_and_falls_back() {
        let settings = merge("max_jobs = 5", &[("HEARBACK_MAX_JOBS", "many"), ("HEARBACK_RETENTION", "-1")]);
        assert_eq!(settings.retention.max_jobs, 5);
        assert_eq!(settings.retention.max_age, Retention::default().max_age);
        assert_eq!(settings.warnings.len(), 2);
        assert!(settings.warnings.iter().any(|warning| warning.contains("HEARBACK_MAX_JOBS")));
        assert!(merge("max_job = 5", &[]).warnings[0].contains("max_job"));
        assert!(merge("not toml at all [", &[]).warnings[0].contains("config.toml"));
    }
}
