//! Subscriptions to events. One thread hears of what happens, for all of them. Each is read from the index by its
//! cursor, so a host that does not read makes nothing pile up.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::port::events::EventCursor;
use hearback::core::port::record::StoreError;
use hearback::documents::ErrorKind;
use hearback::documents::serve::{
    DoneDocument, EventsEndedDocument, EventsParams, EventsStopParams, HappenedDocument, Notification,
    SubscribedDocument,
};
use hearback::{EventsSince, Hearback, Scope};

use super::pipe::Pipe;
use super::server::Answer;
use crate::error::CliError;

/// So many subscriptions one host has.
const SUBSCRIPTIONS_MAX: usize = 256;
/// The thread that hears sleeps so long at most.
const WAKE_EVERY: Duration = Duration::from_secs(60);
/// The cursor before everything.
const BEGINNING: &str = "beginning";

/// What the host has subscribed to.
#[derive(Default)]
pub(super) struct Subscriptions {
    all: Mutex<BTreeMap<u64, Arc<Mutex<Subscription>>>>,
    /// How many there have been.
    count: AtomicU64,
    /// Whether a thread hears of what happens; else why there is none.
    is_heard: OnceLock<Result<(), String>>,
}

struct Subscription {
    scope: Scope,
    cursor: Option<EventCursor>,
}

impl Subscriptions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Mutex<Subscription>>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(
        self: &Arc<Self>,
        hearback: &Arc<Hearback>,
        pipe: &Pipe,
        params: EventsParams,
    ) -> Result<Answer, CliError> {
        let scope = match params.session {
            Some(session) => session.into(),
            None => Scope::current()?,
        };
        let heard =
            self.is_heard.get_or_init(|| self.hear(hearback, pipe).map_err(|error| error.to_string()));
        heard.clone().map_err(|error| CliError::no(ErrorKind::Store, error))?;
        let cursor = match params.since.as_deref() {
            None | Some("now") => hearback.last_event()?,
            Some(BEGINNING) => None,
            Some(text) => {
                let cursor = EventCursor::parse(text);
                Some(cursor.ok_or_else(|| {
                    CliError::Usage("`since` has to be the `cursor` of an event, `beginning` or `now`".into())
                })?)
            }
        };
        let subscription = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let document = SubscribedDocument {
            format: DOCUMENT_FORMAT,
            subscription,
            cursor: cursor.as_ref().map_or_else(|| BEGINNING.to_owned(), ToString::to_string),
        };
        let all = Arc::clone(self);
        let (hearback, pipe) = (Arc::clone(hearback), pipe.clone());
        if self.all().len() >= SUBSCRIPTIONS_MAX {
            return Err(CliError::no(
                ErrorKind::Busy,
                format!("there are {SUBSCRIPTIONS_MAX} subscriptions"),
            ));
        }
        Ok(Answer::new(&document).then(move || {
            // After the answer, which says how it is called.
            let begun = Arc::new(Mutex::new(Subscription { scope, cursor }));
            all.all().insert(subscription, begun);
            all.read_on(&hearback, &pipe, subscription);
        }))
    }

    pub(super) fn stop(&self, params: EventsStopParams) -> Result<Answer, CliError> {
        let stopped = self.all().remove(&params.subscription);
        let unknown = || CliError::no(ErrorKind::UnknownToken, "there is no such subscription");
        stopped.ok_or_else(unknown)?;
        Ok(Answer::new(&DoneDocument { format: DOCUMENT_FORMAT }))
    }

    /// Starts the thread that hears of what happens.
    fn hear(self: &Arc<Self>, hearback: &Arc<Hearback>, pipe: &Pipe) -> Result<(), StoreError> {
        let (all, hearback, pipe) = (Arc::clone(self), Arc::clone(hearback), pipe.clone());
        let (sender, is_ready) = std::sync::mpsc::channel();
        Builder::new().name("events".into()).spawn(move || {
            let mut events = match hearback.events(&Scope::All, EventsSince::Now) {
                Ok(events) => events,
                Err(error) => return drop(sender.send(Err(error))),
            };
            let _ = sender.send(Ok(()));
            loop {
                let heard = events.next(WAKE_EVERY);
                let open: Vec<_> = all.all().keys().copied().collect();
                match heard {
                    Ok(None) => {}
                    Ok(Some(_)) => open.into_iter().for_each(|it| all.read_on(&hearback, &pipe, it)),
                    Err(error) => {
                        open.into_iter().for_each(|it| all.end(&pipe, it, &error));
                        std::thread::sleep(Duration::from_secs(2));
                    }
                }
            }
        })?;
        is_ready.recv().unwrap_or(Ok(()))
    }

    /// Tells what happened since the host was told last.
    fn read_on(&self, hearback: &Hearback, pipe: &Pipe, subscription: u64) {
        loop {
            let found = self.all().get(&subscription).cloned();
            let Some(found) = found else { return };
            let mut reader = found.lock().unwrap_or_else(PoisonError::into_inner);
            match hearback.events_after(&reader.scope, reader.cursor.as_ref()) {
                Ok((events, cursor)) => {
                    for event in events {
                        let event = HappenedDocument { subscription, event: event.into() };
                        pipe.notify(&Notification::Event(Box::new(event)));
                        if !self.all().contains_key(&subscription) {
                            return;
                        }
                    }
                    if reader.cursor == cursor {
                        return;
                    }
                    reader.cursor = cursor;
                }
                Err(error) => {
                    drop(reader);
                    return self.end(pipe, subscription, &error);
                }
            }
        }
    }

    /// Ends a subscription that cannot be read on. The host has its last cursor.
    fn end(&self, pipe: &Pipe, subscription: u64, error: &StoreError) {
        if self.all().remove(&subscription).is_some() {
            let error = CliError::no(ErrorKind::Store, error.to_string()).detail();
            let ended = EventsEndedDocument { format: DOCUMENT_FORMAT, subscription, error };
            pipe.notify(&Notification::EventsEnded(ended));
        }
    }
}
