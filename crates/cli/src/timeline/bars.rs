//! Jobs over time as bars of text.

use anstyle::Style;
use hearback::core::Timestamp;
use hearback::core::message::clean_line;
use unicode_width::UnicodeWidthStr;

use super::{Group, Lane, Span};
use crate::output::FAINT;
use crate::table;

/// Into a pipe or a file.
const UNWATCHED: usize = 100;
/// A picture narrower than this shows nothing.
const BAR_MIN: usize = 10;
const ENDING: usize = 11;

const WAITS: char = '·';
const RUNS: char = '█';
const TOLD: char = '▸';
const NOT_TOLD: char = '×';

/// One line for each job, under the name of its session. No line is wider than `width`.
pub(crate) fn bars(groups: &[Group], span: Span, now: Timestamp, width: Option<usize>) -> String {
    let width = width.unwrap_or(UNWATCHED);
    let longest = groups.iter().flat_map(|group| &group.lanes).map(|lane| lane.name().width()).max();
    // State, id, bar, and how it ended; what is left is for the name.
    let fixed = 2 + 7 + 2 + 1 + 1 + ENDING;
    let name = longest.unwrap_or(0).min(width.saturating_sub(fixed + BAR_MIN) / 3);
    let bar = width.saturating_sub(fixed + name).max(BAR_MIN);
    let mut text = format!("{}{FAINT}{}{FAINT:#}\n", " ".repeat(2 + 7 + 2 + name + 1), axis(span, now, bar));
    for group in groups {
        if groups.len() > 1 || group.session.is_some() {
            let session = group.session.as_deref().map_or_else(|| "no session".into(), clean_line);
            text.push_str(&format!("{}\n", table::cut(&session, width)));
        }
        for lane in &group.lanes {
            text.push_str(&row(lane, span, name, bar));
        }
    }
    text
}

/// What the signs mean that are in the bars.
pub(crate) fn legend(bars: &str) -> String {
    let signs = [
        (WAITS, "waits to start"),
        (RUNS, "runs"),
        (TOLD, "its owner is told"),
        (NOT_TOLD, "telling its owner failed"),
    ];
    let signs = signs.into_iter().filter(|(sign, _)| bars.contains(*sign));
    signs.map(|(sign, meaning)| format!("{sign} {meaning}")).collect::<Vec<_>>().join(", ")
}

/// When the picture begins and ends.
fn axis(span: Span, now: Timestamp, bar: usize) -> String {
    let from = table::ago(span.from, now);
    let to = if span.to >= now { "now".to_owned() } else { table::ago(span.to, now) };
    let line = bar.saturating_sub(from.width() + to.width() + 2);
    table::cut(&format!("{from} {} {to}", "─".repeat(line)), bar)
}

fn row(lane: &Lane, span: Span, name_width: usize, bar: usize) -> String {
    let view = &lane.job.view;
    let style = table::state_style(view.state);
    let name = table::cut(&lane.name(), name_width);
    let padding = " ".repeat(name_width.saturating_sub(name.width()));
    let drawn = draw(lane, span, bar);
    let ending = table::cut(&table::ending(view), ENDING);
    let glyph = table::glyph(view);
    let short = view.id.short();
    format!(
        "{style}{glyph}{style:#} {short}  {name}{padding} {style}{drawn}{style:#} {plain}{ending}{plain:#}\n",
        plain = Style::new()
    )
}

/// The bar: waiting, running, and each attempt to tell the owner.
fn draw(lane: &Lane, span: Span, width: usize) -> String {
    let column = |at: Timestamp| ((span.place(at) * width as f64) as usize).min(width - 1);
    let mut cells = vec![' '; width];
    let (from, until) = (column(lane.launched), column(lane.until));
    let started = column(lane.started.unwrap_or(lane.until));
    for (at, cell) in cells.iter_mut().enumerate().take(until + 1).skip(from) {
        *cell = if at < started { WAITS } else { RUNS };
    }
    for attempt in &lane.attempts {
        let at = column(attempt.at);
        // Beside the bar, never on it.
        let at = if cells[at] == ' ' { at } else { (at + 1).min(width - 1) };
        cells[at] = if attempt.error.is_some() { NOT_TOLD } else { TOLD };
    }
    cells.into_iter().collect()
}
