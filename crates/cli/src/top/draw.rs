//! The picture: a heading, the jobs, the selected one with the end of its output, and one line for keys and questions.

use hearback::Job;
use hearback::core::message::{clean, clean_line};
use hearback::core::{FollowUpState, Timestamp};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::Line;
use unicode_width::UnicodeWidthStr;

use super::paint;
use super::view::{Mode, View};
use crate::output::{BAD, FAINT, GOOD};
use crate::table;
use crate::wrap::wrap;

/// The heading and the line for keys.
const AROUND: usize = 2;
/// The least that the selected job gets: its name and some output. With less room, only the list is shown.
const LOWER_MIN: usize = 4;
/// The table has a heading of its own.
const LIST_MIN: usize = 3;

/// The keys, the most wanted first.
const KEYS: [&str; 8] =
    ["q quit", "? help", "/ filter", "Enter output", "k kill", "r retry", "a answer read", "m message"];

/// No line has more than 40 columns.
const HELP: &str = "\
Up Down  select a job (PgUp, Home …)
Enter    its output alone, and back
/        filter: words of the command,
         label, state, session, id
Esc      clear the filter
k        kill it; asks first
r        retry its dead letter
a        mark its answer as read
m        message to its session
Ctrl-L   draw the screen again
Ctrl-Z   suspend
q        quit; the jobs continue
";

/// Draws everything.
pub(crate) fn draw(view: &mut View, now: Timestamp, frame: &mut Frame<'_>) {
    let (width, height) = (usize::from(frame.area().width), usize::from(frame.area().height));
    let body = height.saturating_sub(AROUND);
    let mut rows = vec![Line::default()];
    match view.mode {
        Mode::Help => rows.extend(paint::rows(HELP, width, view.colours).into_iter().take(body)),
        Mode::Output if view.selected().is_some() => rows.extend(selected(view, now, width, body)),
        _ => {
            let upper = list_height(view.shown().count(), body);
            rows.extend(list(view, now, width, upper));
            rows.resize(1 + upper.min(body), Line::default());
            rows.extend(selected(view, now, width, body.saturating_sub(upper)));
        }
    }
    // When it is known which jobs are on the screen.
    rows[0] = heading(view, width);
    rows.resize(height.saturating_sub(1), Line::default());
    let (footer, cursor) = footer(view, width);
    rows.push(footer);
    let columns = frame.area().width;
    for (y, row) in (0..).zip(rows.iter().take(height)) {
        frame.buffer_mut().set_line(0, y, row, columns);
    }
    if let Some(column) = cursor {
        let x = u16::try_from(column.min(width.saturating_sub(1))).unwrap_or_default();
        frame.set_cursor_position((x, frame.area().height.saturating_sub(1)));
    }
}

/// How many rows the list gets, its heading included.
fn list_height(jobs: usize, body: usize) -> usize {
    let wanted = (jobs + 1).max(LIST_MIN);
    let most = (body / 2).max(LIST_MIN);
    match wanted.min(most) {
        height if body < height + LOWER_MIN => body,
        height => height,
    }
}

fn heading(view: &View, width: usize) -> Line<'static> {
    let running = view.count_running();
    let more = if view.is_cut { "+" } else { "" };
    let mut text = format!("hearback: {running} running, {}{more} ended", view.count() - running);
    if !matches!(view.mode, Mode::Help | Mode::Output) {
        text.push_str(&beyond(view.first, view.shown().count().saturating_sub(view.first + view.page)));
    }
    if let Some(session) = view.session() {
        text.push_str(&format!(" in session `{session}`"));
    }
    if view.unread > 0 {
        text.push_str(&format!(", {} cannot be read", view.unread));
    }
    if !view.filter.is_empty() && view.mode != Mode::Filter {
        text.push_str(&format!("; {} match `{}`", view.shown().count(), view.filter));
    }
    Line::from(table::cut(&text, width)).style(Modifier::BOLD)
}

/// How many jobs are above and below the screen.
fn beyond(above: usize, below: usize) -> String {
    match (above, below) {
        (0, 0) => String::new(),
        (0, below) => format!(" ({below} below)"),
        (above, 0) => format!(" ({above} above)"),
        // Both in words do not fit into 40 columns.
        (above, below) => format!(" (↑{above} ↓{below})"),
    }
}

fn list(view: &mut View, now: Timestamp, width: usize, height: usize) -> Vec<Line<'static>> {
    let jobs: Vec<Job> = view.shown().cloned().collect();
    if jobs.is_empty() {
        return paint::rows(&view.nothing(), width, view.colours).into_iter().take(height).collect();
    }
    let room = height.saturating_sub(1);
    let place = view.place();
    view.first =
        view.first.min(place).max((place + 1).saturating_sub(room)).min(jobs.len().saturating_sub(room));
    view.page = room;
    let mut rows = paint::rows(&table::jobs(&jobs, now, Some(width)), width, view.colours);
    let heading = rows.remove(0);
    if let Some(row) = rows.get_mut(place) {
        // The whole row: the selection has to be seen without colours, too.
        let used: usize = row.spans.iter().map(|span| span.content.width()).sum();
        row.spans.push(" ".repeat(width.saturating_sub(used)).into());
        row.spans.iter_mut().for_each(|span| span.style = Style::new().add_modifier(Modifier::REVERSED));
    }
    std::iter::once(heading).chain(rows.into_iter().skip(view.first).take(room)).collect()
}

/// The selected job: its name, what is to be known about it, and the end of its output.
fn selected(view: &mut View, now: Timestamp, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(job) = view.selected().filter(|_| height > 0).cloned() else { return Vec::new() };
    let about = table::cut(&format!("── {} {} ", job.view.id.short(), table::title(&job)), width);
    let line = "─".repeat(width.saturating_sub(about.width()));
    let mut rows = paint::rows(&format!("{FAINT}{about}{line}{FAINT:#}"), width, view.colours);
    let facts = wrap(&facts(view, &job, now), Some(width), 0);
    // The output is what is looked for: the rest leaves at least half of the room to it.
    let facts = paint::rows(&facts, width, view.colours).into_iter().take(height.saturating_sub(1) / 2);
    rows.extend(facts);
    let room = height.saturating_sub(rows.len());
    let mut output = paint::rows(&view.output.text, width, view.colours);
    if view.output.omitted > 0 {
        let before = format!("{FAINT}[{} before this]{FAINT:#}", table::bytes(view.output.omitted));
        output.splice(0..0, paint::rows(&before, width, view.colours));
    }
    if output.is_empty() {
        let none = if job.view.state.has_ended() { "no output" } else { "no output yet" };
        output = paint::rows(&format!("{FAINT}{none}{FAINT:#}"), width, view.colours);
    }
    if view.mode == Mode::Output {
        view.page = room;
        view.below = view.below.min(output.len().saturating_sub(room));
    }
    let end = output.len() - view.below.min(output.len());
    rows.extend(output.drain(end.saturating_sub(room)..end));
    rows
}

/// What is to be known about a job besides its row in the table.
fn facts(top: &View, job: &Job, now: Timestamp) -> String {
    let view = &job.view;
    let style = table::state_style(view.state);
    let ending =
        view.outcome.as_ref().map_or_else(|| table::state_word(view).to_owned(), ToString::to_string);
    let mut text = format!("{style}{}{style:#}", clean_line(&ending));
    if let Some(ran) = job.ran(now) {
        text.push_str(&format!(" · {}", table::duration(ran)));
    }
    if let Some(session) = &view.session {
        text.push_str(&format!(" · session {}", clean_line(session.as_str())));
    }
    text.push_str(&format!(" · {}\n", table::output(&view.output, "")));
    if let Some((_, used)) = top.used.as_ref().filter(|(id, used)| *id == view.id && !used.is_empty()) {
        text.push_str(&format!("used: {used}\n"));
    }
    if view.follow_up.state == FollowUpState::DeadLetter {
        text.push_str(&format!("follow-up: {}", table::delivery(view)));
        if let Some(error) = &view.follow_up.error {
            text.push_str(&format!(": {}", clean_line(error)));
        }
        text.push('\n');
    }
    if let Some(answer) = &view.answer {
        text.push_str(&format!("answer: {}\n", clean_line(&answer.to_string())));
        for line in answer.words().into_iter().flat_map(|words| words.text.lines()) {
            text.push_str(&format!("{FAINT}│{FAINT:#} {}\n", clean(line)));
        }
    }
    text
}

/// The last line, and the column of the cursor while something is typed.
fn footer(view: &View, width: usize) -> (Line<'static>, Option<usize>) {
    let typing = |before: &str, typed: &str| {
        let text = clean_line(&format!("{before}{typed}"));
        // The end of what is typed has to be seen.
        let hidden = text.width().saturating_sub(width.saturating_sub(1));
        let mut left = hidden;
        let shown: String = text
            .chars()
            .skip_while(|c| {
                let is_hidden = left > 0;
                left = left.saturating_sub(unicode_width::UnicodeWidthChar::width(*c).unwrap_or(0));
                is_hidden
            })
            .collect();
        let column = shown.width();
        (Line::from(shown), Some(column))
    };
    let bold = |text: String| (Line::from(table::cut(&text, width)).style(Modifier::BOLD), None);
    match &view.mode {
        Mode::Filter => return typing("/", &view.filter),
        Mode::Message(session, text) => {
            return typing(&format!("to {}: ", clean_line(session.as_str())), text);
        }
        Mode::Kill(id) => {
            return bold(format!("kill {} and all it started? y/n", id.short()));
        }
        _ => {}
    }
    let (style, text) = match &view.notice {
        Some(Ok(text)) => (GOOD, table::cut(text, width)),
        Some(Err(text)) => (BAD, table::cut(text, width)),
        None => {
            let mut keys = String::new();
            for key in KEYS {
                let gap = if keys.is_empty() { "" } else { "  " };
                if keys.width() + gap.len() + key.len() <= width {
                    keys.push_str(gap);
                    keys.push_str(key);
                }
            }
            (FAINT, keys)
        }
    };
    let rows = paint::rows(&format!("{style}{text}{style:#}"), width, view.colours);
    (rows.into_iter().next().unwrap_or_default(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback::Select;
    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;

    fn picture(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(view, Timestamp::from_millis(0), frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(row).collect()
    }

    #[test]
    fn no_screen_is_too_small() {
        let mut view = View::new(Select::default(), true);
        for mode in [Mode::Jobs, Mode::Output, Mode::Help, Mode::Filter] {
            for (width, height) in [(1, 1), (2, 1), (3, 2), (1, 50), (40, 3), (10, 10), (300, 80)] {
                view.mode = mode.clone();
                assert_eq!(picture(&mut view, width, height).len(), usize::from(height));
            }
        }
    }

    #[test]
    fn keys_are_left_out_where_there_is_no_room() {
        let mut view = View::new(Select::default(), true);
        let screen = picture(&mut view, 40, 12);
        assert_eq!(screen[0], "hearback: 0 running, 0 ended");
        assert_eq!(screen[1], "no jobs; try: hearback launch -- sleep 5");
        assert_eq!(screen[11], "q quit  ? help  / filter  Enter output");
        assert_eq!(
            picture(&mut view, 80, 12)[11],
            "q quit  ? help  / filter  Enter output  k kill  r retry  a answer read"
        );
        view.say(Err("a reason that is longer than the screen is wide".into()));
        assert_eq!(picture(&mut view, 20, 12)[11], "a reason that is lo…");
    }

    #[test]
    fn the_heading_counts_the_jobs_that_are_not_on_the_screen() {
        for (above, below, expected) in
            [(0, 0, ""), (0, 3, " (3 below)"), (2, 0, " (2 above)"), (2, 3, " (↑2 ↓3)")]
        {
            assert_eq!(beyond(above, below), expected);
        }
    }

    #[test]
    fn the_list_leaves_room_for_the_selected_job() {
        for (jobs, body, expected) in [(0, 22, 3), (3, 22, 4), (50, 22, 11), (50, 6, 6), (3, 8, 4), (9, 0, 0)]
        {
            assert_eq!(list_height(jobs, body), expected, "{jobs} jobs, {body} rows");
        }
    }
}
