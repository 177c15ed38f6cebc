//! `hearback agent`

use std::io::Write as _;

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::documents::{AgentDocument, AgentsDocument, SetupDocument, SetupFileDocument};
use hearback::{ClaudeHook, Hearback, Setup, SetupError, SetupScope, SetupState};

use crate::args::{AgentCommand, AgentSetupArgs, SinkTestArgs};
use crate::error::CliError;
use crate::output::Output;
use crate::table;

pub(crate) fn run(hearback: &Hearback, command: &AgentCommand, output: &Output) -> Result<u32, CliError> {
    match command {
        AgentCommand::List => list(hearback, output),
        AgentCommand::Test(args) => test(hearback, args, output),
        AgentCommand::Setup(args) => setup(hearback, args, output),
        AgentCommand::Hook { .. } => hook(),
    }
}

/// The exit code by which Claude Code knows that its model has to be woken.
const WAKE: u32 = 2;

fn hook() -> Result<u32, CliError> {
    let hook = ClaudeHook::read(std::io::stdin()).map_err(CliError::Stdin)?;
    let Some(text) = hook.wait().map_err(CliError::Hook)? else { return Ok(0) };
    std::io::stderr().write_all(text.as_bytes()).map_err(CliError::Output)?;
    Ok(WAKE)
}

fn list(hearback: &Hearback, output: &Output) -> Result<u32, CliError> {
    let agents: Vec<AgentDocument> = hearback.agents().into_iter().map(AgentDocument::from).collect();
    if output.is_json() {
        return output.reply(AgentsDocument { format: DOCUMENT_FORMAT, agents }, None);
    }
    let row = |agent: &AgentDocument| {
        let version = match (&agent.program, &agent.version) {
            (None, _) => "not installed".to_owned(),
            (Some(_), None) => "installed, does not say its version".to_owned(),
            (Some(_), Some(version)) => clean_line(version),
        };
        let doors = if agent.doors.is_empty() { "nothing".to_owned() } else { agent.doors.join(", ") };
        let here = if agent.here { "  (runs this command)" } else { "" };
        vec![agent.name.to_owned(), version, format!("{doors}{here}")]
    };
    let rows: Vec<_> = agents.iter().map(row).collect();
    output.text(&table::grid(&["AGENT", "VERSION", "WOKEN BY"], &rows, 1, output.width()))?;
    Ok(0)
}

fn test(hearback: &Hearback, args: &SinkTestArgs, output: &Output) -> Result<u32, CliError> {
    if hearback::core::agents::agent(&args.name).is_none() {
        return Err(SetupError::NoAgent(args.name.clone()).into());
    }
    super::sink::test(hearback, args, output)
}

fn setup(hearback: &Hearback, args: &AgentSetupArgs, output: &Output) -> Result<u32, CliError> {
    let scope = if args.project { SetupScope::Project } else { SetupScope::User };
    let setup = Setup::of(&args.name, scope, &hearback.program().map_err(CliError::NoProgram)?)?;
    let changed = match (args.write, args.remove) {
        (true, _) => setup.write()?,
        (_, true) => setup.remove()?,
        _ => Vec::new(),
    };
    if output.is_json() {
        let files = setup.files.iter().map(|file| SetupFileDocument {
            path: file.path.display().to_string(),
            state: file.state,
            changed: changed.contains(&file.path.as_path()),
            text: file.text.clone(),
        });
        let agent = setup.agent.name.to_owned();
        let document = SetupDocument { format: DOCUMENT_FORMAT, agent, files: files.collect() };
        return output.reply(document, None);
    }
    for file in &setup.files {
        let path = clean_line(&file.path.display().to_string());
        if args.write || args.remove {
            let word = match (changed.contains(&file.path.as_path()), args.write) {
                (true, true) => "written",
                (true, false) => "removed",
                (false, true) => match file.state {
                    SetupState::ByHand => "hearback does not edit this file; add what follows yourself",
                    SetupState::Foreign => "has an entry of yours, which is left alone",
                    _ => "unchanged",
                },
                (false, false) => "not there, or not written by hearback",
            };
            output.prose(&format!("{path}: {word}"))?;
            if args.write && file.state == SetupState::ByHand {
                output.line(&file.text)?;
            }
            continue;
        }
        let word = match file.state {
            SetupState::Absent if file.is_entry() => "would get this entry",
            SetupState::Absent => "would be written",
            SetupState::Current => "is there",
            SetupState::Outdated => "would be replaced by a newer one",
            SetupState::Foreign if file.is_entry() => "has an entry of yours, which is left alone",
            SetupState::Foreign => "is there, and hearback did not write it: --write would refuse",
            SetupState::ByHand => "hearback does not edit this file; add what follows yourself",
        };
        output.prose(&format!("# {path}: {word}"))?;
        output.line(&file.text)?;
    }
    if !args.write && !args.remove {
        output.hint(&format!(
            "nothing was written; `hearback agent setup {} --write` does that",
            setup.agent.name
        ));
    }
    Ok(0)
}
