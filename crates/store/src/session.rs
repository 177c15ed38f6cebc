//! The records of sessions: their turns, their inbox and their locks. The records of the host are in
//! [`host`](crate::host).

use std::path::{Path, PathBuf};

use hearback_core::port::disk::{Disk, Lock, LockMode, Publish, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::port::session::{SessionLock, SessionStore};
use hearback_core::session::{
    Message, MessageFact, MessageFacts, SessionFacts, TurnBegin, TurnFact, TurnFacts,
};
use hearback_core::{Durability, HostFact, HostFacts, JobId, Session, SmallSort, Timestamp};

use crate::layout::{self, SessionFactKind as Kind};
use crate::numbered::newest;
use crate::{Store, hash, store};

impl<D: Disk> Store<D> {
    fn session_folder(&self, session: &Session) -> PathBuf {
        self.layout.session(&hash::session_name(session))
    }

    /// Makes the folder of a session, and its inbox. A durable fact in it needs durable folder names.
    fn make_session(&self, folder: &Path, durability: Durability) -> Result<PathBuf, StoreError> {
        let inbox = layout::inbox(folder);
        if !self.disk().is_dir(&inbox)? {
            self.make_folders(folder)?;
            let _ = self.disk().make_dir(&inbox)?;
            if durability == Durability::Power {
                for folder in [folder, &self.layout.sessions(), self.layout.home()] {
                    self.disk().flush(folder)?;
                }
            }
        }
        Ok(inbox)
    }

    /// The session of an entry among the sessions; none if it is no folder, or nothing is recorded in it.
    fn session_in(&self, name: &str) -> Result<Option<Session>, StoreError> {
        // File managers leave files of their own in every folder that they show.
        if self.disk().is_dir(&self.layout.sessions().join(name))? { self.session_of(name) } else { Ok(None) }
    }

    /// The session of a folder. The folder is named by a hash; every turn and every message names the session.
    pub(crate) fn session_of(&self, folder_name: &str) -> Result<Option<Session>, StoreError> {
        let folder = self.layout.session(folder_name);
        let found = [self.numbered(&folder)?, self.numbered(&layout::inbox(&folder))?].concat();
        let mut failed = None;
        for (_, kind, path) in found.iter().rev() {
            let named = match kind {
                Kind::TurnBegin => {
                    self.records.read::<TurnBegin>(path).map(|it| it.present().map(|it| it.session.clone()))
                }
                Kind::Message => {
                    self.records.read::<Message>(path).map(|it| it.present().map(|it| it.session.clone()))
                }
                _ => continue,
            };
            match named {
                Ok(Some(session)) if hash::session_name(&session) == folder_name => return Ok(Some(session)),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    fn turns(&self, folder: &Path) -> Result<Vec<(u32, TurnFacts)>, StoreError> {
        let mut turns = Vec::new();
        for (n, kind, path) in self.numbered(folder)? {
            let turn = newest::<TurnFacts>(&mut turns, n);
            match kind {
                Kind::TurnBegin => turn.begin = self.records.read(path)?,
                Kind::Resumable => turn.resumable = self.records.read(path)?,
                Kind::Interrupt => turn.interrupt = self.records.read(path)?,
                Kind::TurnEnd => turn.end = self.records.read(path)?,
                _ => {}
            }
        }
        // A turn without its begin was about to be removed.
        turns.retain(|(_, turn)| !turn.begin.is_absent());
        Ok(turns)
    }

    fn messages(&self, inbox: &Path) -> Result<Vec<(u32, MessageFacts)>, StoreError> {
        let mut messages = Vec::new();
        for (n, kind, path) in self.numbered(inbox)? {
            let message = newest::<MessageFacts>(&mut messages, n);
            match kind {
                Kind::Message => message.message = self.records.read(path)?,
                Kind::MessageResult(attempt) => message.results.push((attempt, self.records.read(path)?)),
                Kind::MessageReceipt => message.receipt = self.records.read(path)?,
                _ => {}
            }
        }
        messages.retain(|(_, message)| !message.message.is_absent());
        for (_, message) in &mut messages {
            message.results.small_sort_by_key(|(attempt, _)| *attempt);
        }
        Ok(messages)
    }
}

impl<D: Disk> SessionStore for Store<D> {
    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        let names = self.disk().list(&self.layout.sessions())?;
        Ok(names.iter().filter_map(|name| self.session_in(name).ok()?).collect())
    }

    fn unreadable_sessions(&self) -> Result<Vec<(String, StoreError)>, StoreError> {
        let names = self.disk().list(&self.layout.sessions())?.into_iter();
        Ok(names.filter_map(|name| self.session_in(&name).err().map(|error| (name, error))).collect())
    }

    fn session(&self, session: &Session) -> Result<SessionFacts, StoreError> {
        let folder = self.session_folder(session);
        let turns = self.turns(&folder)?;
        Ok(SessionFacts { turns, messages: self.messages(&layout::inbox(&folder))? })
    }

    fn publish_turn(
        &self,
        session: &Session,
        n: u32,
        fact: &TurnFact,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let folder = self.session_folder(session);
        let (path, flush) = (|kind| layout::session_fact(&folder, n, kind), store::flush(durability));
        match fact {
            TurnFact::Begin(fact) => {
                self.make_session(&folder, durability)?;
                self.records.publish_new(path(Kind::TurnBegin), fact, flush)
            }
            TurnFact::Resumable(fact) => self.records.publish_new(path(Kind::Resumable), fact, flush),
            TurnFact::Interrupt(fact) => self.records.publish_new(path(Kind::Interrupt), fact, flush),
            TurnFact::End(fact) => self.records.publish_new(path(Kind::TurnEnd), fact, flush),
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
            match self.records.publish_new(path, message, store::flush(durability)) {
                Ok(Publish::New) => return Ok(last + 1),
                // Another process has just sent a message; or it removed the folder, because it was empty.
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
        let (path, flush) = (|kind| layout::session_fact(&inbox, n, kind), store::flush(durability));
        match fact {
            MessageFact::Result(attempt, fact) => {
                self.records.publish_new(path(Kind::MessageResult(*attempt)), fact, flush)
            }
            MessageFact::Receipt(fact) => self.records.publish_new(path(Kind::MessageReceipt), fact, flush),
        }
    }

    fn message_receipt_path(&self, session: &Session, n: u32) -> Option<PathBuf> {
        let inbox = layout::inbox(&self.session_folder(session));
        Some(layout::session_fact(&inbox, n, Kind::MessageReceipt))
    }

    fn forget(&self, session: &Session, keep: usize) -> Result<(), StoreError> {
        let folder = self.session_folder(session);
        self.keep_newest(&self.numbered(&folder)?, keep)?;
        let inbox = layout::inbox(&folder);
        let found = self.numbered(&inbox)?;
        let messages = self.messages(&inbox)?;
        let newest = messages.last().map(|(n, _)| *n).filter(|_| keep > 0);
        for (n, _) in messages.iter().filter(|(n, it)| Some(*n) != newest && !it.receipt.is_absent()) {
            // The receipt last: without it, the rest would look like a message that waits.
            let mut of_it: Vec<_> = found.iter().filter(|(other, ..)| other == n).collect();
            of_it.small_sort_by_key(|(_, kind, _)| *kind != Kind::Message);
            of_it.iter().try_for_each(|(_, _, path)| self.disk().remove(path))?;
        }
        Ok(())
    }

    fn mint(&self, now: Timestamp) -> JobId {
        JobId::mint(now.as_millis().unsigned_abs(), self.disk().nonce())
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
        self.host_facts()
    }

    fn publish_host(&self, n: u32, fact: &HostFact, durability: Durability) -> Result<Publish, StoreError> {
        self.publish_host_fact(n, fact, durability)
    }

    fn forget_host(&self, keep: usize) -> Result<(), StoreError> {
        self.forget_host_facts(keep)
    }

    fn lock_monitor(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError> {
        let folder = self.layout.monitor();
        self.lock_in(&folder, &layout::run_lock(&folder), mode, wait)
    }

    fn lock_deliverer(&self, mode: LockMode, wait: Wait) -> Result<Option<Lock>, StoreError> {
        let folder = self.layout.monitor();
        self.lock_in(&folder, &layout::deliverer_lock(&folder), mode, wait)
    }

    fn wake_host(&self) -> Result<(), StoreError> {
        self.write_wake()
    }
}

#[cfg(test)]
mod tests {
    use hearback_core::Read;
    use hearback_core::session::{MessageHow, TurnCause, TurnHow};
    use hearback_core::testing::{sample, suite};

    use super::*;
    use crate::testing::store;

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
            let has_ended = |turn: &TurnFacts| !turn.end.is_absent();
            assert!(keep == 0 || facts.turns.iter().all(|(_, turn)| has_ended(turn)), "cut short after {n}");
            // The next turn gets a new number, even if facts of earlier turns are left.
            let (next, begin) = (facts.last_turn() + 1, sample::turn_begin("s", TurnCause::Command));
            let begin = TurnFact::Begin(Box::new(begin));
            assert_eq!(store.publish_turn(&session, next, &begin, Durability::Power).unwrap(), Publish::New);
            let seen = store.session(&session).unwrap();
            assert!(seen.turns.last().is_some_and(|(_, turn)| !has_ended(turn)), "cut short after {n}");
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
