//! What `--help` shows besides the arguments: commands in groups, examples, and exit codes.

#[cfg(feature = "parser-hints")]
use clap::error::ErrorKind;
use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory};

use crate::args::Arguments;
use crate::wrap::{beside, wrap};

/// Every command that people use, in the order in which they meet it.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Jobs", &["launch", "list", "show", "logs", "wait", "kill"]),
    ("More", &["top", "write"]),
    (
        "Agents",
        &["ask", "results", "send", "turn", "sessions", "inbox", "followups", "events", "mcp", "serve"],
    ),
    ("Setup", &["doctor", "agent", "sink", "plugin", "monitor", "settings", "completions"]),
    ("Upkeep", &["timeline", "prune", "reconcile", "schema"]),
];

const MORE: &str = "\
Name a job by its id, four characters of either end of it, its label, or `@last`. Without a name, the only job that \
runs is meant. `hearback COMMAND --help` has examples; `hearback help exit-codes` explains exit codes.";

/// What the exit codes of some commands mean.
pub(crate) struct ExitCodes {
    /// The commands, in words.
    pub(crate) of: &'static str,
    /// Each code, and its meaning.
    pub(crate) codes: &'static [(&'static str, &'static str)],
    /// What else is to know about them.
    pub(crate) note: &'static str,
}

/// What `hearback help exit-codes` prints.
pub(crate) const EXIT_CODES: [ExitCodes; 3] = [
    ExitCodes {
        of: "`wait`, `launch --wait`, `launch --follow`, `ask --wait`, `logs --follow --exit-code`",
        codes: &[
            ("0-255", "the job's own code"),
            ("124", "the job reached its time limit, or was silent for too long"),
            ("128+n", "the job was ended by signal n; killed: the same, else 143"),
            ("126", "the job could not be started: not executable"),
            ("127", "the job could not be started: not found"),
            ("75", "the wait reached its deadline; the job continues"),
            ("125", "hearback failed, or how the job ended is unknown"),
            ("130", "Ctrl-C ended the wait; the job continues"),
        ],
        note: "With several jobs, the first code other than 0 counts, in the order of the arguments. If all of them \
               succeeded and one was not found, the code is 1.",
    },
    ExitCodes {
        of: "`launch` without `--wait` or `--follow`",
        codes: &[
            ("0", "the job was started"),
            ("2", "wrong usage, such as a `--cwd` that is no directory"),
            ("126", "the job could not be started: not executable"),
            ("127", "the job could not be started: not found"),
            ("125", "the job could not be started for another reason, or hearback failed"),
        ],
        note: "",
    },
    ExitCodes {
        of: "Other commands",
        codes: &[
            ("0", "success"),
            ("1", "no such job, nothing to print, a kill that left processes behind, or a failed check"),
            ("2", "wrong usage"),
            ("75", "not now: the session is in a turn, or the monitor is about to end"),
            ("125", "hearback failed"),
        ],
        note: "A job can use these numbers itself. With --json, `outcome` says how a job ended, and `error` why a \
               command failed.",
    },
];

/// The exit codes for people.
pub(crate) fn exit_codes(width: Option<usize>) -> String {
    let section = |part: &ExitCodes| {
        let codes =
            part.codes.iter().map(|(code, what)| beside(&format!("  {code:<6} "), what, width) + "\n");
        let note =
            if part.note.is_empty() { String::new() } else { format!("{}\n", wrap(part.note, width, 0)) };
        format!("{}\n{}{note}", wrap(&format!("{}:", part.of), width, 0), codes.collect::<String>())
    };
    EXIT_CODES.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// The parser breaks longer lines itself, wherever they begin.
const HELP_WIDTH: usize = 100;

/// Examples of each command.
const EXAMPLES: [(&str, &[&str]); 29] = [
    (
        "launch",
        &[
            "hearback launch -- make all",
            "hearback launch --follow --label build -- cargo build",
            "hearback launch --shell 'make && make test' --timeout 2h --sink desktop",
        ],
    ),
    (
        "list",
        &["hearback list", "hearback list --state running", "hearback list --outcome killed,lost --since 7d"],
    ),
    ("top", &["hearback top", "hearback top --all-sessions --state running,failed"]),
    ("timeline", &["hearback timeline --since 1d", "hearback timeline --all --html jobs.html"]),
    ("events", &["hearback events", "hearback events --json --since beginning", "hearback events --once"]),
    ("show", &["hearback show @last", "hearback show build"]),
    ("logs", &["hearback logs -f build", "hearback logs -n 20 @last"]),
    ("wait", &["hearback wait build", "hearback wait --all --timeout 10m"]),
    (
        "kill",
        &["hearback kill build", "hearback kill --all --session chat-7", "hearback kill --label nightly"],
    ),
    ("write", &["hearback write repl 'print(6 * 7)' --newline", "hearback write sort - --eof"]),
    ("ask", &["hearback ask --session chat-7 --new --prompt 'Review the diff' -- claude -p"]),
    ("results", &["hearback results --session chat-7 --wait 1h --ack"]),
    ("send", &["hearback send --session chat-7 'The deploy has finished'"]),
    ("turn", &["hearback turn --session chat-7 -- claude -p --resume chat-7"]),
    ("sessions", &["hearback sessions"]),
    ("inbox", &["hearback inbox", "hearback inbox retry 3 --session chat-7"]),
    (
        "followups",
        &["hearback followups", "hearback followups next --wait 30s", "hearback followups retry build"],
    ),
    ("mcp", &["hearback mcp --sink claude"]),
    ("serve", &["hearback serve"]),
    ("doctor", &["hearback doctor"]),
    ("agent", &["hearback agent list", "hearback agent setup claude --write"]),
    ("sink", &["hearback sink list", "hearback sink test desktop"]),
    ("plugin", &["hearback plugin check ./my-sink"]),
    ("monitor", &["hearback monitor status", "hearback monitor install"]),
    ("settings", &["hearback settings", "HEARBACK_TIMEOUT=2h hearback settings"]),
    ("completions", &["hearback completions bash > ~/.local/share/bash-completion/completions/hearback"]),
    ("prune", &["hearback prune --dry-run --older-than 7d"]),
    ("reconcile", &["hearback reconcile --dry-run"]),
    ("schema", &["hearback schema > hearback.schema.json"]),
];

/// The command line with its help.
pub(crate) fn command() -> Command {
    let mut command = Arguments::command();
    for (name, examples) in EXAMPLES {
        // One that is behind a feature may be missing.
        if command.find_subcommand(name).is_some() {
            let examples = format!("Examples:\n  {}", examples.join("\n  "));
            command = command.mut_subcommand(name, |command| command.after_help(examples));
        }
    }
    let width =
        terminal_size::terminal_size().map_or(HELP_WIDTH, |(width, _)| usize::from(width.0).min(HELP_WIDTH));
    command = command.mut_subcommand("exit-codes", |command| command.after_help(exit_codes(Some(width))));
    let (brief, full) = (groups(&command, Detail::Brief), groups(&command, Detail::Full));
    command
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}",
        )
        .before_help(brief)
        .before_long_help(full)
        .after_long_help(MORE)
}

/// How much is said of each command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// What fits on a small screen: one line for each command of the first group, and names alone for the others.
    Brief,
    /// One line for each.
    Full,
}

fn groups(command: &Command, detail: Detail) -> String {
    let mut groups = Vec::new();
    for (n, (title, names)) in GROUPS.into_iter().enumerate() {
        let commands: Vec<_> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if detail == Detail::Brief && n > 0 {
            let names: Vec<_> = commands.iter().map(|command| command.get_name()).collect();
            groups.push(format!("{:<7} {}", format!("{title}:"), names.join(", ")));
            continue;
        }
        let lines = commands.iter().map(|command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let brief = about.split(['.', ';', ':']).next().unwrap_or_default();
            format!("\n  {:<12} {brief}", command.get_name())
        });
        let end = if detail == Detail::Brief || n + 1 < GROUPS.len() { "\n" } else { "" };
        groups.push(format!("{title}:{}{end}", lines.collect::<String>()));
    }
    groups.join("\n")
}

/// How many characters of a command may be mistyped for it to be suggested.
const TYPOS: usize = 2;

/// What people type who know other programs, and what they may want here.
const ELSEWHERE: [(&str, &str); 2] = [
    ("rm", "'hearback prune' removes old settled jobs, and 'hearback kill JOB' ends one that runs"),
    ("delete", "'hearback prune' removes old settled jobs, and 'hearback kill JOB' ends one that runs"),
];

/// Replaces tips of the parser that mislead.
#[cfg(not(feature = "parser-hints"))]
pub(crate) fn with_better_tip(error: clap::Error) -> clap::Error {
    with_one_suggestion(error)
}

/// Options that people know from other programs, or from other commands, and what they may want here.
#[cfg(feature = "parser-hints")]
const OPTIONS_ELSEWHERE: [(&str, &str, &str); 3] = [
    ("kill", "-9", "'--force' kills at once, without terminating first"),
    ("kill", "-K", "'--force' kills at once, without terminating first"),
    ("wait", "-t", "'--timeout TIME' ends the wait, and the jobs continue"),
];

/// Replaces tips of the parser that mislead.
#[cfg(feature = "parser-hints")]
pub(crate) fn with_better_tip(error: clap::Error) -> clap::Error {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) if error.kind() == ErrorKind::UnknownArgument => {
            let typed = typed.clone();
            with_tip_for_option(error, &typed)
        }
        _ => with_one_suggestion(error),
    }
}

/// The parser suggests to pass an unknown option as a value behind `--`, where it would be the name of a job.
#[cfg(feature = "parser-hints")]
fn with_tip_for_option(mut error: clap::Error, typed: &str) -> clap::Error {
    let mut root = Arguments::command();
    root.build();
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let command = words.find_map(|word| root.find_subcommand(word));
    // Of several letters, or digits, the parser names the first.
    let word = words.find(|word| word.starts_with(typed)).unwrap_or_else(|| typed.to_owned());
    let name = command.map(Command::get_name).unwrap_or_default();
    let is_number = word.len() > 1 && word[1..].chars().all(|c| c.is_ascii_digit());
    let takes = |what: &dyn Fn(&clap::Arg) -> bool| command.is_some_and(|it| it.get_arguments().any(what));
    let known = OPTIONS_ELSEWHERE.iter().find(|(of, option, _)| *of == name && *option == typed);
    let tip = match known {
        Some((.., tip)) => Some((*tip).to_owned()),
        None if is_number && takes(&|arg| arg.get_short() == Some('n')) => {
            Some(format!("'-n {}'", &word[1..]))
        }
        None if takes(&clap::Arg::is_trailing_var_arg_set) => Some(
            "options before the program are those of hearback; options of the program follow it".to_owned(),
        ),
        None => None,
    };
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip.filter(|_| error.get(ContextKind::SuggestedArg).is_none()) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Suggests the one command that an unknown one was probably meant to be. The parser is more generous, and misleads.
fn with_one_suggestion(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if let Some((_, tip)) = ELSEWHERE.iter().find(|(name, _)| name == typed) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*tip).into()]));
        return error;
    }
    let typos = |name: &str| strsim::damerau_levenshtein(typed, name);
    // The command whose subcommand is unknown: the last known one before it.
    let mut root = Arguments::command();
    root.build();
    let words = std::env::args_os().skip(1).take_while(|word| word.as_os_str() != typed.as_str());
    let parent = words.fold(&root, |parent, word| parent.find_subcommand(&word).unwrap_or(parent));
    let names = parent.get_subcommands().map(Command::get_name);
    let best = names.min_by_key(|name| typos(name)).filter(|name| typos(name) <= TYPOS).map(str::to_owned);
    match best {
        Some(name) => error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name])),
        None => error.remove(ContextKind::SuggestedSubcommand),
    };
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_a_group_and_has_an_example_that_is_valid() {
        let visible: Vec<_> = command()
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter()).collect();
        for name in &visible {
            assert!(grouped.contains(&&name.as_str()), "`{name}` is in no group");
            let examples = EXAMPLES.iter().find(|(example, _)| example == name);
            let (_, examples) = examples.unwrap_or_else(|| panic!("`{name}` has no example"));
            for example in *examples {
                // Quotes, variables and redirections are for a shell.
                let line = example.split(" > ").next().unwrap_or_default();
                let pieces = line.split('\'').enumerate();
                let words = pieces.flat_map(|(n, piece)| match n % 2 {
                    0 => piece.split_whitespace().collect(),
                    _ => vec![piece],
                });
                let words = words.skip_while(|word| word.contains('='));
                let parsed = command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
        let wide = groups(&command(), Detail::Full);
        assert!(wide.lines().all(|line| line.len() <= 80), "{wide}");
        let brief = command().render_help().to_string();
        assert!(brief.lines().count() <= 23, "it fits on a screen of 24 lines:\n{brief}");
    }
}
