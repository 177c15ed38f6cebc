//! `hearback show`

use std::fmt::Write as _;

use hearback::core::message::{clean, clean_line};
use hearback::{FindError, Hearback, Job};

use crate::args::JobArgs;
use crate::error::CliError;
use crate::output::{FAINT, Output};
use crate::table;

/// How much of the log `show` prints.
const TAIL_BYTES: u64 = 2000;
const TAIL_LINES: usize = 20;

pub(crate) fn run(hearback: &Hearback, args: &JobArgs, output: &Output) -> Result<u32, CliError> {
    let id = hearback.find(&args.job, &super::scope(&args.scope)?)?;
    let job = hearback.job(&id)?.ok_or_else(|| FindError::NotFound(args.job.clone()))?;
    if output.is_json() {
        output.document(&job.view)?;
        return Ok(0);
    }
    let tail = hearback.excerpt(&job, 0, TAIL_BYTES).map_err(|source| CliError::Log { id, source })?;
    // A short log is all in the head.
    let shown = if tail.tail.is_empty() { &tail.head } else { &tail.tail };
    let shown = clean(&String::from_utf8_lossy(shown));
    // Before it is cut to a few lines: the first line of a key shows what the others are.
    let shown = match tail.omitted {
        0 => hearback.secrets().masked(&shown),
        _ => hearback.secrets().masked_after_cut(&shown),
    };
    output.text(&hearback.secrets().masked(&card(hearback, &job, &shown, tail.omitted)))?;
    Ok(0)
}

fn card(hearback: &Hearback, job: &Job, log: &str, omitted: u64) -> String {
    let (view, now) = (&job.view, hearback.now());
    let style = table::state_style(view.state);
    let ending =
        view.outcome.as_ref().map_or_else(|| table::state_word(view).to_owned(), ToString::to_string);
    let mut text = format!("{style}{}{style:#}\n", clean_line(&ending));
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{FAINT}{name:>10}{FAINT:#}  {value}");
    };
    row("job", view.id.to_string());
    row("command", table::title(job));
    if let Some(cwd) = &view.cwd {
        row("in", clean_line(&cwd.to_string()));
    }
    if let Some(session) = &view.session {
        row("session", clean_line(session.as_str()));
    }
    if let (Some(at), Some(text)) = (job.launched_at(), &view.launched_at) {
        row("launched", format!("{text} ({})", table::ago(at, now)));
    }
    if let Some(ran) = job.ran(now) {
        let used = view.usage.map_or_else(String::new, |usage| {
            let cpu = std::time::Duration::from_millis(usage.user_ms + usage.system_ms);
            format!(", {} of CPU, {} at most", table::duration(cpu), table::bytes(usage.peak_memory_bytes))
        });
        row("ran", format!("{}{used}", table::duration(ran)));
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
    row("follow-up", table::follow_up(view.follow_up.state).to_owned());
    for pid in &view.survivors {
        row("survivor", format!("process {pid} outlived it and still runs"));
    }
    for note in &view.notes {
        row("note", clean_line(note));
    }
    if let Some(answer) = &view.answer {
        row("answer", clean_line(&answer.to_string()));
        for line in answer.words().into_iter().flat_map(|words| words.text.lines()) {
            let _ = writeln!(text, "{FAINT}│{FAINT:#} {line}");
        }
    }
    let _ = writeln!(text, "{FAINT}{:>10}{FAINT:#}  {}", "output", table::output(&view.output, ""));
    push_log(&mut text, log, omitted);
    let next = if view.state.has_ended() { "logs" } else { "wait" };
    let _ = writeln!(text, "{FAINT}next: hearback {next} {}{FAINT:#}", view.id.short());
    text
}

fn push_log(text: &mut String, shown: &str, omitted: u64) {
    if omitted > 0 {
        let _ = writeln!(text, "{FAINT}[{} before this]{FAINT:#}", table::bytes(omitted));
    }
    let lines: Vec<_> = shown.lines().collect();
    let hidden = lines.len().saturating_sub(TAIL_LINES);
    if hidden > 0 {
        let _ = writeln!(text, "{FAINT}[{hidden} lines before this]{FAINT:#}");
    }
    for line in &lines[hidden..] {
        let _ = writeln!(text, "{FAINT}│{FAINT:#} {line}");
    }
}
