//! What `top` waits for. Each source sleeps in a thread of its own, so nothing polls.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crossterm::event::{self, Event as TerminalEvent, KeyEvent, KeyEventKind};
use hearback::core::JobId;
use hearback::{ChangedJobs, Hearback, Scope, StopWatch};

/// A watch of a job cannot be cut short: after so long, the thread looks whether another job is selected.
const WATCHED_FOR: Duration = Duration::from_secs(1);
/// However much happens, there is at most one picture in this time, unless a key was pressed.
pub(crate) const PICTURE: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(crate) enum Event {
    Key(KeyEvent),
    Pasted(String),
    Resized,
    Jobs(ChangedJobs),
    /// Something about the selected job has changed, such as its output.
    Output,
    /// What an action that takes a while came to.
    Done(Result<String, String>),
    /// This process is to end, or has no terminal any more.
    Stop,
}

/// Where events come from.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) events: Receiver<Event>,
    sender: Sender<Event>,
    watched: Sender<Option<JobId>>,
}

impl Sources {
    /// Begins to listen. The threads end with the process.
    pub(crate) fn listen(hearback: &Arc<Hearback>, scope: &Scope) -> std::io::Result<Self> {
        let (sender, events) = channel();
        let (watched, selected) = channel();
        let sources = Self { events, sender, watched };
        // Before anything can be drawn, so that no request to end is missed.
        let stop = StopWatch::new()?;
        sources.spawn("stop", move |sender| {
            while !stop.wait(LONG) {}
            let _ = sender.send(Event::Stop);
        })?;
        sources.spawn("keys", |sender| read_keys(&sender))?;
        let (of_jobs, scope) = (Arc::clone(hearback), scope.clone());
        sources.spawn("jobs", move |sender| {
            let told = of_jobs.watch_jobs(&scope, |changed| sender.send(Event::Jobs(changed)).is_ok());
            if let Err(error) = told {
                let _ = sender.send(Event::Done(Err(format!("changes are not seen: {error}"))));
            }
        })?;
        let of_output = Arc::clone(hearback);
        sources.spawn("output", move |sender| watch_output(&of_output, &selected, &sender))?;
        Ok(sources)
    }

    /// Tells which job is selected: its output is watched.
    pub(crate) fn watch(&self, id: Option<JobId>) {
        let _ = self.watched.send(id);
    }

    /// Does in another thread what may take a while.
    pub(crate) fn act(&self, action: impl FnOnce() -> Result<String, String> + Send + 'static) {
        let begun = self.spawn("action", move |sender| drop(sender.send(Event::Done(action()))));
        if let Err(error) = begun {
            let _ = self.sender.send(Event::Done(Err(error.to_string())));
        }
    }

    fn spawn(&self, name: &str, work: impl FnOnce(Sender<Event>) + Send + 'static) -> std::io::Result<()> {
        let sender = self.sender.clone();
        std::thread::Builder::new().name(name.into()).spawn(move || work(sender)).map(drop)
    }
}

fn read_keys(sender: &Sender<Event>) {
    loop {
        let event = match event::read() {
            // Windows reports that a key is let go, too.
            Ok(TerminalEvent::Key(key)) if key.kind != KeyEventKind::Release => Event::Key(key),
            Ok(TerminalEvent::Paste(text)) => Event::Pasted(text),
            Ok(TerminalEvent::Resize(..)) => Event::Resized,
            Ok(_) => continue,
            Err(_) => Event::Stop,
        };
        let is_last = matches!(event, Event::Stop);
        if sender.send(event).is_err() || is_last {
            return;
        }
    }
}

fn watch_output(hearback: &Hearback, selected: &Receiver<Option<JobId>>, sender: &Sender<Event>) {
    let mut watch = None;
    loop {
        // While no job is watched, this sleeps until one is selected.
        let newest = match watch {
            Some(_) => selected.try_iter().last(),
            None => selected.recv().ok().map(|id| selected.try_iter().last().unwrap_or(id)),
        };
        match newest {
            Some(id) => {
                watch = id.and_then(|id| hearback.watch(&id).ok().flatten());
                // What happened before it was watched is not reported.
                if sender.send(Event::Output).is_err() {
                    return;
                }
            }
            None if watch.is_none() => return,
            None => {}
        }
        if let Some(watch) = &mut watch {
            let since = hearback.awake();
            watch.wait(WATCHED_FOR);
            if hearback.awake().saturating_sub(since) < WATCHED_FOR {
                if sender.send(Event::Output).is_err() {
                    return;
                }
                // A job may print all the time.
                std::thread::sleep(PICTURE);
            }
        }
    }
}
