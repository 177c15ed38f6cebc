//! A host: which sessions it attends, and what it may do.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hearback_core::port::record::StoreError;
use hearback_core::port::session::SessionStore;
use hearback_core::{LockState, Session, StopKind};

use super::listen;
use super::look::Heard;
use super::turns::{HostNews, Turns};
use crate::Hearback;
use crate::permissions::{Capability, Guarded};

/// Which sessions a host attends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attend {
    /// Every session.
    All,
    /// This one.
    Session(Session),
}

/// A program that runs the turns of sessions itself.
///
/// When this is dropped, what is open of its turns is given back and no attempt is spent. If its process dies, its
/// turns are cut short and its claims are free, because the kernel releases their locks.
pub struct SessionHost(pub(super) Arc<Host>);

/// What the threads of a host share.
pub(super) struct Host {
    pub(super) hearback: Arc<Hearback>,
    /// Tells the program.
    tell: Box<dyn Fn(HostNews) + Send + Sync>,
    attended: Mutex<Attended>,
    pub(super) turns: Turns,
    /// Tells the thread that looks.
    news: Mutex<Sender<Heard>>,
    /// The tokens that were made.
    tokens: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Attended {
    all: bool,
    sessions: BTreeSet<Session>,
}

impl Hearback {
    /// Begins to host sessions: `tell` is called with what happens, by threads of this host, and may block them.
    ///
    /// # Errors
    ///
    /// When the caller may not run turns, the store cannot be watched, or there is no thread to be had.
    pub fn host_sessions(
        self: &Arc<Self>,
        tell: impl Fn(HostNews) + Send + Sync + 'static,
    ) -> Result<SessionHost, Guarded<StoreError>> {
        self.permissions().check(Capability::Turn)?;
        let (news, heard) = channel();
        let host = Arc::new(Host {
            hearback: Arc::clone(self),
            tell: Box::new(tell),
            attended: Mutex::default(),
            turns: Turns::default(),
            news: Mutex::new(news),
            tokens: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        });
        listen::start(&host, heard).map_err(Guarded::Failed)?;
        Ok(SessionHost(host))
    }
}

impl SessionHost {
    /// From now on this host is handed what is due for these sessions: messages and follow-ups on the route `host`, and
    /// follow-ups without a sink.
    pub fn attend(&self, what: Attend) {
        self.0.attended().change(&what, true);
        self.0.hear(Heard::Attend(what));
    }

    /// The opposite. Turns that run are not affected.
    pub fn unattend(&self, what: &Attend) {
        self.0.attended().change(what, false);
    }
}

impl Attended {
    fn change(&mut self, what: &Attend, is_attended: bool) {
        match what {
            Attend::All => self.all = is_attended,
            Attend::Session(session) if is_attended => drop(self.sessions.insert(session.clone())),
            Attend::Session(session) => drop(self.sessions.remove(session)),
        }
    }
}

impl Host {
    fn attended(&self) -> MutexGuard<'_, Attended> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn attends(&self, session: &Session) -> bool {
        let attended = self.attended();
        attended.all || attended.sessions.contains(session)
    }

    /// Lets the thread that looks hear something.
    pub(super) fn hear(&self, heard: Heard) {
        // It ends with this host.
        let _ = self.news.lock().unwrap_or_else(PoisonError::into_inner).send(heard);
    }

    pub(super) fn tell(&self, news: HostNews) {
        (self.tell)(news);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// A token that no other claim or turn of this host has. The mark of its turn makes it unique beyond.
    pub(super) fn token(&self, mark: &hearback_core::JobId) -> String {
        format!("{mark}-{}", self.tokens.fetch_add(1, Ordering::SeqCst))
    }

    /// What a monitor does that is about to end: no turn begins meanwhile.
    pub(super) fn draining(&self) -> Result<Option<StopKind>, StoreError> {
        let lock = self.hearback.ports.host_lock()?;
        if lock == LockState::Free {
            return Ok(None);
        }
        Ok(self.hearback.store.host()?.stopping(lock))
    }
}

impl Drop for SessionHost {
    fn drop(&mut self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        self.0.give_back();
        self.0.hear(Heard::Close);
    }
}

impl fmt::Debug for SessionHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHost").field("attended", &*self.0.attended()).finish_non_exhaustive()
    }
}
