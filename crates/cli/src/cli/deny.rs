//! What a restricted caller may not do: `HEARBACK_DENY=notify,launch,…`.

use super::args::{Command, FollowupsCommand, InboxCommand, MonitorCommand, Notify};
use super::error::CliError;

const VARIABLE: &str = "HEARBACK_DENY";
/// What can be denied: what changes anything, or wakes anybody.
const CAPABILITIES: [&str; 9] =
    ["launch", "notify", "kill", "ack", "turn", "send", "monitor", "prune", "sink"];

/// Refuses a command that the environment denies.
pub(super) fn check(command: &Command) -> Result<(), CliError> {
    let Some(denied) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let denied = denied.to_string_lossy();
    let denied: Vec<_> = denied.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    // A word that is not known may be meant to deny something: then nothing is allowed.
    if let Some(unknown) = denied.iter().find(|name| **name != "all" && !CAPABILITIES.contains(name)) {
        return Err(CliError::Usage(format!(
            "{VARIABLE} denies `{unknown}`, which is none of all, {}",
            CAPABILITIES.join(", ")
        )));
    }
    match needs(command).into_iter().find(|need| denied.contains(need) || denied.contains(&"all")) {
        Some(need) => Err(CliError::Denied(need)),
        None => Ok(()),
    }
}

fn needs(command: &Command) -> Vec<&'static str> {
    match command {
        Command::Launch(args) if args.options.notify == Notify::Never => vec!["launch"],
        Command::Ask(args) if args.options.notify == Notify::Never => vec!["launch"],
        // Without a session and without a sink nobody is told, and that is allowed.
        Command::Launch(args)
            if args.options.sinks.is_empty()
                && args.session.is_none()
                && crate::current_session().is_ok_and(|session| session.is_none()) =>
        {
            vec!["launch"]
        }
        Command::Launch(_) | Command::Ask(_) => vec!["launch", "notify"],
        Command::Results(args) if args.ack => vec!["ack"],
        Command::Kill(_) => vec!["kill"],
        Command::Followups(args) => match &args.command {
            Some(FollowupsCommand::Ack(_) | FollowupsCommand::Discard(_)) => vec!["ack"],
            Some(FollowupsCommand::Retry(_)) => vec!["ack", "notify"],
            _ => vec![],
        },
        Command::Turn(_) => vec!["turn"],
        Command::Send(_) => vec!["send"],
        Command::Inbox(args) if matches!(args.command, Some(InboxCommand::Discard(_))) => vec!["send"],
        Command::Monitor(MonitorCommand::Status) => vec![],
        Command::Monitor(_) => vec!["monitor"],
        Command::Sink(_) | Command::Plugin(_) => vec!["sink"],
        Command::Prune(_) => vec!["prune"],
        _ => vec![],
    }
}
