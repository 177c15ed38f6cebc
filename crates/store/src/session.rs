//! The records of sessions and of their host over a disk.

use std::path::{Path, PathBuf};

use hearback_core::port::disk::{Disk, Flush, Lock, LockMode, Publish, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::session::{SessionLock, SessionStore};
use hearback_core::session::{
    Message, MessageFact, MessageFacts, SessionFacts, TurnBegin, TurnFact, TurnFacts,
};
use hearback_core::{Durability, HostFact, HostFacts, JobId, RequestFacts, Session, Timestamp};
use serde::Serialize;

use crate::layout::{self, SessionFactKind as Kind};
use crate::{Store, key, read};

/// How many hosts and requests are remembered.
const HOSTS_KEPT: usize = 8;
/// More than this is not kept of what hosts have to say.
const LOG_MAX: u64 = 1024 * 1024;
/// A file that is only written to wake somebody is begun anew at this size.
const WAKE_MAX: u64 = 4096;

impl<D: Disk> Store<D> {
    fn session_folder(&self, session: &Session) -> PathBuf {
        self.layout.session(&key::session_name(session))
    }

    /// The numbered facts of a folder, in order.
    fn numbered(&self, folder: &Path) -> Result<Vec<(u32, Kind, PathBuf)>, StoreError> {
        let names = self.disk.list(folder)?;
        let mut found: Vec<_> = names
            .iter()
            .filter_map(|name| layout::parse_session_fact(name).map(|(n, kind)| (n, kind, folder.join(name))))
            .collect();
        found.sort_by_key(|(n, ..)| *n);
        Ok(found)
    }

    fn publish_numbered(
        &self,
        path: &Path,
        fact: &impl Serialize,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let flush = if durability == Durability::Power { Flush::Power } else { Flush::No };
        let published = self.disk.publish_new(path, &serde_json::to_vec(fact)?, flush)?;
        // Whoever relies on what another has published makes sure that it lasts: their flush may have failed.
        if let (Publish::Exists, Flush::Power, Some(folder)) = (published, flush, path.parent()) {
            self.disk.flush(folder)?;
        }
        Ok(published)
    }

    /// Makes the folder of a session, and its inbox; what is published in it lasts only if their names do.
    fn make_session(&self, folder: &Path, durability: Durability) -> Result<PathBuf, StoreError> {
        let inbox = layout::inbox(folder);
        if !self.disk.is_dir(&inbox)? {
            self.make_folders(folder)?;
            let _ = self.disk.make_dir(&inbox)?;
            if durability == Durability::Power {
                for folder in [folder, &self.layout.sessions(), self.layout.home()] {
                    self.disk.flush(folder)?;
                }
            }
        }
        Ok(inbox)
    }

    /// Removes the facts whose numbers are not among the newest `keep`, and what is left of others that were removed.
    fn keep_newest(&self, found: &[(u32, Kind, PathBuf)], keep: usize) -> Result<(), StoreError> {
        let makes =
            |kind: &Kind| matches!(kind, Kind::TurnBegin | Kind::Message | Kind::Request | Kind::HostBegin);
        let made: Vec<_> = found.iter().filter(|(_, kind, _)| makes(kind)).map(|(n, ..)| *n).collect();
        let kept = &made[made.len().saturating_sub(keep)..];
        // A mark can be there before its turn is.
        let is_next = |n: &u32| made.last().is_none_or(|last| n > last);
        let mut gone: Vec<_> = found.iter().filter(|(n, ..)| !kept.contains(n) && !is_next(n)).collect();
        // What makes a turn or a request goes first, so that whoever is cut short here leaves nothing that seems to be
        // under way; last if none is kept, so that no number is given to another before everything of it is gone.
        gone.sort_by_key(|(_, kind, _)| makes(kind) == (keep == 0));
        gone.iter().try_for_each(|(_, _, path)| Ok(self.disk.remove(path)?))
    }

    /// A lock that nobody can hold, because its folder is not there, is free.
    fn lock_in(
        &self,
        folder: &Path,
        lock: &Path,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        loop {
            if mode == LockMode::Exclusive {
                self.make_folders(folder)?;
            }
            match self.disk.lock(lock, mode, wait) {
                // Somebody has just removed the folder, because there was nothing in it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => match mode {
                    LockMode::Shared => return Ok(Some(Lock::new(()))),
                    LockMode::Exclusive => {}
                },
                lock => return Ok(lock?),
            }
        }
    }
}

impl<D: Disk> SessionStore for Store<D> {
    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        let mut sessions = Vec::new();
        for name in self.disk.list(&self.layout.sessions())? {
            let folder = self.layout.session(&name);
            let found = [self.numbered(&folder)?, self.numbered(&layout::inbox(&folder))?].concat();
            // The folder is named by a hash; every turn and every message says whose it is.
            let mut named = found.iter().rev().filter_map(|(_, kind, path)| match kind {
                Kind::TurnBegin => {
                    read::fact::<TurnBegin>(&self.disk, path).ok()?.present().map(|it| it.session.clone())
                }
                Kind::Message => {
                    read::fact::<Message>(&self.disk, path).ok()?.present().map(|it| it.session.clone())
                }
                _ => None,
            });
            sessions.extend(named.find(|session| key::session_name(session) == name));
        }
        Ok(sessions)
    }

    fn session(&self, session: &Session) -> Result<SessionFacts, StoreError> {
        let folder = self.session_folder(session);
        let mut facts = SessionFacts::default();
        for (n, kind, path) in self.numbered(&folder)? {
            let turn = newest::<TurnFacts>(&mut facts.turns, n);
            match kind {
                Kind::TurnBegin => turn.begin = read::fact(&self.disk, &path)?,
                Kind::Resumable => turn.resumable = read::fact(&self.disk, &path)?,
                Kind::Interrupt => turn.interrupt = read::fact(&self.disk, &path)?,
                Kind::TurnEnd => turn.end = read::fact(&self.disk, &path)?,
                _ => {}
            }
        }
        // A turn is its begin; what outlived it was about to be forgotten.
        facts.turns.retain(|(_, turn)| !turn.begin.is_absent());
        for (n, kind, path) in self.numbered(&layout::inbox(&folder))? {
            let message = newest::<MessageFacts>(&mut facts.messages, n);
            match kind {
                Kind::Message => message.message = read::fact(&self.disk, &path)?,
                Kind::MessageResult(attempt) => {
                    message.results.push((attempt, read::fact(&self.disk, &path)?))
                }
                Kind::MessageReceipt => message.receipt = read::fact(&self.disk, &path)?,
                _ => {}
            }
        }
        facts.messages.retain(|(_, message)| !message.message.is_absent());
        for (_, message) in &mut facts.messages {
            message.results.sort_by_key(|(attempt, _)| *attempt);
        }
        Ok(facts)
    }

    fn publish_turn(
        &self,
        session: &Session,
        n: u32,
        fact: &TurnFact,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let folder = self.session_folder(session);
        let path = |kind| layout::session_fact(&folder, n, kind);
        match fact {
            TurnFact::Begin(fact) => {
                self.make_session(&folder, durability)?;
                self.publish_numbered(&path(Kind::TurnBegin), fact, durability)
            }
            TurnFact::Resumable(fact) => self.publish_numbered(&path(Kind::Resumable), fact, durability),
            TurnFact::Interrupt(fact) => self.publish_numbered(&path(Kind::Interrupt), fact, durability),
            TurnFact::End(fact) => self.publish_numbered(&path(Kind::TurnEnd), fact, durability),
        }
    }

    fn queue(&self, message: &Message, durability: Durability) -> Result<u32, StoreError> {
        let folder = self.session_folder(&message.session);
        loop {
            let inbox = match self.make_session(&folder, durability) {
                Err(error) if error.is_gone() => continue,
                inbox => inbox?,
            };
            let last = self.numbered(&inbox)?.last().map_or(0, |(n, ..)| *n);
            let path = layout::session_fact(&inbox, last + 1, Kind::Message);
            match self.publish_numbered(&path, message, durability) {
                Ok(Publish::New) => return Ok(last + 1),
                // Somebody else has just sent one; or removed the folder, because there was nothing in it.
                Ok(Publish::Exists) => {}
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn publish_message(
        &self,
        session: &Session,
        n: u32,
        fact: &MessageFact,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let inbox = layout::inbox(&self.session_folder(session));
        let path = |kind| layout::session_fact(&inbox, n, kind);
        match fact {
            MessageFact::Result(attempt, fact) => {
                self.publish_numbered(&path(Kind::MessageResult(*attempt)), fact, durability)
            }
            MessageFact::Receipt(fact) => {
                self.publish_numbered(&path(Kind::MessageReceipt), fact, durability)
            }
        }
    }

    fn forget(&self, session: &Session, keep: usize) -> Result<(), StoreError> {
        let folder = self.session_folder(session);
        self.keep_newest(&self.numbered(&folder)?, keep)?;
        let inbox = layout::inbox(&folder);
        let found = self.numbered(&inbox)?;
        let facts = self.session(session)?;
        let newest = facts.messages.last().map(|(n, _)| *n).filter(|_| keep > 0);
        for (n, _) in facts.messages.iter().filter(|(n, it)| Some(*n) != newest && !it.receipt.is_absent()) {
            // The receipt last: without it, what is left would be a message that waits.
            let mut of_it: Vec<_> = found.iter().filter(|(other, ..)| other == n).collect();
            of_it.sort_by_key(|(_, kind, _)| *kind != Kind::Message);
            of_it.iter().try_for_each(|(_, _, path)| self.disk.remove(path))?;
        }
        Ok(())
    }

    fn mint(&self, now: Timestamp) -> JobId {
        JobId::mint(now.as_millis().unsigned_abs(), self.disk.nonce())
    }

    fn lock_session(
        &self,
        session: &Session,
        lock: SessionLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        let folder = self.session_folder(session);
        self.lock_in(&folder, &layout::session_lock(&folder, lock), mode, wait)
    }

    fn host(&self) -> Result<HostFacts, StoreError> {
        let mut facts = HostFacts::default();
        for (n, kind, path) in self.numbered(&self.layout.monitor())? {
            if kind == Kind::HostBegin {
                facts.begins.push((n, read::fact(&self.disk, &path)?));
                continue;
            }
            let request = newest::<RequestFacts>(&mut facts.requests, n);
            match kind {
                Kind::Request => request.request = read::fact(&self.disk, &path)?,
                Kind::Taken => request.taken = read::fact(&self.disk, &path)?,
                Kind::Done => request.done = read::fact(&self.disk, &path)?,
                _ => {}
            }
        }
        facts.requests.retain(|(_, request)| !request.request.is_absent());
        Ok(facts)
    }

    fn publish_host(&self, n: u32, fact: &HostFact, durability: Durability) -> Result<Publish, StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        let path = |kind| layout::session_fact(&folder, n, kind);
        match fact {
            HostFact::Begin(fact) => {
                let published = self.publish_numbered(&path(Kind::HostBegin), fact, durability)?;
                let (begins, requests): (Vec<_>, Vec<_>) =
                    self.numbered(&folder)?.into_iter().partition(|(_, kind, _)| *kind == Kind::HostBegin);
                self.keep_newest(&begins, HOSTS_KEPT)?;
                self.keep_newest(&requests, HOSTS_KEPT)?;
                Ok(published)
            }
            HostFact::Request(fact) => self.publish_numbered(&path(Kind::Request), fact, durability),
            HostFact::Taken(fact) => self.publish_numbered(&path(Kind::Taken), fact, durability),
            HostFact::Done(fact) => self.publish_numbered(&path(Kind::Done), fact, durability),
        }
    }

    fn lock_monitor(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError> {
        let folder = self.layout.monitor();
        self.lock_in(&folder, &layout::run_lock(&folder), mode, wait)
    }

    fn wake_host(&self) -> Result<(), StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        self.append_bounded(&layout::wake(&folder), b".", WAKE_MAX)
    }

    fn note_host(&self, line: &str) -> Result<(), StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        self.append_bounded(&layout::monitor_log(&folder), format!("{line}\n").as_bytes(), LOG_MAX)
    }
}

impl<D: Disk> Store<D> {
    /// Adds to a file that is begun anew when it has become too large.
    fn append_bounded(&self, path: &Path, bytes: &[u8], most: u64) -> Result<(), StoreError> {
        if self.disk.size(path)? >= most {
            self.disk.remove(path)?;
        }
        Ok(self.disk.append(path, bytes)?)
    }
}

/// The facts of this number, which is not below the last.
fn newest<T: Default>(list: &mut Vec<(u32, T)>, n: u32) -> &mut T {
    if list.last().is_none_or(|(last, _)| *last != n) {
        list.push((n, T::default()));
    }
    let last = list.len() - 1;
    &mut list[last].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::Read;
    use hearback_core::session::{MessageHow, TurnCause, TurnHow};
    use hearback_core::testing::{FakeDisk, sample, suite};

    fn store() -> (FakeDisk, Store<FakeDisk>) {
        let disk = FakeDisk::default();
        (disk.clone(), Store::open(disk, Path::new("/home")).unwrap())
    }

    #[test]
    fn the_store_passes_the_suite_of_its_port() {
        suite::session(&store().1);
        suite::watch(&store().1);
    }

    #[test]
    fn what_was_sent_survives_a_power_cut() {
        let (disk, store) = store();
        let session = Session::parse("s").unwrap();
        for text in ["one", "two"] {
            store.queue(&sample::message("s", text), Durability::Power).unwrap();
        }
        disk.cut_power();
        assert_eq!(store.session(&session).unwrap().waiting().count(), 2);
        assert_eq!(store.sessions().unwrap(), [session]);
    }

    #[test]
    fn forgetting_that_is_cut_short_makes_nothing_wait_again() {
        let session = Session::parse("s").unwrap();
        for n in 0..30 {
            let (disk, store) = store();
            for number in 1..=3 {
                let begin = TurnFact::Begin(Box::new(sample::turn_begin("s", TurnCause::Command)));
                let end = TurnFact::end(sample::stamp(), TurnHow::Done);
                for fact in [begin, end] {
                    let _ = store.publish_turn(&session, number, &fact, Durability::Power).unwrap();
                }
                store.queue(&sample::message("s", "x"), Durability::Power).unwrap();
                let receipt = MessageFact::receipt(sample::stamp(), MessageHow::Delivered);
                let _ = store.publish_message(&session, number, &receipt, Durability::Power).unwrap();
            }
            let keep = usize::from(n % 2 == 1);
            disk.fail_after(n / 2);
            let _ = store.forget(&session, keep);
            disk.heal();
            let facts = store.session(&session).unwrap();
            assert_eq!(facts.waiting().count(), 0, "cut short after {n}");
            let is_over = |turn: &TurnFacts| !turn.end.is_absent();
            assert!(keep == 0 || facts.turns.iter().all(|(_, turn)| is_over(turn)), "cut short after {n}");
            // The next turn is a new one, whatever is left of those before.
            let (next, begin) = (facts.last_turn() + 1, sample::turn_begin("s", TurnCause::Command));
            let begin = TurnFact::Begin(Box::new(begin));
            assert_eq!(store.publish_turn(&session, next, &begin, Durability::Power).unwrap(), Publish::New);
            let seen = store.session(&session).unwrap();
            assert!(seen.turns.last().is_some_and(|(_, turn)| !is_over(turn)), "cut short after {n}");
            store.forget(&session, 1).unwrap();
            assert_eq!(store.session(&session).unwrap().last_turn(), next, "cut short after {n}");
        }
    }

    #[test]
    fn one_damaged_fact_costs_itself_alone() {
        let (disk, store) = store();
        let session = Session::parse("s").unwrap();
        for text in ["one", "two"] {
            store.queue(&sample::message("s", text), Durability::Power).unwrap();
        }
        let inbox = layout::inbox(&store.session_folder(&session));
        disk.plant(&layout::session_fact(&inbox, 3, Kind::Message), b"{");
        let facts = store.session(&session).unwrap();
        assert_eq!(facts.messages.len(), 3);
        assert!(matches!(facts.messages[2].1.message, Read::Unreadable(_)));
        assert_eq!(store.queue(&sample::message("s", "four"), Durability::Power).unwrap(), 4);
    }
}
