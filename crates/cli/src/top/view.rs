//! What `top` shows and what the keys mean: the jobs, which of them is selected, the filter, and what is being typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use hearback::core::message::clean_line;
use hearback::core::{FollowUpState, JobId, Session};
use hearback::{ChangedJobs, Hearback, Job, Select};

use super::ShownOutput;
use crate::error::CliError;
use crate::{table, usage};

/// What a key asks for that the view cannot do itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Quit,
    Suspend,
    /// Take the terminal again, and draw everything.
    Redraw,
    Kill(JobId),
    Retry(JobId),
    Acknowledge(JobId),
    Send(Session, String),
}

/// What the keys are for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Jobs,
    /// The output has the whole screen.
    Output,
    Help,
    /// The person is asked whether this job is to be killed.
    Kill(JobId),
    Filter,
    Message(Session, String),
}

pub(crate) struct View {
    select: Select,
    /// Those that run, newest first; then those that have ended, the last to end first.
    jobs: Vec<Job>,
    /// Whether jobs of history were left out.
    pub(super) is_cut: bool,
    /// How many jobs could not be read.
    pub(super) unread: usize,
    selected: Option<JobId>,
    /// Where the selected job is among those shown.
    place: usize,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) output: ShownOutput,
    /// What the selected job has used.
    pub(super) used: Option<(JobId, String)>,
    /// How many rows below those shown the output goes on.
    pub(super) below: usize,
    /// What the last action came to.
    pub(super) notice: Option<Result<String, String>>,
    pub(super) colours: bool,
    /// How many rows a page has, and which job is the first on the screen: the last picture says so.
    pub(super) page: usize,
    pub(super) first: usize,
}

impl View {
    pub(crate) fn new(select: Select, colours: bool) -> Self {
        Self {
            select,
            jobs: Vec::new(),
            is_cut: false,
            unread: 0,
            selected: None,
            place: 0,
            filter: String::new(),
            mode: Mode::Jobs,
            output: ShownOutput::default(),
            used: None,
            below: 0,
            notice: None,
            colours,
            page: 1,
            first: 0,
        }
    }

    /// Takes over what has changed.
    pub(crate) fn update(&mut self, hearback: &Hearback, changed: ChangedJobs) -> Result<(), CliError> {
        match changed {
            ChangedJobs::Jobs(changed) => {
                for (id, job) in changed {
                    self.jobs.retain(|known| known.view.id != id);
                    self.jobs.extend(job.filter(|job| self.select.wants(job)));
                }
            }
            _ => {
                let listing = hearback.jobs(&self.select)?;
                (self.jobs, self.is_cut) = (listing.jobs, listing.truncated);
                self.unread = listing.problems.len();
            }
        }
        self.arrange();
        Ok(())
    }

    /// Looks again at the jobs on the screen that run: no event tells that one was paused.
    pub(crate) fn look_again(&mut self, hearback: &Hearback) {
        let on_screen = self.shown().skip(self.first).take(self.page);
        let running: Vec<JobId> =
            on_screen.filter(|job| !job.view.state.has_ended()).map(|job| job.view.id.clone()).collect();
        self.look_at(hearback, &running);
        self.used = None;
    }

    /// Looks again at the selected job, whose output has grown.
    pub(crate) fn look_at_selected(&mut self, hearback: &Hearback) {
        let selected: Vec<JobId> = self.selected.iter().cloned().collect();
        self.look_at(hearback, &selected);
    }

    fn look_at(&mut self, hearback: &Hearback, ids: &[JobId]) {
        for job in self.jobs.iter_mut().filter(|job| ids.contains(&job.view.id)) {
            if let Ok(Some(seen)) = hearback.look(&job.view.id) {
                *job = seen;
            }
        }
        self.arrange();
    }

    /// Puts the jobs in order, and selects another one if the selected one is no longer shown.
    fn arrange(&mut self) {
        self.jobs.sort_by(|one, other| {
            let key = |job: &Job| (job.view.state.has_ended(), job.view.ended_at.clone());
            let ((ended, at), (other_ended, other_at)) = (key(one), key(other));
            let newest_first = || (other_at, &other.view.id).cmp(&(at, &one.view.id));
            ended.cmp(&other_ended).then_with(newest_first)
        });
        let place = self.shown().position(|job| Some(&job.view.id) == self.selected.as_ref());
        match place {
            Some(place) => self.place = place,
            None => self.select_at(self.place),
        }
    }

    fn select_at(&mut self, place: usize) {
        self.place = place.min(self.shown().count().saturating_sub(1));
        let selected = self.shown().nth(self.place).map(|job| job.view.id.clone());
        if self.selected != selected {
            (self.selected, self.below) = (selected, 0);
        }
    }

    /// The jobs that the filter lets through.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| matches(&self.filter, &words(job)))
    }

    pub(crate) fn selected(&self) -> Option<&Job> {
        self.shown().nth(self.place)
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn count_running(&self) -> usize {
        self.jobs.iter().filter(|job| !job.view.state.has_ended()).count()
    }

    /// The session whose jobs alone are shown.
    pub(super) fn session(&self) -> Option<String> {
        self.select.scope.session().map(|session| clean_line(session.as_str()))
    }

    pub(super) fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Why no job is shown.
    pub(super) fn nothing(&self) -> String {
        match (self.filter.is_empty(), self.session()) {
            (false, _) => "no jobs match; Esc clears the filter".into(),
            (true, Some(session)) => {
                format!("no jobs in session `{session}`; --all-sessions shows the jobs of every session")
            }
            (true, None) => "no jobs; try: hearback launch -- sleep 5".into(),
        }
    }

    /// Reads the output of the selected job again, unless the person reads what is further up.
    pub(crate) fn read_output(&mut self, hearback: &Hearback) {
        let selected = self.selected().cloned();
        // Once a second, or for another job: it takes a look at each of its processes.
        let used_by = self.used.as_ref().map(|(id, _)| id);
        if used_by != selected.as_ref().map(|job| &job.view.id) {
            let used = |job: &Job| usage::pictures(hearback, job).or_else(|| usage::total(hearback, job));
            self.used = selected.as_ref().map(|job| (job.view.id.clone(), used(job).unwrap_or_default()));
        }
        match selected {
            Some(job) if self.below == 0 => self.output.read(hearback, &job, self.colours),
            Some(_) => {}
            None => self.output = ShownOutput::default(),
        }
    }

    /// Says what an action came to.
    pub(crate) fn say(&mut self, notice: Result<String, String>) {
        self.notice = Some(notice);
    }

    /// Pasted text is typed where text is typed, and nothing anywhere else.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(typed) = self.typed() {
            typed.push_str(&clean_line(text.trim_end()));
            self.arrange();
        }
    }

    fn typed(&mut self) -> Option<&mut String> {
        match &mut self.mode {
            Mode::Filter => Some(&mut self.filter),
            Mode::Message(_, text) => Some(text),
            _ => None,
        }
    }

    /// Does what a key means, and returns what is left to do.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Action> {
        self.notice = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Action::Quit),
                KeyCode::Char('z') => return Some(Action::Suspend),
                KeyCode::Char('l') => return Some(Action::Redraw),
                KeyCode::Char('p') => self.go(-1),
                KeyCode::Char('n') => self.go(1),
                KeyCode::Char('u') => {
                    self.typed().map(String::clear);
                    self.arrange();
                }
                _ => {}
            }
            return None;
        }
        match &self.mode {
            Mode::Filter | Mode::Message(..) => self.type_key(key.code),
            Mode::Kill(id) => {
                let id = id.clone();
                self.mode = Mode::Jobs;
                (key.code == KeyCode::Char('y')).then_some(Action::Kill(id))
            }
            Mode::Help => {
                self.mode = Mode::Jobs;
                (key.code == KeyCode::Char('q')).then_some(Action::Quit)
            }
            Mode::Jobs | Mode::Output => self.command(key.code),
        }
    }

    fn command(&mut self, key: KeyCode) -> Option<Action> {
        let page = isize::try_from(self.page.max(1)).unwrap_or(1);
        match key {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Enter if self.mode == Mode::Jobs => self.mode = Mode::Output,
            KeyCode::Enter => self.leave_output(),
            KeyCode::Esc if self.mode == Mode::Output => self.leave_output(),
            KeyCode::Esc => {
                self.filter.clear();
                self.arrange();
            }
            KeyCode::Up => self.go(-1),
            KeyCode::Down => self.go(1),
            KeyCode::PageUp => self.go(-page),
            KeyCode::PageDown => self.go(page),
            KeyCode::Home => self.go(isize::MIN),
            KeyCode::End => self.go(isize::MAX),
            KeyCode::Char(letter @ ('k' | 'r' | 'a' | 'm')) => {
                let Some(job) = self.selected().cloned() else {
                    self.notice = Some(Err("no job is selected".into()));
                    return None;
                };
                match asked(letter, &job) {
                    Ok(Asked::Mode(mode)) => self.mode = mode,
                    Ok(Asked::Action(action)) => return Some(action),
                    Err(why) => self.notice = Some(Err(why)),
                }
            }
            _ => {}
        }
        None
    }

    fn leave_output(&mut self) {
        (self.mode, self.below) = (Mode::Jobs, 0);
    }

    /// Goes down by so many jobs, or rows of output.
    fn go(&mut self, by: isize) {
        if self.mode == Mode::Output {
            self.below = self.below.saturating_add_signed(by.saturating_neg());
        } else {
            self.select_at(self.place.saturating_add_signed(by));
        }
    }

    fn type_key(&mut self, key: KeyCode) -> Option<Action> {
        match key {
            KeyCode::Enter => {
                if let Mode::Message(session, text) = std::mem::replace(&mut self.mode, Mode::Jobs)
                    && !text.trim().is_empty()
                {
                    return Some(Action::Send(session, text));
                }
            }
            KeyCode::Esc => {
                if self.mode == Mode::Filter {
                    self.filter.clear();
                }
                self.mode = Mode::Jobs;
            }
            KeyCode::Backspace => drop(self.typed().and_then(String::pop)),
            KeyCode::Up => self.go(-1),
            KeyCode::Down => self.go(1),
            KeyCode::Char(c) => {
                if let Some(typed) = self.typed() {
                    typed.push(c);
                }
            }
            _ => {}
        }
        self.arrange();
        None
    }
}

enum Asked {
    Mode(Mode),
    Action(Action),
}

/// What a letter means for a job, or why it means nothing.
fn asked(letter: char, job: &Job) -> Result<Asked, String> {
    let (view, id) = (&job.view, job.view.id.clone());
    let short = id.short();
    match letter {
        'k' if view.state.has_ended() => Err(format!("job {short} has ended")),
        'k' => Ok(Asked::Mode(Mode::Kill(id))),
        'r' if view.follow_up.state == FollowUpState::DeadLetter => Ok(Asked::Action(Action::Retry(id))),
        'r' => Err(format!("the follow-up of {short} is no dead letter: {}", table::delivery(view))),
        'a' if !job.is_asked() => Err(format!("job {short} has no answer: `launch` started it, not `ask`")),
        'a' if view.answer.is_none() => Err(format!("job {short} has not answered yet")),
        'a' => Ok(Asked::Action(Action::Acknowledge(id))),
        _ => match &view.session {
            Some(session) => Ok(Asked::Mode(Mode::Message(session.clone(), String::new()))),
            None => Err(format!("job {short} has no session to send a message to")),
        },
    }
}

/// What a filter finds a job by.
fn words(job: &Job) -> String {
    let view = &job.view;
    let session = view.session.as_ref().map(Session::as_str).unwrap_or_default();
    let follow_up = table::follow_up(view.follow_up.state);
    let parts = [
        &table::title(job),
        table::state_word(view),
        &table::ending(view),
        session,
        view.id.as_str(),
        follow_up,
    ];
    parts.join("\n")
}

/// Whether a job that has these words has all words of the filter, in any case.
fn matches(filter: &str, words: &str) -> bool {
    let words = words.to_lowercase();
    filter.split_whitespace().all(|word| words.contains(&word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_finds_every_word_anywhere_in_any_case() {
        let job = "[Build] cargo build --release\nrunning\nrunning\nchat-7\n1m7mq243pmev2tfd\nwaiting";
        for filter in
            ["", "  ", "build", "BUILD chat", "running release", "tfd", "straße".get(..2).unwrap_or("")]
        {
            let expected = !filter.contains("st");
            assert_eq!(matches(filter, job), expected, "{filter}");
        }
        assert!(!matches("build failed", job));
    }

    fn press(view: &mut View, keys: &str) -> Vec<Action> {
        let press = |c| match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            c => KeyCode::Char(c),
        };
        keys.chars().filter_map(|c| view.press(KeyEvent::new(press(c), KeyModifiers::NONE))).collect()
    }

    #[test]
    fn what_is_typed_is_text_and_not_a_command() {
        let mut view = View::new(Select::default(), true);
        assert_eq!(press(&mut view, "/qk?x\u{8}"), []);
        assert_eq!((view.filter.as_str(), &view.mode), ("qk?", &Mode::Filter));
        view.paste("two\nlines\u{1b}[2J");
        assert_eq!(view.filter, "qk?two⏎lines");
        assert_eq!(press(&mut view, "\u{1b}"), []);
        assert_eq!((view.filter.as_str(), &view.mode), ("", &Mode::Jobs));
        view.paste("q");
        assert_eq!(press(&mut view, "\u{1b}q"), [Action::Quit]);
        let session = Session::parse("chat-7").unwrap();
        view.mode = Mode::Message(session.clone(), String::new());
        assert_eq!(press(&mut view, "hi q\n"), [Action::Send(session.clone(), "hi q".into())]);
        view.mode = Mode::Message(session, String::new());
        assert_eq!(press(&mut view, " \n"), [], "an empty message is none");
    }

    #[test]
    fn only_y_kills() {
        let mut view = View::new(Select::default(), true);
        let id = JobId::mint(1, 2);
        for (key, killed) in [("n", 0), ("\n", 0), ("k", 0), ("q", 0), ("Y", 0), ("y", 1)] {
            view.mode = Mode::Kill(id.clone());
            assert_eq!(press(&mut view, key), vec![Action::Kill(id.clone()); killed], "{key:?}");
            assert_eq!(view.mode, Mode::Jobs);
        }
        assert_eq!(press(&mut view, "k"), []);
        assert_eq!(view.notice, Some(Err("no job is selected".into())));
    }

    #[test]
    fn ctrl_c_leaves_from_everywhere() {
        let mut view = View::new(Select::default(), true);
        for mode in [Mode::Jobs, Mode::Output, Mode::Help, Mode::Filter, Mode::Kill(JobId::mint(1, 2))] {
            view.mode = mode;
            let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(view.press(key), Some(Action::Quit));
        }
    }
}
