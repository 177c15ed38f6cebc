//! Jobs over time as bars of text.

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
/// With less room for the names, a bar is below the rest.
const NAME_MIN: usize = 8;
const ENDING: usize = 11;

const WAITS: char = '·';
const RUNS: char = '█';
const TOLD: char = '▸';
const NOT_TOLD: char = '×';

/// Where the parts of a picture are.
enum Layout {
    /// State, id, name, bar and ending in one line.
    Beside { name: usize, bar: usize },
    /// The bar is below the rest.
    Below { width: usize },
}

/// State and id, with the gaps behind them.
const BEFORE_NAME: usize = 2 + 7 + 2;
/// A bar in a line of its own is indented.
const INDENT: usize = 2;

impl Layout {
    fn new(groups: &[Group], width: usize) -> Self {
        let names = groups.iter().flat_map(|group| &group.lanes).map(|lane| lane.name().width());
        let longest = names.max().unwrap_or(0);
        let fixed = BEFORE_NAME + 1 + 1 + ENDING;
        let room = width.saturating_sub(fixed + BAR_MIN) / 3;
        if room < longest.min(NAME_MIN) {
            return Self::Below { width };
        }
        let name = longest.min(room);
        Self::Beside { name, bar: width.saturating_sub(fixed + name).max(BAR_MIN) }
    }

    /// Where a bar begins, and how long it is.
    fn bar(&self) -> (usize, usize) {
        match self {
            Self::Beside { name, bar } => (BEFORE_NAME + name + 1, *bar),
            Self::Below { width } => (INDENT, width.saturating_sub(INDENT).max(BAR_MIN)),
        }
    }
}

/// The jobs, under the names of their sessions. No line is wider than `width`.
pub(crate) fn bars(groups: &[Group], span: Span, now: Timestamp, width: Option<usize>) -> String {
    let width = width.unwrap_or(UNWATCHED);
    let layout = Layout::new(groups, width);
    let (start, bar) = layout.bar();
    let mut text = format!("{}{FAINT}{}{FAINT:#}\n", " ".repeat(start), axis(span, now, bar));
    for group in groups {
        if groups.len() > 1 || group.session.is_some() {
            let session = group.session.as_deref().map_or_else(|| "no session".into(), clean_line);
            text.push_str(&format!("{}\n", table::cut(&session, width)));
        }
        for lane in &group.lanes {
            text.push_str(&row(lane, span, &layout));
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

fn row(lane: &Lane, span: Span, layout: &Layout) -> String {
    let view = &lane.job.view;
    let style = table::state_style(view.state);
    let (start, bar) = layout.bar();
    let drawn = draw(lane, span, bar);
    let ending = table::cut(&table::ending(view), ENDING);
    let first = format!("{style}{}{style:#} {}  ", table::glyph(view), view.id.short());
    match layout {
        Layout::Beside { name: name_width, .. } => {
            let name = table::cut(&lane.name(), *name_width);
            let padding = " ".repeat(name_width.saturating_sub(name.width()));
            format!("{first}{name}{padding} {style}{drawn}{style:#} {ending}\n")
        }
        Layout::Below { width } => {
            let room = width.saturating_sub(BEFORE_NAME + 2 + ending.width());
            let name = table::cut(&lane.name(), room);
            let drawn = drawn.trim_end();
            format!("{first}{name}  {ending}\n{}{style}{drawn}{style:#}\n", " ".repeat(start))
        }
    }
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
