//! Settings: environment over file over default. A bad value is named and passed over.

use std::path::Path;
use std::time::Duration;

use hearback_core::Durability;
use hearback_monitor::prune::Retention;

/// What can be set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// What has to survive a power cut (`durability`, `HEARBACK_DURABILITY`): `power` or `process`.
    pub durability: Durability,
    /// How long settled jobs are kept (`retention`, `HEARBACK_RETENTION`: a duration such as `30d`), and how many
    /// (`max_jobs`, `HEARBACK_MAX_JOBS`).
    pub retention: Retention,
    /// Values that were passed over, each with its reason.
    pub warnings: Vec<String>,
}

impl Settings {
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
        const KNOWN: [&str; 3] = ["durability", "retention", "max_jobs"];
        for name in table.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
            settings.warnings.push(format!("{name} in {} is no setting, and was ignored", path.display()));
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
        settings
    }
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
