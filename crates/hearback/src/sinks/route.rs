//! What the settings say about a sink.

use std::path::PathBuf;
use std::time::Duration;

/// What a sink does, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkSettings {
    /// Where a delivery goes.
    pub route: Route,
    /// What the program reads.
    pub input: Input,
    /// Whether it starts a turn of the session, of which there is one at a time.
    pub turn: bool,
    /// How long it may take.
    pub timeout: Duration,
}

/// Where a delivery goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// A program with its arguments; the first of these that is installed. `{session}`, `{text}`, `{delivery}`,
    /// `{job}`, `{title}` and `{command}` stand for what they say.
    Command(Vec<Vec<String>>),
    /// An address that takes events, which are signed.
    Webhook {
        /// The address.
        url: String,
        /// The variable that holds the secret.
        secret_env: String,
    },
    /// A file that grows by one line of JSON a delivery.
    File(PathBuf),
    /// A program that speaks the protocol of plugins.
    Plugin(PathBuf),
}

/// What a program reads on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The delivery in its envelope, as one line of JSON.
    Json,
    /// The same in words.
    Text,
    /// Nothing.
    Nothing,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// A turn of an agent takes its time.
const TURN_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl SinkSettings {
    /// A sink that reads JSON, starts no turn and has a minute.
    pub fn new(route: Route) -> Self {
        Self { route, input: Input::Json, turn: false, timeout: DEFAULT_TIMEOUT }
    }

    /// A sink that starts a turn, and has an hour for it.
    pub(crate) fn turn(route: Route, input: Input) -> Self {
        Self { route, input, turn: true, timeout: TURN_TIMEOUT }
    }

    /// Reads one `[sink.NAME]` of the settings file.
    pub(super) fn parse(table: &toml::Table) -> Result<Self, String> {
        const KNOWN: [&str; 8] =
            ["command", "preset", "url", "secret_env", "file", "stdin", "turn", "timeout"];
        if let Some(unknown) = table.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(format!("`{unknown}` is none of {}", KNOWN.join(", ")));
        }
        let text = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{key}` is text")),
        };
        let mut found = Vec::new();
        if let Some(command) = table.get("command") {
            let words = command.as_array().and_then(|words| {
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
            });
            let words = words.filter(|words| !words.is_empty());
            let words = words.ok_or("`command` is a list of a program and its arguments")?;
            found.push(Self::new(Route::Command(vec![words])));
        }
        if let Some(preset) = text("preset")? {
            let preset =
                super::preset::find(&preset).ok_or_else(|| format!("there is no preset `{preset}`"))?;
            found.push(preset);
        }
        if let Some(url) = text("url")? {
            found.push(Self::new(webhook(url, text("secret_env")?)?));
        }
        if let Some(file) = text("file")? {
            found.push(Self::new(Route::File(file.into())));
        }
        let (Some(mut settings), true) = (found.pop(), found.is_empty()) else {
            return Err("it needs one of `command`, `preset`, `url` and `file`".into());
        };
        let ours = matches!(settings.route, Route::Webhook { .. } | Route::File(_));
        match text("stdin")?.as_deref() {
            None => {}
            Some(_) if ours => return Err("`stdin` goes with `command` or `preset`".into()),
            Some("json") => settings.input = Input::Json,
            Some("text") => settings.input = Input::Text,
            Some("none") => settings.input = Input::Nothing,
            Some(_) => return Err("`stdin` is `json`, `text` or `none`".into()),
        }
        if let Some(turn) = table.get("turn") {
            settings.turn = turn.as_bool().ok_or("`turn` is true or false")?;
        }
        if let Some(timeout) = text("timeout")? {
            let parsed = humantime::parse_duration(&timeout).ok().filter(|timeout| !timeout.is_zero());
            settings.timeout = parsed.ok_or("`timeout` is a time such as `10m`")?;
        }
        Ok(settings)
    }
}

fn webhook(url: String, secret_env: Option<String>) -> Result<Route, String> {
    if cfg!(not(feature = "webhook")) {
        return Err("this build has no webhooks".into());
    }
    super::address::check(&url)?;
    let secret_env =
        secret_env.ok_or("`url` needs `secret_env`, the name of a variable that holds a secret")?;
    // Whoever wrote the secret itself into the file is not shown it again.
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if secret_env.is_empty() || !secret_env.chars().all(plain) || secret_env.starts_with("whsec_") {
        return Err("`secret_env` is the name of a variable, and not what that holds".into());
    }
    Ok(Route::Webhook { url, secret_env })
}

/// Reads every `[sink.NAME]`; those that make no sense are named with their reason.
pub(crate) fn parse_all(
    table: &toml::Table,
    mut warn: impl FnMut(String),
) -> std::collections::BTreeMap<String, SinkSettings> {
    let mut sinks = std::collections::BTreeMap::new();
    for (name, value) in table {
        let parsed =
            value.as_table().ok_or_else(|| "it is no table".to_owned()).and_then(SinkSettings::parse);
        match parsed {
            Ok(settings) => drop(sinks.insert(name.clone(), settings)),
            Err(reason) => warn(format!("[sink.{name}] makes no sense, and was ignored: {reason}")),
        }
    }
    sinks
}

#[cfg(test)]
#[cfg(feature = "webhook")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SinkSettings, String> {
        SinkSettings::parse(&text.parse().unwrap())
    }

    #[test]
    fn a_webhook_needs_an_address_that_is_safe_and_the_name_of_a_secret() {
        let good = parse("url = 'https://example.org/x'\nsecret_env = 'HOOK'").unwrap();
        let (url, secret_env) = ("https://example.org/x".to_owned(), "HOOK".to_owned());
        assert_eq!(good, SinkSettings::new(Route::Webhook { url, secret_env }));
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
