//! Agents that we know how to wake, as data. None of them is given a flag that lets it do more than its user allows.

use super::route::{Input, Route, SinkSettings};

/// How to wake one kind of agent, or person.
#[derive(Debug)]
pub(crate) struct Preset {
    /// By which it is chosen.
    pub(crate) name: &'static str,
    /// What to run: the first of these that is installed.
    commands: &'static [&'static [&'static str]],
    input: Input,
    /// Whether it wakes an agent in its session.
    turn: bool,
}

const fn agent(name: &'static str, commands: &'static [&'static [&'static str]], input: Input) -> Preset {
    Preset { name, commands, input, turn: true }
}

/// Each resumes the session that is named, and never the latest one: with two sessions in one directory that is the
/// wrong one. The prompt is read from standard input where the agent does so; arguments can be seen by others.
pub(crate) const PRESETS: [Preset; 11] = [
    agent("claude", &[&["claude", "-p", "--resume", "{session}", "--output-format", "json"]], Input::Text),
    agent("codex", &[&["codex", "exec", "resume", "--skip-git-repo-check", "{session}", "-"]], Input::Text),
    agent("gemini", &[&["gemini", "--resume", "{session}", "-p", "{text}"]], Input::Nothing),
    agent("qwen", &[&["qwen", "--resume", "{session}", "{text}"]], Input::Nothing),
    agent("opencode", &[&["opencode", "run", "--session", "{session}", "{text}"]], Input::Nothing),
    agent("copilot", &[&["copilot", "--resume={session}", "--no-ask-user", "-p", "{text}"]], Input::Nothing),
    agent("cline", &[&["cline", "--id", "{session}", "--auto-approve", "false", "{text}"]], Input::Nothing),
    agent("goose", &[&["goose", "run", "--resume", "--session-id", "{session}", "-i", "-"]], Input::Text),
    agent("cursor", &[&["cursor-agent", "-p", "--resume", "{session}", "{text}"]], Input::Nothing),
    agent(
        "hermes",
        &[&["hermes", "--resume", "{session}", "chat", "--oneshot", "-q", "{text}"]],
        Input::Nothing,
    ),
    Preset {
        name: "desktop",
        commands: &[
            &["notify-send", "--app-name=hearback", "--", "{title}", "{command}"],
            &[
                "osascript",
                "-e",
                "on run {title, command}",
                "-e",
                "display notification command with title title",
                "-e",
                "end run",
                "{title}",
                "{command}",
            ],
            &["msg", "*", "/TIME:30", "hearback: {title}"],
        ],
        input: Input::Nothing,
        turn: false,
    },
];

pub(super) fn find(name: &str) -> Option<SinkSettings> {
    let preset = PRESETS.iter().find(|preset| preset.name == name)?;
    let words = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let route = Route::Command(preset.commands.iter().map(words).collect());
    Some(match preset.turn {
        true => SinkSettings::turn(route, preset.input),
        false => SinkSettings { input: preset.input, ..SinkSettings::new(route) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_resumes_the_session_that_is_named_and_asks_for_no_more_rights() {
        for preset in PRESETS.iter().filter(|preset| preset.turn) {
            let words: Vec<_> = preset.commands.iter().copied().flatten().copied().collect();
            assert!(words.iter().any(|word| word.contains("{session}")), "{}", preset.name);
            let told = preset.input == Input::Text || words.iter().any(|word| word.contains("{text}"));
            assert!(told, "{}", preset.name);
            for word in words {
                let asks =
                    ["yolo", "dangerous", "skip-permissions", "bypass", "full-auto", "--continue", "--last"];
                assert!(!asks.iter().any(|ask| word.contains(ask)), "{}: {word}", preset.name);
            }
        }
    }
}
