//! `hearback top`

use std::io::{IsTerminal, stdin};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use hearback::core::{JobId, KilledBy, Session};
use hearback::documents::ErrorKind;
use hearback::{Acknowledged, Closed, Hearback, KillRequest, OutgoingMessage};

use crate::args::TopArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::top::{Action, Event, PICTURE, Screen, Sources, View, draw};

/// How often times are drawn again, and jobs on the screen that run are looked at.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn run(hearback: Hearback, args: &TopArgs, output: &Output) -> Result<u32, CliError> {
    if output.is_json() || !output.is_watched() || !stdin().is_terminal() || is_dumb() {
        return Err(CliError::Usage(
            "`top` needs a terminal with keys; `hearback list --watch` needs only a screen, and `hearback list` and \
             `hearback list --json` need neither"
                .into(),
        ));
    }
    let select = super::list::select(&hearback, &args.select)?;
    let scope = select.scope.clone();
    let by =
        hearback::current_session()?.or(scope.session().cloned()).map_or(KilledBy::Person, KilledBy::Session);
    let mut view = View::new(select, output.shows_colours());
    // What cannot be listed is an error before the screen is taken.
    view.update(&hearback, hearback::ChangedJobs::Everything)?;
    let hearback = Arc::new(hearback);
    let sources = Sources::listen(&hearback, &scope).map_err(CliError::Output)?;
    output.enable_escape_sequences();
    let mut screen = Screen::take().map_err(CliError::Output)?;
    let mut top = Top { hearback, sources, view, watched: None, by };
    top.run(&mut screen)
}

/// A terminal that cannot move its cursor.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

struct Top {
    hearback: Arc<Hearback>,
    sources: Sources,
    view: View,
    /// The job whose output is watched.
    watched: Option<JobId>,
    /// Who kills.
    by: KilledBy,
}

/// What an event means for the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draw {
    Soon,
    Now,
    Quit,
}

impl Top {
    fn run(&mut self, screen: &mut Screen) -> Result<u32, CliError> {
        let mut looked = self.hearback.awake();
        loop {
            self.follow_selection();
            self.view.read_output(&self.hearback);
            let now = self.hearback.now();
            screen.draw(|frame| draw(&mut self.view, now, frame)).map_err(CliError::Output)?;
            let drawn = self.hearback.awake();
            let mut due = drawn + TICK;
            loop {
                match self.sources.events.recv_timeout(due.saturating_sub(self.hearback.awake())) {
                    Ok(event) => match self.take(event, screen)? {
                        Draw::Quit => return Ok(0),
                        Draw::Now => break,
                        Draw::Soon => due = due.min(drawn + PICTURE),
                    },
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return Ok(0),
                }
            }
            let now = self.hearback.awake();
            if now >= looked + TICK {
                self.view.look_again(&self.hearback);
                looked = now;
            }
        }
    }

    /// Lets the output of the selected job be watched, if that is another one now.
    fn follow_selection(&mut self) {
        let selected = self.view.selected();
        let running = selected.filter(|job| !job.view.state.has_ended()).map(|job| job.view.id.clone());
        if self.watched != running {
            self.watched.clone_from(&running);
            self.sources.watch(running);
        }
    }

    fn take(&mut self, event: Event, screen: &mut Screen) -> Result<Draw, CliError> {
        match event {
            Event::Key(key) => match self.view.press(key) {
                Some(Action::Quit) => return Ok(Draw::Quit),
                Some(Action::Redraw) => screen.enter().map_err(CliError::Output)?,
                Some(Action::Suspend) => {
                    if let Err(error) = screen.suspend() {
                        self.view.say(Err(format!("this cannot be suspended: {error}")));
                    }
                }
                Some(action) => self.act(action),
                None => {}
            },
            Event::Pasted(text) => self.view.paste(&text),
            Event::Resized => {}
            Event::Jobs(changed) => {
                if let Err(error) = self.view.update(&self.hearback, changed) {
                    self.view.say(Err(sentence(&error)));
                }
                return Ok(Draw::Soon);
            }
            Event::Output => {
                self.view.look_at_selected(&self.hearback);
                return Ok(Draw::Soon);
            }
            Event::Done(result) => self.view.say(result),
            Event::Stop => return Ok(Draw::Quit),
        }
        Ok(Draw::Now)
    }

    /// Does in another thread what a key asked for.
    fn act(&mut self, action: Action) {
        let (hearback, by) = (Arc::clone(&self.hearback), self.by.clone());
        if let Action::Kill(id) = &action {
            self.view.say(Ok(format!("job {} is being killed", id.short())));
        }
        self.sources.act(move || {
            let done = match action {
                Action::Kill(id) => kill(&hearback, &id, by),
                Action::Retry(id) => retry(&hearback, &id),
                Action::Acknowledge(id) => acknowledge(&hearback, &id),
                Action::Send(session, text) => send(&hearback, session, text),
                Action::Quit | Action::Suspend | Action::Redraw => unreachable!("done by the caller"),
            };
            done.map_err(|error| sentence(&error))
        });
    }
}

fn sentence(error: &CliError) -> String {
    error.lines().join(": ")
}

fn kill(hearback: &Hearback, id: &JobId, by: KilledBy) -> Result<String, CliError> {
    let request = KillRequest::new(by);
    let killed = hearback.kill(id, &request)?;
    let ending = super::kill::ending(&killed);
    match killed.is_complete() {
        true => Ok(format!("job {} {ending}", id.short())),
        false => {
            let left = format!("job {} {ending}; processes of it may still run", id.short());
            Err(CliError::Answer { kind: ErrorKind::NotKilled, message: left })
        }
    }
}

fn retry(hearback: &Hearback, id: &JobId) -> Result<String, CliError> {
    let short = id.short();
    Ok(match hearback.retry_follow_up(id)? {
        Closed::Done => format!("the follow-up of {short} will be retried"),
        Closed::Already(state) => format!("nothing to do: {}", super::followups::word(state)),
        Closed::NotEnded => format!("job {short} has not ended"),
        Closed::NoJob => format!("job {short} is gone"),
    })
}

fn acknowledge(hearback: &Hearback, id: &JobId) -> Result<String, CliError> {
    let short = id.short();
    Ok(match hearback.acknowledge(id, None)? {
        Acknowledged::Now => format!("the answer of {short} is marked as read"),
        Acknowledged::Before => format!("the answer of {short} was marked as read before"),
        Acknowledged::Nothing => format!("the answer of {short} cannot be marked as read"),
    })
}

fn send(hearback: &Hearback, session: Session, text: String) -> Result<String, CliError> {
    let sent = hearback.send(&OutgoingMessage::new(session, text))?;
    Ok(format!("message {}: {}", sent.n, super::send::fate(&sent)))
}
