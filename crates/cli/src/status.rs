//! What a person sees while a command waits for jobs: one line that shows that they live, or how far their kill is, and
//! after Ctrl-C, that they or their kill continue.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hearback::core::message::{clean_line, limit_text, shown};
use hearback::core::{JobId, Timestamp};
use hearback::{Hearback, Job, Options, StopWatch};
use unicode_width::UnicodeWidthStr;

use crate::commands;
use crate::output::Output;
use crate::table;

const TICK: Duration = Duration::from_secs(1);
/// Only Ctrl-C is listened for.
const LONG: Duration = Duration::from_secs(60 * 60);
/// Enough for the last line of any output.
const TAIL_BYTES: u64 = 4 * 1024;
/// Killed by Ctrl-C, as shells count.
pub(crate) const INTERRUPTED: i32 = 130;

/// What is shown while a command waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// A line that is drawn again every second.
    Line,
    /// Nothing: the output of the job is on the screen.
    Nothing,
}

/// Shows a person that jobs live. Without a terminal it does nothing, and Ctrl-C ends the process as ever.
#[derive(Debug)]
pub(crate) struct Status {
    line: Option<Arc<Mutex<Line>>>,
}

#[derive(Debug, Default)]
struct Line {
    /// How many columns the line takes that is on the screen.
    width: usize,
    is_over: bool,
}

impl Status {
    /// Begins to show the jobs.
    pub(crate) fn of(ids: &[JobId], show: Show, output: &Output) -> Self {
        let none = Self { line: None };
        if !cfg!(feature = "live") || !output.is_guided() || ids.is_empty() {
            return none;
        }
        // Before the wait begins, so that no Ctrl-C is missed.
        let Ok(stop) = StopWatch::new() else { return none };
        let line = Arc::new(Mutex::new(Line::default()));
        let (ids, output, drawn) = (ids.to_vec(), *output, Arc::clone(&line));
        let thread = std::thread::Builder::new().name("status".into());
        let started = thread.spawn(move || watch(&ids, show, &output, &stop, &drawn));
        if started.is_ok() { Self { line: Some(line) } } else { none }
    }

    /// Takes the line off the screen, so that something else can be printed there.
    pub(crate) fn hide(&self) {
        if let Some(line) = &self.line {
            lock(line).draw("");
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            let mut line = lock(line);
            line.draw("");
            line.is_over = true;
        }
    }
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// Draws over what is there. Without escape sequences, which some terminals do not know.
    fn draw(&mut self, text: &str) {
        if self.is_over || (text.is_empty() && self.width == 0) {
            return;
        }
        let padding = " ".repeat(self.width.saturating_sub(text.width()));
        let back = if text.is_empty() { "\r" } else { "" };
        let mut screen = std::io::stderr().lock();
        let _ = write!(screen, "\r{text}{padding}{back}").and_then(|()| screen.flush());
        self.width = text.width();
    }
}

fn watch(ids: &[JobId], show: Show, output: &Output, stop: &StopWatch, line: &Mutex<Line>) {
    // The caller waits with a `Hearback` of its own.
    let Ok(hearback) = Hearback::open(Options::default().to_read()) else { return };
    let look = || -> Vec<Job> { ids.iter().filter_map(|id| hearback.look(id).ok().flatten()).collect() };
    loop {
        let is_interrupted = stop.wait(if show == Show::Line { TICK } else { LONG });
        let mut line = lock(line);
        if is_interrupted {
            line.draw("");
            if !line.is_over {
                say_goodbye(look(), hearback.now(), output);
            }
            std::process::exit(INTERRUPTED);
        }
        if line.is_over {
            return;
        }
        if show == Show::Line {
            let width = output.screen_width().unwrap_or(80).saturating_sub(1);
            line.draw(&table::cut(&status(&hearback, &look()), width));
        }
    }
}

/// Says that the jobs continue, or that their kill does, and how to come back.
fn say_goodbye(mut jobs: Vec<Job>, now: Timestamp, output: &Output) {
    jobs.retain(|job| !job.view.state.has_ended());
    if !jobs.is_empty() && jobs.iter().all(|job| table::kill_text(job, now).is_some()) {
        return say_kill_continues(&jobs, output);
    }
    match &jobs[..] {
        [] => return,
        [job] => output.say(&format!("\nstopped waiting; job {} is still running", job.view.id.short())),
        jobs => output.say(&format!("\nstopped waiting; {} jobs are still running", jobs.len())),
    }
    output.next(&commands::to_come_back(&jobs));
}

/// Says that the supervisors carry out the kills without this process, and how to look.
fn say_kill_continues(jobs: &[Job], output: &Output) {
    match jobs {
        [job] => {
            let short = job.view.id.short();
            output.say(&format!("\nstopped waiting; the kill of job {short} continues"));
            output.next(&["show", "wait"].map(|command| commands::typed(command, &job.view)));
        }
        jobs => {
            output.say(&format!("\nstopped waiting; the kill of {} jobs continues", jobs.len()));
            output.next(&commands::to_come_back(jobs));
        }
    }
}

/// The line: how long, how far, and the last line of the output.
fn status(hearback: &Hearback, jobs: &[Job]) -> String {
    let running: Vec<_> = jobs.iter().filter(|job| !job.view.state.has_ended()).collect();
    let Some(job) = running.first() else { return String::new() };
    let mut parts = Vec::new();
    if jobs.len() > 1 {
        parts.push(format!("{} of {} jobs running", running.len(), jobs.len()));
    } else if let Some(label) = &job.view.label {
        parts.push(clean_line(label));
    }
    if let Some(kill) = table::kill_text(job, hearback.now()) {
        parts.push(kill);
    } else if let Some(ran) = job.ran(hearback.now()) {
        let limit = job.view.timeout_ms.filter(|_| jobs.len() == 1);
        let of =
            limit.map_or_else(String::new, |ms| format!(" of {}", limit_text(Duration::from_millis(ms))));
        parts.push(format!("{}{of}", table::duration(ran)));
    }
    let last = last_line(hearback, job);
    if let Some(percent) = percent(&last) {
        parts.push(percent.to_owned());
    }
    if !last.is_empty() {
        parts.push(last);
    }
    format!("{} {}", table::glyph(&job.view), parts.join(" · "))
}

fn last_line(hearback: &Hearback, job: &Job) -> String {
    let Ok(excerpt) = hearback.excerpt(job, 0, TAIL_BYTES) else { return String::new() };
    let end = if excerpt.tail.is_empty() { excerpt.head } else { excerpt.tail };
    let text = hearback.secrets().masked(&shown(&end));
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    clean_line(last.trim())
}

/// The last percentage in a line, such as `45%` or `99.5 %`.
fn percent(line: &str) -> Option<&str> {
    let at = line.rfind('%')?;
    let number = line[..at].trim_end();
    let start = number
        .rfind(|c: char| !c.is_ascii_digit() && c != '.')
        .map_or(0, |before| before + number[before..].chars().next().map_or(1, char::len_utf8));
    let digits = number[start..].trim_start_matches('.');
    let is_percentage = digits.parse::<f64>().is_ok_and(|value| (0.0..=100.0).contains(&value));
    is_percentage.then_some(&line[number.len() - digits.len()..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_148_a_percentage_is_found_where_there_is_one() {
        for (line, expected) in [
            ("45%", Some("45%")),
            ("  [####    ] 45.5% of 3 GiB", Some("45.5%")),
            ("1% … 2%", Some("2%")),
            ("größe→99 %", Some("99 %")),
            ("about 250%", None),
            ("%", None),
            ("100% sure", Some("100%")),
            ("no number", None),
            ("...%", None),
        ] {
            assert_eq!(percent(line), expected, "{line}");
        }
    }
}
