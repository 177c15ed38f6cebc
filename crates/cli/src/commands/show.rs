//! `hearback show`

use std::fmt::Write as _;
use std::time::Duration;

use hearback::core::message::{self, clean_line};
use hearback::core::{FollowUpState, JobId, JobView, Timestamp};
use hearback::documents::ShowDocument;
use hearback::{FindError, Hearback, Job, LogRange};

use crate::args::ShowArgs;
use crate::error::CliError;
use crate::output::{FAINT, Output, STRONG, next_text};
use crate::wrap::{beside, wrap};
use crate::{table, usage};

/// How much of the log `show` prints.
const TAIL_BYTES: u64 = 2000;
const TAIL_LINES: usize = 20;

pub(crate) fn run(hearback: &Hearback, args: &ShowArgs, output: &Output) -> Result<u32, CliError> {
    let scope = super::scope(&args.scope)?;
    let (found, mut failed) = super::named(hearback, &args.jobs, args.key.as_ref(), &scope, output)?;
    for (n, id) in found.ids.iter().enumerate() {
        if n > 0 && !output.is_json() {
            output.line("")?;
        }
        match show(hearback, id, args, output) {
            Err(error @ (CliError::Closed | CliError::Output(_))) => return Err(error),
            Err(error) => super::keep_error(&mut failed, error.of(found.subject(id)), output),
            Ok(()) => {}
        }
    }
    failed.map_or(Ok(0), Err)
}

/// Shows one job. With others beside it, its JSON is one line of a stream.
fn show(hearback: &Hearback, id: &JobId, args: &ShowArgs, output: &Output) -> Result<(), CliError> {
    let job = hearback.job(id)?.ok_or_else(|| FindError::NotFound(id.to_string()))?;
    let log_error = |source| CliError::Log { id: id.clone(), source };
    let wanted = args.output.filter(|_| super::ONE_CALL);
    if output.is_json() {
        let log = wanted.map(|most| hearback.log_document(&job, &LogRange::last(most)));
        let document = ShowDocument { log: log.transpose().map_err(log_error)?, job: job.view };
        return if args.jobs.len() > 1 { output.object(&document) } else { output.document(&document) };
    }
    let (most, lines) = wanted.map_or((TAIL_BYTES, TAIL_LINES), |most| (most, usize::MAX));
    let tail = hearback.excerpt(&job, 0, most).map_err(log_error)?;
    // A short log is all in the head.
    let shown = if tail.tail.is_empty() { &tail.head } else { &tail.tail };
    let shown = message::shown(shown);
    // Before it is cut to a few lines: the first line of a key shows what the others are.
    let shown = match tail.omitted {
        0 => hearback.secrets().masked(&shown),
        _ => hearback.secrets().masked_after_cut(&shown),
    };
    let log = LogTail { text: &shown, lines, omitted: tail.omitted };
    output.text(&card(hearback, &job, &log, output.width()))
}

/// The end of the output, as it is shown.
struct LogTail<'a> {
    text: &'a str,
    /// How many lines of it.
    lines: usize,
    /// How many bytes are before it.
    omitted: u64,
}

fn card(hearback: &Hearback, job: &Job, log: &LogTail<'_>, width: Option<usize>) -> String {
    // Before its lines are broken, which could break a secret.
    let masked = |text: &str| hearback.secrets().masked(text);
    let (view, now) = (&job.view, hearback.now());
    let style = table::state_style(view.state);
    let ending =
        view.outcome.as_ref().map_or_else(|| table::state_word(view).to_owned(), ToString::to_string);
    let mut text = wrap(&format!("{style}{}{style:#}\n", masked(&clean_line(&ending))), width, 0);
    let mut row = |name: &str, value: String| {
        let _ =
            writeln!(text, "{}", beside(&format!("{FAINT}{name:>10}{FAINT:#}  "), &masked(&value), width));
    };
    row("job", view.id.to_string());
    if let Some(label) = table::label(job) {
        row("label", format!("{STRONG}{label}{STRONG:#}"));
    }
    row("command", table::command(job));
    if let Some(cwd) = &view.cwd {
        row("in", clean_line(&cwd.to_string()));
    }
    if let Some(session) = &view.session {
        row("session", clean_line(session.as_str()));
    }
    if let Some(at) = job.launched_at() {
        row("launched", format!("{} ({})", table::local_time(at), table::ago(at, now)));
    }
    if let Some(ran) = job.ran(now) {
        let used = usage::total(hearback, job).map_or_else(String::new, |used| format!(", {used}"));
        row("ran", format!("{}{used}", table::duration(ran)));
    }
    if cfg!(feature = "live")
        && let Some(pictures) = usage::pictures(hearback, job)
    {
        row("used", pictures);
    }
    if !view.state.has_ended() {
        row("limit", limits(job, now));
    }
    if let Some(kill) = table::kill_text(job, now) {
        row("kill", kill);
    }
    if let Some(key) = &view.key {
        row("key", clean_line(key));
    }
    if let Some(pid) = view.pid.filter(|_| !view.state.has_ended()) {
        row("process", pid.to_string());
        if let Some(place) = &view.bound_to {
            row("ends with", clean_line(place));
        }
        if view.bound {
            row("ends with", "the monitor, when it restarts or stops".into());
        }
    }
    if view.takes_input && !view.state.has_ended() {
        row("input", format!("`hearback write {} TEXT --newline`, `--eof` to end it", view.id));
    }
    row("follow-up", follow_up(hearback, job));
    if let Some(error) = &view.follow_up.error {
        row("last error", clean_line(error));
    }
    for pid in &view.survivors {
        row("survivor", format!("process {pid} outlived it and still runs"));
    }
    for note in &view.notes {
        row("note", clean_line(note));
    }
    if let Some(answer) = &view.answer {
        row("answer", clean_line(&answer.to_string()));
        if let Some(words) = answer.words() {
            push_quoted(&mut text, masked(&words.text).lines(), width);
        }
    }
    let size = table::output(&view.output, "");
    let _ = writeln!(text, "{}", beside(&format!("{FAINT}{:>10}{FAINT:#}  ", "output"), &size, width));
    push_log(&mut text, log, width);
    let next = next(view);
    if !next.is_empty() {
        let _ = writeln!(text, "{FAINT}{}{FAINT:#}", next_text(&next, width));
    }
    text
}

/// How the follow-up of a job fares; where none is wanted, why not, and what would change that.
fn follow_up(hearback: &Hearback, job: &Job) -> String {
    match job.view.follow_up.state {
        FollowUpState::NotWanted => hearback.expectation(job).text(None, None),
        _ => table::delivery(&job.view),
    }
}

/// The limits of a job that runs, and how much of the time is left.
fn limits(job: &Job, now: Timestamp) -> String {
    let limits = message::limits_text(&job.view);
    let left = job.view.timeout_ms.map(Duration::from_millis).zip(job.ran(now));
    match left.and_then(|(limit, ran)| limit.checked_sub(ran)) {
        Some(left) => format!("{limits} ({} left)", table::duration(left)),
        None => limits,
    }
}

/// What a person may want to type next.
fn next(view: &JobView) -> Vec<String> {
    let mut next = Vec::new();
    let mut add = |command: &str| next.push(super::typed(command, view));
    if view.follow_up.state == FollowUpState::DeadLetter {
        add("followups retry");
    }
    match view.state.has_ended() {
        true if view.output.bytes > 0 => add("logs"),
        true => {}
        false => ["logs -f", "wait", "kill"].into_iter().for_each(add),
    }
    next
}

fn push_log(text: &mut String, log: &LogTail<'_>, width: Option<usize>) {
    let LogTail { text: shown, lines: most, omitted } = *log;
    let lines: Vec<_> = shown.lines().collect();
    let hidden = lines.len().saturating_sub(most);
    if omitted > 0 || hidden > 0 {
        let hidden: usize = lines[..hidden].iter().map(|line| line.len() + 1).sum();
        let before = omitted.saturating_add(u64::try_from(hidden).unwrap_or(u64::MAX));
        let _ = writeln!(text, "{FAINT}[{} before this]{FAINT:#}", table::bytes(before));
    }
    push_quoted(text, lines[hidden..].iter().copied(), width);
}

/// Lines that are not hearback's, each with a bar before it.
fn push_quoted<'a>(text: &mut String, lines: impl Iterator<Item = &'a str>, width: Option<usize>) {
    for line in lines {
        for line in wrap(line, width.map(|width| width.saturating_sub(2)), 0).split('\n') {
            let _ = writeln!(text, "{FAINT}│{FAINT:#} {line}");
        }
    }
}
