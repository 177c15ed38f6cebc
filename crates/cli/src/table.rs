//! Jobs for people: columns, durations, and text that cannot play tricks on a terminal.

use anstyle::Style;
use hearback::Job;
pub(crate) use hearback::core::message::duration_text as duration;
use hearback::core::message::{clean_line, command_text};
use hearback::core::{FollowUpState, JobView, Outcome, OutputView, StateWord, Timestamp};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{BAD, BUSY, FAINT, GOOD};

/// The longest command that is printed into a pipe or a file: a command may be a script of megabytes.
const UNWATCHED_MAX: usize = 500;

/// One line for each job, under a heading; the command is cut to `width`.
pub(crate) fn jobs(jobs: &[Job], now: Timestamp, width: Option<usize>) -> String {
    let headings = ["STATE", "ID", "LAUNCHED", "RAN", "ENDED", "FOLLOW-UP", "COMMAND"].map(str::to_owned);
    let rows: Vec<[String; 7]> = jobs.iter().map(|job| row(job, now)).collect();
    let mut widths = headings.each_ref().map(|cell| cell.width());
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(cell.width());
        }
    }
    let before_command: usize = widths[..6].iter().map(|width| width + 2).sum();
    let command_width = width.map_or(UNWATCHED_MAX, |width| width.saturating_sub(before_command).max(20));
    let mut text = line(&headings, &widths, command_width, FAINT, FAINT);
    for (row, job) in rows.iter().zip(jobs) {
        text.push_str(&line(row, &widths, command_width, state_style(job.view.state), Style::new()));
    }
    text
}

fn row(job: &Job, now: Timestamp) -> [String; 7] {
    let view = &job.view;
    [
        format!("{} {}", glyph(view), state_word(view)),
        view.id.short().to_owned(),
        job.launched_at().map_or_else(|| "?".into(), |at| ago(at, now)),
        job.ran(now).map_or_else(String::new, duration),
        view.outcome.as_ref().map_or_else(String::new, Outcome::short),
        follow_up(view.follow_up.state).to_owned(),
        title(job),
    ]
}

/// The label, if there is one, and the command.
pub(crate) fn title(job: &Job) -> String {
    let command =
        job.view.command.as_ref().map_or_else(|| "(its record cannot be read)".into(), command_text);
    clean_line(&match &job.view.label {
        Some(label) => format!("[{label}] {command}"),
        None => command,
    })
}

fn line(cells: &[String; 7], widths: &[usize; 7], command_width: usize, first: Style, rest: Style) -> String {
    let mut text = String::new();
    for (column, cell) in cells[..6].iter().enumerate() {
        let style = if column == 0 { first } else { rest };
        let padding = " ".repeat(widths[column] - cell.width() + 2);
        text.push_str(&format!("{style}{cell}{style:#}{padding}"));
    }
    let command = cut(&cells[6], command_width);
    format!("{text}{rest}{command}{rest:#}\n")
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = text.chars().take_while(|c| {
        let needed = c.width().unwrap_or(0);
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    fits.chain(['…']).collect()
}

/// The state of a job, for people.
pub(crate) fn state_word(view: &JobView) -> &'static str {
    if view.paused { "paused" } else { view.state.as_str() }
}

fn glyph(view: &JobView) -> char {
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

pub(crate) fn follow_up(state: FollowUpState) -> &'static str {
    match state {
        FollowUpState::NotWanted => "-",
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
        dropped => format!("{size}{noun}, {} dropped", bytes(dropped)),
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
    use std::time::Duration;

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

    #[test]
    fn a_command_is_cut_by_what_it_takes_on_the_screen() {
        assert_eq!(cut("short", 20), "short");
        assert_eq!(cut("abcdefgh", 5), "abcd…");
        assert_eq!(cut("日本語日本語", 7), "日本語…");
    }
}
