//! Jobs over time as one page: nothing is loaded from elsewhere, and no script runs. It follows the colours of the
//! reader's system, prints, and every job can be opened with the keyboard.

use std::fmt::Write as _;
use std::time::Duration;

use hearback::core::message::{duration_text, limits_text};
use hearback::core::{StateWord, Timestamp};

use super::{Group, Lane, Span};
use crate::table;

const STYLE: &str = include_str!("page.css");
/// How many times stand on the axis besides the first.
const TICKS: u32 = 3;

/// The page as HTML.
pub(crate) fn page(groups: &[Group], span: Span, now: Timestamp) -> String {
    let jobs = match groups.iter().map(|group| group.lanes.len()).sum::<usize>() {
        1 => "1 job".to_owned(),
        n => format!("{n} jobs"),
    };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>hearback: {jobs}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>Jobs over time</h1>\n<p>{jobs}, {} to {} (UTC), {} in all. Made at {}.</p>\n</header>\n",
        minute(span.from),
        minute(span.to),
        duration_text(length(span)),
        minute(now),
    );
    html.push_str(LEGEND);
    push_axis(&mut html, span);
    for group in groups {
        let title = group
            .session
            .as_deref()
            .map_or_else(|| "No session".to_owned(), |name| format!("Session {name}"));
        let _ = writeln!(html, "<section>\n<h2>{}</h2>", escaped(&title));
        for lane in &group.lanes {
            push_lane(&mut html, lane, span);
        }
        html.push_str("</section>\n");
    }
    html.push_str("</body>\n</html>\n");
    html
}

const LEGEND: &str = "\
<p class=\"legend\"><span class=\"key done\"></span>done <span class=\"key failed\"></span>failed \
<span class=\"key running\"></span>running <span class=\"key wait\"></span>waiting to start \
<span class=\"told\">▸</span>owner told <span class=\"untold\">×</span>attempt failed</p>\n";

fn length(span: Span) -> Duration {
    Duration::from_millis(span.to.millis_since(span.from))
}

fn push_axis(html: &mut String, span: Span) {
    html.push_str("<div class=\"axis\" aria-hidden=\"true\"><span></span><span class=\"track\">");
    for tick in 0..=TICKS {
        let part = f64::from(tick) / f64::from(TICKS);
        let after = length(span).mul_f64(part);
        let text = if tick == 0 { "0".to_owned() } else { format!("+{}", duration_text(after)) };
        let side = if tick == TICKS { " class=\"last\"" } else { "" };
        let _ = write!(html, "<i{side} style=\"left:{:.3}%\">{}</i>", part * 100.0, escaped(&text));
    }
    html.push_str("</span><span></span></div>\n");
}

fn push_lane(html: &mut String, lane: &Lane, span: Span) {
    let view = &lane.job.view;
    let class = match view.state {
        StateWord::Done => "done",
        StateWord::Failed => "failed",
        StateWord::Starting | StateWord::Running => "running",
        StateWord::Ended => "ended",
    };
    let percent = |at: Timestamp| span.place(at) * 100.0;
    let bar = |class: &str, from: Timestamp, to: Timestamp| {
        let width = percent(to) - percent(from);
        format!("<span class=\"bar {class}\" style=\"left:{:.3}%;width:{width:.3}%\"></span>", percent(from))
    };
    let mut track = String::new();
    let started = lane.started.unwrap_or(lane.until);
    if started > lane.launched {
        track.push_str(&bar("wait", lane.launched, started));
    }
    track.push_str(&bar(class, started, lane.until));
    for attempt in &lane.attempts {
        let (class, sign) = if attempt.error.is_some() { ("untold", '×') } else { ("told", '▸') };
        let _ = write!(track, "<b class=\"{class}\" style=\"left:{:.3}%\">{sign}</b>", percent(attempt.at));
    }
    let _ = writeln!(
        html,
        "<details class=\"job\">\n<summary><span class=\"name\">{} {}</span><span class=\"track\">{track}</span>\
         <span class=\"how {class}\">{}</span></summary>\n<dl>",
        table::glyph(view),
        escaped(&lane.name()),
        escaped(&table::ending(view)),
    );
    for (name, value) in details(lane) {
        let _ = writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    html.push_str("</dl>\n</details>\n");
}

fn details(lane: &Lane) -> Vec<(&'static str, String)> {
    let view = &lane.job.view;
    let mut rows = vec![("job", view.id.to_string()), ("command", table::command(&lane.job))];
    rows.extend(view.outcome.as_ref().map(|outcome| ("outcome", outcome.to_string())));
    rows.push(("launched", lane.launched.to_string()));
    rows.extend(view.ended_at.clone().map(|at| ("ended", at)));
    let ran = Duration::from_millis(lane.until.millis_since(lane.started.unwrap_or(lane.until)));
    rows.push(("ran", duration_text(ran)));
    rows.push(("limit", limits_text(view)));
    rows.extend(view.cwd.as_ref().map(|cwd| ("directory", cwd.to_string())));
    rows.push(("output", table::output(&view.output, "")));
    rows.push(("follow-up", table::delivery(view)));
    for (n, attempt) in lane.attempts.iter().enumerate() {
        let sink = attempt.sink.as_deref().unwrap_or("?");
        let how = attempt.error.as_deref().unwrap_or("no error is recorded");
        rows.push(("attempt", format!("{}: {} through {sink}: {how}", n + 1, attempt.at)));
    }
    rows.extend(view.notes.iter().map(|note| ("note", note.clone())));
    rows
}

/// A moment to the second, without what a person does not need.
fn minute(at: Timestamp) -> String {
    at.to_string().replace('T', " ").chars().take(19).collect()
}

/// Text as HTML: commands and labels are of unknown origin.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in hearback::core::message::clean_line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_unknown_origin_stays_text() {
        assert_eq!(escaped("<script>\"&'\n"), "&lt;script&gt;&quot;&amp;&#39;⏎");
    }
}
