//! Jobs for people: columns, durations, and text that cannot play tricks on a terminal.

use std::time::Duration;

use anstyle::Style;
use hearback::Job;
pub(crate) use hearback::core::message::duration_text as duration;
use hearback::core::message::{clean_line, command_text, limit_text};
use hearback::core::{FollowUpState, GapReason, JobView, OutputView, StateWord, Timestamp};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{BAD, BUSY, FAINT, GOOD, STRONG};
#[cfg(any(feature = "control", feature = "doctor", feature = "plugin-check", feature = "setup"))]
use crate::wrap::{beside, columns, wrap};

/// The longest command that is printed into a pipe or a file: a command may be a script of megabytes.
const UNWATCHED_MAX: usize = 500;

/// The least that the command gets before other columns are left out for it; less beside a label, which names the job.
const COMMAND_MIN: usize = 20;
const COMMAND_MIN_LABELLED: usize = 12;
/// The longest label that is shown whole beside its command.
const LABEL_MAX: usize = 20;
const GAP: usize = 2;
/// The least that a column of sentences gets beside the others.
#[cfg(any(feature = "control", feature = "doctor", feature = "plugin-check", feature = "setup"))]
const SENTENCE_MIN: usize = 24;

/// The columns before the command, in order.
const COLUMNS: [&str; 6] = ["STATE", "ID", "LAUNCHED", "RAN", "FOLLOW-UP", "LABEL"];
const STATE: usize = 0;
const LAUNCHED: usize = 2;
const RAN: usize = 3;
const FOLLOW_UP: usize = 4;
const LABEL: usize = 5;

/// One job as a line of the table.
struct Row {
    cells: [String; 6],
    /// Whether the column of follow-ups has something to say about it.
    needs_follow_up: bool,
    style: Style,
    command: String,
}

/// One line for each job, under a heading. No line is wider than `width`: columns that say nothing are left out, then
/// the command is cut, then columns are left out that say the least.
pub(crate) fn jobs(jobs: &[Job], now: Timestamp, width: Option<usize>) -> String {
    let rows: Vec<Row> = jobs.iter().map(|job| row(job, now)).collect();
    render(&rows, width)
}

fn render(rows: &[Row], width: Option<usize>) -> String {
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row.cells[column].width());
        cells.max().filter(|widest| *widest > 0).map(|widest| widest.max(COLUMNS[column].width()))
    };
    let mut widths: Vec<Option<usize>> = (0..COLUMNS.len()).map(widest).collect();
    if !rows.iter().any(|row| row.cells[FOLLOW_UP] != NO_FOLLOW_UP) {
        widths[FOLLOW_UP] = None;
    }
    let before =
        |widths: &[Option<usize>]| -> usize { widths.iter().flatten().map(|width| width + GAP).sum() };
    let mut command_width = UNWATCHED_MAX;
    if let Some(width) = width {
        widths[LABEL] = widths[LABEL].map(|label| label.min(LABEL_MAX));
        let longest = rows.iter().map(|row| row.command.width()).max().unwrap_or(0);
        let is_quiet = !rows.iter().any(|row| row.needs_follow_up);
        // A label, and a follow-up that matters, are then before the command.
        let spared = [is_quiet.then_some(FOLLOW_UP), Some(RAN), Some(LAUNCHED), Some(LABEL), Some(FOLLOW_UP)];
        for column in spared.into_iter().flatten() {
            let least = if widths[LABEL].is_some() { COMMAND_MIN_LABELLED } else { COMMAND_MIN };
            if before(&widths) + longest.min(least) > width {
                widths[column] = None;
            }
        }
        command_width = width.saturating_sub(before(&widths));
    }
    let mut text = String::new();
    let push_cell = |text: &mut String, column: usize, cell: &str, style: Style| {
        let Some(widest) = widths[column] else { return };
        let cell = cut(cell, widest);
        let padding = " ".repeat((widest + GAP).saturating_sub(cell.width()));
        text.push_str(&format!("{style}{cell}{style:#}{padding}"));
    };
    for (column, name) in COLUMNS.into_iter().enumerate() {
        push_cell(&mut text, column, name, FAINT);
    }
    text.push_str(&format!("{FAINT}{}{FAINT:#}\n", cut("COMMAND", command_width)));
    for row in rows {
        for (column, cell) in row.cells.iter().enumerate() {
            let style = match column {
                STATE => row.style,
                LABEL => STRONG,
                _ => Style::new(),
            };
            push_cell(&mut text, column, cell, style);
        }
        let mut left = command_width;
        if widths[FOLLOW_UP].is_none() && row.needs_follow_up {
            push_part(&mut text, &format!("{}: ", row.cells[FOLLOW_UP]), Style::new(), &mut left);
        }
        if widths[LABEL].is_none() && !row.cells[LABEL].is_empty() {
            push_part(&mut text, &format!("[{}] ", row.cells[LABEL]), STRONG, &mut left);
        }
        push_part(&mut text, &row.command, Style::new(), &mut left);
        text.push('\n');
    }
    text
}

/// Adds a part to a cell that has so many columns left.
fn push_part(text: &mut String, part: &str, style: Style, left: &mut usize) {
    let part = cut(part, *left);
    text.push_str(&format!("{style}{part}{style:#}"));
    *left = if part.ends_with('…') { 0 } else { left.saturating_sub(part.width()) };
}

fn row(job: &Job, now: Timestamp) -> Row {
    let view = &job.view;
    Row {
        cells: [
            format!("{} {}", glyph(view), ending(view)),
            view.id.short().to_owned(),
            job.launched_at().map_or_else(|| "?".into(), |at| ago(at, now)),
            ran(job, now),
            follow_up(view.follow_up.state).to_owned(),
            label(job).unwrap_or_default(),
        ],
        needs_follow_up: matches!(
            view.follow_up.state,
            FollowUpState::Pending | FollowUpState::Leased | FollowUpState::DeadLetter
        ),
        style: state_style(view.state),
        command: command(job),
    }
}

/// How long it ran; of a job that runs, also its limit.
fn ran(job: &Job, now: Timestamp) -> String {
    let Some(ran) = job.ran(now).map(duration) else { return String::new() };
    match job.view.timeout_ms.filter(|_| !job.view.state.has_ended()) {
        Some(limit) => format!("{ran} of {}", limit_text(Duration::from_millis(limit))),
        None => ran,
    }
}

/// The state in a word or two: of a job that has not succeeded, how it ended.
pub(crate) fn ending(view: &JobView) -> String {
    match &view.outcome {
        Some(outcome) if view.state != StateWord::Done => outcome.short(),
        _ => state_word(view).to_owned(),
    }
}

/// The label, in one line.
pub(crate) fn label(job: &Job) -> Option<String> {
    job.view.label.as_ref().map(|label| clean_line(label))
}

/// The command, in one line.
pub(crate) fn command(job: &Job) -> String {
    let command = job.view.command.as_ref();
    clean_line(&command.map_or_else(|| "(its record cannot be read)".into(), command_text))
}

/// The label, if there is one, and the command, where there is one line for both.
#[cfg(any(feature = "top", feature = "completions"))]
pub(crate) fn title(job: &Job) -> String {
    label(job).map_or_else(String::new, |label| format!("[{label}] ")) + &command(job)
}

/// The beginning of a text that takes at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mut left = width - 1;
    let fits = text.chars().take_while(|c| {
        let needed = c.width().unwrap_or(0);
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    fits.chain(['…']).collect()
}

/// A table with a heading, whose last column has room for sentences. Where the columns do not fit beside each other,
/// the first `keys` of them stay, and the rest of each row is below them.
#[cfg(any(feature = "control", feature = "doctor", feature = "plugin-check", feature = "setup"))]
pub(crate) fn grid(heading: &[&str], rows: &[Vec<String>], keys: usize, width: Option<usize>) -> String {
    let heading =
        (!heading.is_empty()).then(|| heading.iter().map(|cell| format!("{FAINT}{cell}{FAINT:#}")).collect());
    let all: Vec<&Vec<String>> = heading.iter().chain(rows).collect();
    let Some(last) = all.iter().map(|row| row.len()).max().and_then(|most| most.checked_sub(1)) else {
        return String::new();
    };
    let widest =
        |n: usize| all.iter().filter_map(|row| row.get(n)).map(|cell| columns(cell)).max().unwrap_or(0);
    let padded = |row: &[String]| -> String {
        let cell =
            |(n, cell): (usize, &String)| format!("{cell}{}", " ".repeat(widest(n) + GAP - columns(cell)));
        row.iter().enumerate().map(cell).collect()
    };
    let before: usize = (0..last).map(|n| widest(n) + GAP).sum();
    let room = widest(last).min(SENTENCE_MIN);
    let is_narrow = width.is_some_and(|width| before + room > width);
    let mut text = String::new();
    for (n, row) in all.iter().enumerate() {
        let (keep, rest) = row.split_at(if is_narrow { keys } else { last });
        match (is_narrow, rest) {
            // Nothing is below a heading.
            (true, _) if n == 0 && heading.is_some() => continue,
            (true, rest) => {
                text.push_str(&format!("{}\n", padded(keep).trim_end()));
                let rest: Vec<_> = rest.iter().filter(|cell| !cell.is_empty()).map(String::as_str).collect();
                let rest = rest.join("  ");
                for line in rest.lines() {
                    text.push_str(&format!("{}\n", wrap(&format!("    {line}"), width, 0)));
                }
            }
            (false, rest) => {
                let mut before_it = padded(keep);
                for line in rest.concat().split('\n') {
                    text.push_str(beside(&before_it, line, width).trim_end());
                    text.push('\n');
                    before_it = " ".repeat(before);
                }
            }
        }
    }
    text
}

/// The state of a job, for people.
pub(crate) fn state_word(view: &JobView) -> &'static str {
    if view.paused { "paused" } else { view.state.as_str() }
}

pub(crate) fn glyph(view: &JobView) -> char {
    match view.state {
        StateWord::Starting => '·',
        StateWord::Running if view.paused => '‖',
        StateWord::Running => '▶',
        StateWord::Done => '✓',
        StateWord::Failed => '✗',
        StateWord::Ended => '?',
    }
}

pub(crate) fn state_style(state: StateWord) -> Style {
    match state {
        StateWord::Starting | StateWord::Running | StateWord::Ended => BUSY,
        StateWord::Done => GOOD,
        StateWord::Failed => BAD,
    }
}

/// What stands in the table where no follow-up is wanted.
const NO_FOLLOW_UP: &str = "-";

pub(crate) fn follow_up(state: FollowUpState) -> &'static str {
    match state {
        FollowUpState::NotWanted => NO_FOLLOW_UP,
        FollowUpState::Waiting => "waiting",
        FollowUpState::Pending => "pending",
        FollowUpState::Leased => "leased",
        FollowUpState::Delivered => "delivered",
        FollowUpState::Queued => "queued",
        FollowUpState::Read => "read",
        FollowUpState::DeadLetter => "dead letter",
        FollowUpState::Discarded => "discarded",
        FollowUpState::Expired => "expired",
        FollowUpState::Closed => "closed",
    }
}

/// How the follow-up of a job fares: its state, its sink, and how often it was tried.
pub(crate) fn delivery(view: &JobView) -> String {
    let follow_up = &view.follow_up;
    let mut text = match follow_up.state {
        FollowUpState::NotWanted => "no notification".to_owned(),
        state => self::follow_up(state).to_owned(),
    };
    if let Some(sink) = follow_up.sink.as_ref().or(follow_up.sinks.first()) {
        text.push_str(&format!(", sink `{}`", clean_line(sink)));
    }
    match follow_up.attempts {
        0 => {}
        1 => text.push_str(", 1 attempt"),
        n => text.push_str(&format!(", {n} attempts")),
    }
    text
}

/// How far the kill of a job is; none if none was requested, or if the job has ended.
pub(crate) fn kill_text(job: &Job, now: Timestamp) -> Option<String> {
    let kills = job.seen.facts.kills.iter().filter_map(|(_, kill)| kill.present());
    // A later request can only shorten the grace.
    let left_ms = kills.map(|kill| kill.grace_ms.saturating_sub(now.millis_since(kill.at_ms))).min()?;
    if job.view.state.has_ended() {
        return None;
    }
    Some(match left_ms.div_ceil(1000) {
        0 => "being killed".to_owned(),
        seconds => format!("terminating, killed in {}", limit_text(Duration::from_secs(seconds))),
    })
}

/// A moment by the clocks of this place; in UTC, which is said then, where the system does not know them.
pub(crate) fn local_time(at: Timestamp) -> String {
    match hearback::local_offset(at.as_millis().div_euclid(1000)) {
        Some(offset) => at.in_place(offset),
        None => format!("{} UTC", at.in_place(0)),
    }
}

/// How long ago, in the largest unit that fits.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    if then > now {
        return "in the future".into();
    }
    match now.millis_since(then) / 1000 {
        0..5 => "just now".into(),
        s @ 5..60 => format!("{s} s ago"),
        s @ 60..3600 => format!("{} min ago", s / 60),
        s @ 3600..86_400 => format!("{} h ago", s / 3600),
        s => format!("{} d ago", s / 86_400),
    }
}

/// The size of the output, with `noun` after it, and how much of it was dropped.
pub(crate) fn output(output: &OutputView, noun: &str) -> String {
    let size = bytes(output.bytes);
    match output.dropped {
        0 => format!("{size}{noun}"),
        dropped => {
            let is_by_cap = output.gaps.iter().all(|gap| gap.reason == GapReason::Cap);
            let by = if is_by_cap { " by the log cap" } else { "" };
            format!("{size}{noun}, {} dropped{by}", bytes(dropped))
        }
    }
}

/// A count of bytes in the largest unit that keeps it readable.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} {}", if count == 1 { "byte" } else { "bytes" });
    }
    let mut value = count as f64;
    let mut unit = "";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_short() {
        let at = Timestamp::from_millis;
        assert_eq!(ago(at(0), at(3_000)), "just now");
        assert_eq!(ago(at(0), at(7_200_000)), "2 h ago");
        assert_eq!(ago(at(10), at(0)), "in the future");
        assert_eq!(duration(Duration::from_millis(1_234)), "1.2 s");
        assert_eq!(duration(Duration::from_secs(3_725)), "1 h 02 min");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(64 * 1024 * 1024), "64.0 MiB");
    }

    fn rows() -> Vec<Row> {
        let row = |cells: [&str; 6], style, command: &str| Row {
            cells: cells.map(str::to_owned),
            needs_follow_up: cells[FOLLOW_UP] == "dead letter",
            style,
            command: command.to_owned(),
        };
        vec![
            row(
                ["▶ running", "6zp0b6e", "12 min ago", "12 min 05 s of 1 h", "waiting", "build"],
                BUSY,
                "cargo build --release",
            ),
            row(
                ["✗ timed out", "d4mk77x", "2 h ago", "1 h 00 min", "dead letter", "日本語"],
                BAD,
                "./nightly.sh --all",
            ),
            row(["✓ done", "gabw28d", "3 d ago", "0.5 s", "-", ""], GOOD, "true"),
        ]
    }

    fn plain(rows: &[Row], width: usize) -> String {
        anstream::adapter::strip_str(&render(rows, Some(width))).to_string()
    }

    #[test]
    fn scenario_147_a_table_at_40_60_80_and_120_columns() {
        assert_eq!(
            plain(&rows(), 40),
            "\
STATE        ID       COMMAND
▶ running    6zp0b6e  [build] cargo bui…
✗ timed out  d4mk77x  dead letter: [日…
✓ done       gabw28d  true
"
        );
        assert_eq!(
            plain(&rows(), 60),
            "\
STATE        ID       FOLLOW-UP    LABEL   COMMAND
▶ running    6zp0b6e  waiting      build   cargo build --re…
✗ timed out  d4mk77x  dead letter  日本語  ./nightly.sh --a…
✓ done       gabw28d  -                    true
"
        );
        assert_eq!(
            plain(&rows(), 80),
            "\
STATE        ID       LAUNCHED    FOLLOW-UP    LABEL   COMMAND
▶ running    6zp0b6e  12 min ago  waiting      build   cargo build --release
✗ timed out  d4mk77x  2 h ago     dead letter  日本語  ./nightly.sh --all
✓ done       gabw28d  3 d ago     -                    true
"
        );
        assert_eq!(
            plain(&rows(), 120),
            "\
STATE        ID       LAUNCHED    RAN                 FOLLOW-UP    LABEL   COMMAND
▶ running    6zp0b6e  12 min ago  12 min 05 s of 1 h  waiting      build   cargo build --release
✗ timed out  d4mk77x  2 h ago     1 h 00 min          dead letter  日本語  ./nightly.sh --all
✓ done       gabw28d  3 d ago     0.5 s               -                    true
"
        );
        for width in 40..=200 {
            assert!(plain(&rows(), width).lines().all(|line| line.width() <= width), "{width}");
        }
    }

    #[test]
    fn scenario_147_columns_that_say_nothing_are_left_out_and_states_have_their_colours() {
        let quiet = &rows()[2..];
        assert_eq!(
            render(quiet, Some(80)),
            "\u{1b}[2mSTATE\u{1b}[0m   \u{1b}[2mID\u{1b}[0m       \u{1b}[2mLAUNCHED\u{1b}[0m  \
             \u{1b}[2mRAN\u{1b}[0m    \u{1b}[2mCOMMAND\u{1b}[0m\n\
             \u{1b}[32m✓ done\u{1b}[0m  gabw28d  3 d ago   0.5 s  true\n"
        );
    }

    #[test]
    fn a_command_is_cut_by_what_it_takes_on_the_screen() {
        assert_eq!(cut("short", 20), "short");
        assert_eq!(cut("abcdefgh", 5), "abcd…");
        assert_eq!(cut("日本語日本語", 7), "日本語…");
    }
}
