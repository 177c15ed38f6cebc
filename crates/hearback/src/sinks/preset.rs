//! Presets, which need no configuration: the agents that hearback knows, and the desktop.

use hearback_core::agents::{self, AGENTS, Agent};
use serde::Deserialize;

use super::agent::AgentSink;
use super::command::{CommandSink, Input};
use super::kind::{Route, TableKind};
use super::settings::SinkSettings;
use crate::settings_file::{Problem, SpannedTable};

const DESKTOP: &str = "desktop";
/// The first of these that is installed shows a notice to the person at the screen.
const DESKTOP_COMMANDS: [&[&str]; 3] = [
    &["notify-send", "--app-name=hearback", "--", "{title} ({ran})", "{name}"],
    &[
        "osascript",
        "-e",
        "on run {title, command}",
        "-e",
        "display notification command with title title",
        "-e",
        "end run",
        "{title} ({ran})",
        "{name}",
    ],
    &["msg", "*", "/TIME:30", "hearback: {title} ({ran}): {name}"],
];

/// The names of all presets.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().filter(|agent| !agent.doors.is_empty()).map(|agent| agent.name).chain([DESKTOP])
}

pub(super) fn find(name: &str) -> Option<SinkSettings> {
    if name == DESKTOP {
        return Some(SinkSettings::new(CommandSink {
            alternatives: DESKTOP_COMMANDS.map(owned).into(),
            input: Input::Nothing,
        }));
    }
    agents::agent(name).filter(|agent| !agent.doors.is_empty()).map(wake)
}

/// Wakes an agent in its session.
fn wake(agent: &'static Agent) -> SinkSettings {
    SinkSettings::turn(AgentSink { agent })
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `preset = "…"` in the settings file.
pub(super) const TABLE: TableKind = TableKind { key: "preset", keys: &["preset", "stdin"], parse };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    preset: String,
    stdin: Option<Input>,
}

fn parse(table: SpannedTable<'_>) -> Result<SinkSettings, Problem> {
    let Table { preset, stdin } = table.read()?;
    let mut settings = find(&preset).ok_or_else(|| format!("there is no preset `{preset}`"))?;
    match (&mut settings.route, stdin) {
        (Route::Command(command), Some(stdin)) => command.input = stdin,
        (_, Some(_)) => return Err("what an agent reads is not a setting".into()),
        (_, None) => {}
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_and_agents_are_given_the_text_of_a_turn() {
        for name in names() {
            let settings = find(name).unwrap();
            assert_eq!(settings.turn, name != DESKTOP, "{name}");
            assert_eq!(matches!(settings.route, Route::Agent(_)), name != DESKTOP, "{name}");
        }
    }
}
