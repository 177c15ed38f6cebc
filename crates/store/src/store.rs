//! The records of all jobs over a disk.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use hearback_core::message::Excerpt;
use hearback_core::port::disk::{Disk, Flush, Lock, LockMode, Publish, ReadError, Wait, Watch};
use hearback_core::port::executor::Script;
use hearback_core::port::record::{JobLock, KeyClaim, RecordStore, StoreError};
use hearback_core::port::session::SessionLock;
use hearback_core::{
    Durability, FORMAT, Fact, FactKind, Facts, JobId, Key, Kill, LockView, Observed, Output, Place, Read,
    Reader, Remains, Session, Settled, Spec, Stamp, Timestamp,
};

use serde::{Deserialize, Serialize};

use crate::layout::{self, Layout, Numbered};
use crate::log::Log;
use crate::{key, read, settled};

/// Room for an end: one block of every file system that we know.
const END_RESERVE_BYTES: usize = 4096;
/// How often to move a job whose era is taken away under it.
const MOVES: usize = 8;
/// More than anybody writes by hand.
pub const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// A file that was begun longer ago than this will not be finished.
const UNFINISHED_MS: i64 = 60 * 60 * 1000;

/// The records of all jobs, below one folder.
#[derive(Debug, Clone)]
pub struct Store<D> {
    pub(crate) disk: D,
    pub(crate) layout: Layout,
}

impl<D: Disk> Store<D> {
    /// Opens the store at `home`, creating it if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsafe`] when somebody else owns the folder or may write it.
    pub fn open(disk: D, home: &Path) -> Result<Self, StoreError> {
        let home = disk.secure_home(home).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::Unsupported => {
                StoreError::Unsafe(error)
            }
            _ => error.into(),
        })?;
        let layout = Layout::new(home);
        let mut fresh = false;
        for folder in layout.folders() {
            if disk.is_dir(&folder)? {
                continue;
            }
            match disk.make_dir(&folder)? {
                Publish::New => fresh = true,
                Publish::Exists if disk.is_dir(&folder)? => {}
                // A link would lead us to files that are none of ours.
                Publish::Exists => {
                    let why = format!("`{}` is not a directory", folder.display());
                    return Err(StoreError::Unsafe(std::io::Error::new(
                        std::io::ErrorKind::NotADirectory,
                        why,
                    )));
                }
            }
        }
        if fresh {
            disk.flush(layout.home())?;
        }
        Ok(Self { disk, layout })
    }

    /// The folder of the store, by its real name.
    pub fn home(&self) -> &Path {
        self.layout.home()
    }

    /// Where settings are, and what is in there: settings are code, so the same checks apply as to facts.
    pub fn read_config(&self) -> (PathBuf, Result<Option<Vec<u8>>, ReadError>) {
        let path = self.layout.config();
        let text = self.disk.read(&path, MAX_CONFIG_BYTES);
        (path, text)
    }

    /// Opens what a job printed, of which its end says `recorded`; nothing when it printed nothing yet.
    ///
    /// # Errors
    ///
    /// When the log is not a file of ours, or the system would not.
    pub fn open_log(&self, id: &JobId, recorded: Option<Output>) -> Result<Option<Log>, ReadError> {
        for _ in 0..3 {
            let Some((folder, _)) = self.locate(id).map_err(io_error)? else { break };
            let file = self.disk.open(&layout::log(&folder))?;
            // A log that is not there while its folder moves away may be there in the next place.
            if file.is_some() || self.disk.is_dir(&folder)? {
                let tail = self.disk.open(&layout::log_tail(&folder))?;
                return Ok(file.map(|file| Log::new(file, tail, recorded)));
            }
        }
        Ok(None)
    }

    /// Watches the folder of a job; nothing when there is none any more.
    ///
    /// # Errors
    ///
    /// When the system has no more watches to give.
    pub fn watch(&self, id: &JobId) -> Result<Option<Box<dyn Watch>>, StoreError> {
        match self.locate(id)? {
            Some((folder, _)) => Ok(Some(self.disk.watch(&folder)?)),
            None => Ok(None),
        }
    }

    /// Watches for jobs that come and go.
    ///
    /// # Errors
    ///
    /// When the system has no more watches to give.
    pub fn watch_jobs(&self) -> Result<Box<dyn Watch>, StoreError> {
        Ok(self.disk.watch(&self.layout.jobs())?)
    }

    /// Makes a folder of the store with the one above it.
    pub(crate) fn make_folders(&self, folder: &Path) -> Result<(), StoreError> {
        let above = folder.parent().filter(|above| *above != self.home());
        for folder in above.into_iter().chain([folder]) {
            let _ = self.disk.make_dir(folder)?;
        }
        Ok(())
    }

    /// What the log of a job holds. That it cannot be read changes nothing about the job.
    fn printed(&self, folder: &Path, recorded: Option<&Output>) -> Result<Output, StoreError> {
        let path = layout::log(folder);
        let bytes = self.disk.size(&path)?;
        if bytes == 0 || recorded.is_some_and(|recorded| bytes <= recorded.bytes) {
            return Ok(Output { bytes, ..Output::default() });
        }
        let file = self.disk.open(&path).ok().flatten();
        let output = file.and_then(|file| Log::new(file, None, None).output().ok());
        Ok(output.unwrap_or(Output { bytes, ..Output::default() }))
    }

    /// Finds the folder of a job. Looks twice among the open ones, because a job may move between the looks.
    fn locate(&self, id: &JobId) -> Result<Option<(PathBuf, Place)>, StoreError> {
        let (open, past) = (self.layout.job(id), self.layout.past_job(id));
        for (folder, place) in [(&open, Place::Open), (&past, Place::History), (&open, Place::Open)] {
            if self.disk.is_dir(folder)? {
                return Ok(Some((folder.clone(), place)));
            }
        }
        Ok(None)
    }

    fn look(&self, id: &JobId, folder: &Path, place: Place) -> Result<Observed, StoreError> {
        let fact = |kind| layout::fact(folder, kind);
        let settled: Read<Settled> = read::fact(&self.disk, &fact(FactKind::Settled))?;
        if let Read::Present(mut settled) = settled {
            let facts = std::mem::take(&mut *settled.facts);
            let facts = Facts { settled: Read::Present(settled), ..facts };
            let output = self.printed(folder, facts.end.present().map(|end| &end.output))?;
            return Ok(Observed { id: id.clone(), facts, locks: LockView::FREE, place, output });
        }
        // This order is the protocol. A spec that is there was published under the launch lock, and a begin under
        // the alive lock; so a lock that is free after they were read was let go, and not merely not taken yet.
        // What its holder had to say before it let go is read after that.
        let spec = read::fact(&self.disk, &fact(FactKind::Spec))?;
        let begin = read::fact(&self.disk, &fact(FactKind::Begin))?;
        let locks = LockView {
            launch: self.disk.probe(&layout::lock(folder, JobLock::Launch))?,
            alive: self.disk.probe(&layout::lock(folder, JobLock::Alive))?,
        };
        let mut facts = Facts {
            spec,
            begin,
            target: read::fact(&self.disk, &fact(FactKind::Target))?,
            end: read::fact(&self.disk, &fact(FactKind::End))?,
            answer: read::fact(&self.disk, &fact(FactKind::Answer))?,
            receipt: read::fact(&self.disk, &fact(FactKind::Receipt))?,
            settled,
            ..Facts::default()
        };
        for name in self.disk.list(folder)? {
            let path = folder.join(&name);
            match layout::numbered(&name) {
                Some(Numbered::Kill(n)) => facts.kills.push((n, read::fact(&self.disk, &path)?)),
                Some(Numbered::Lease(n)) => facts.leases.push((n, read::fact(&self.disk, &path)?)),
                Some(Numbered::LeaseResult(n)) => facts.results.push((n, read::fact(&self.disk, &path)?)),
                None => {}
            }
        }
        facts.kills.sort_by_key(|(n, _)| *n);
        facts.leases.sort_by_key(|(n, _)| *n);
        facts.results.sort_by_key(|(n, _)| *n);
        let output = self.printed(folder, facts.end.present().map(|end| &end.output))?;
        Ok(Observed { id: id.clone(), facts, locks, place, output })
    }

    /// Whether nobody needs the folder where it is.
    fn is_quiet(&self, folder: &Path) -> Result<bool, StoreError> {
        use hearback_core::LockState::Free;
        for lock in [JobLock::Launch, JobLock::Alive] {
            if self.disk.probe(&layout::lock(folder, lock))? != Free {
                return Ok(false);
            }
        }
        // Held shared by those who need it, so that only taking it alone tells.
        let keeper = layout::lock(folder, JobLock::Keeper);
        let kept = self.disk.list(folder)?.iter().any(|name| keeper.ends_with(name));
        Ok(!kept || self.disk.lock(&keeper, LockMode::Exclusive, Wait::Try)?.is_some())
    }

    /// What is of no use in the folder of a settled job.
    fn spent(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        let names = self.disk.list(folder)?.into_iter();
        Ok(names.filter(|name| layout::is_spent(folder, name)).collect())
    }

    /// Whether no fact was ever recorded here. One whose spec was lost is a job all the same.
    fn is_blank(&self, folder: &Path) -> Result<bool, StoreError> {
        let facts = FactKind::SINGLE.map(|kind| layout::fact(folder, kind));
        let is_fact =
            |name: &String| facts.iter().any(|fact| fact.ends_with(name)) || layout::numbered(name).is_some();
        Ok(!self.disk.list(folder)?.iter().any(is_fact))
    }

    /// Does something in the folder of a job, wherever that is, and again if it moves away meanwhile.
    fn wherever<T>(&self, id: &JobId, act: impl Fn(&Path) -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..MOVES {
            let Some((folder, _)) = self.locate(id)? else { break };
            match act(&folder) {
                Err(error) if error.is_gone() => {}
                done => return done,
            }
        }
        Err(gone())
    }

    /// Removes the folder of a session in which nothing is but locks that nobody holds; tells whether it is gone.
    ///
    /// Whoever takes a lock, or sends a message, meanwhile finds that its file or its folder is gone, and makes both
    /// again.
    fn forget_session(&self, folder: &Path) -> Result<bool, StoreError> {
        let locks = SessionLock::ALL.map(|lock| layout::session_lock(folder, lock));
        let inbox = layout::inbox(folder);
        let is_shell = || -> Result<bool, StoreError> {
            let mut paths = self.disk.list(folder)?.into_iter().map(|name| folder.join(name));
            Ok(paths.all(|path| path == inbox || locks.contains(&path)) && self.disk.list(&inbox)?.is_empty())
        };
        // Looked at first, because whoever takes a lock makes its file.
        if !is_shell()? {
            return Ok(false);
        }
        let mut held = Vec::new();
        for lock in &locks {
            let Some(lock) = self.disk.lock(lock, LockMode::Exclusive, Wait::Try)? else { return Ok(false) };
            held.push(lock);
        }
        // And again under the locks: a turn may have begun and ended in between. A message needs no lock, and is there
        // by now or finds that its folder is gone.
        self.disk.remove_if_empty(&inbox)?;
        if !is_shell()? || self.disk.is_dir(&inbox)? {
            return Ok(false);
        }
        locks.iter().try_for_each(|lock| self.disk.remove(lock))?;
        // Where a file that is open keeps its name until it is closed, the folder is empty only now.
        drop(held);
        self.disk.remove_if_empty(folder)?;
        Ok(!self.disk.is_dir(folder)?)
    }

    fn to_trash(&self, folder: &Path, id: &JobId) -> Result<(), StoreError> {
        let trash = self.layout.trash().join(layout::trash_name(id, self.disk.nonce()));
        if self.disk.move_dir(folder, &trash)? == Publish::New {
            // What cannot be removed now, tidying finds; the job is gone either way.
            let _ = self.disk.remove(&trash);
        }
        Ok(())
    }

    /// Gives back the key of a job that never was, because its launch died before it had said what to run. Tells
    /// whether it did.
    fn release_key(&self, session: Option<&Session>, key: &Key, id: &JobId) -> Result<bool, StoreError> {
        // Whoever launches under this key meanwhile needs the lock in the folder that is not there.
        let folder = self.layout.job(id);
        if self.disk.make_dir(&folder)? == Publish::Exists {
            return Ok(false);
        }
        let launch = layout::lock(&folder, JobLock::Launch);
        let Some(launching) = self.disk.lock(&launch, LockMode::Exclusive, Wait::Try)? else {
            return Ok(false);
        };
        if !self.is_blank(&folder)? {
            return Ok(false);
        }
        key::release(&self.disk, &self.layout, session, key, id)?;
        self.remove_blank(&folder, launching)
    }

    /// Removes the folder of a job that never was, under its lock; tells whether it is gone.
    ///
    /// File by file: on some systems a folder cannot be moved to the trash while a file in it is open, and the lock is.
    fn remove_blank(&self, folder: &Path, launching: Lock) -> Result<bool, StoreError> {
        let lock = layout::lock(folder, JobLock::Launch);
        let names = self.disk.list(folder)?;
        let others = names.iter().map(|name| folder.join(name)).filter(|path| *path != lock);
        // The lock comes last: until then nobody else begins anything here.
        others.chain([lock.clone()]).try_for_each(|path| self.disk.remove(&path))?;
        drop(launching);
        self.disk.remove_if_empty(folder)?;
        Ok(!self.disk.is_dir(folder)?)
    }

    fn ids_in(&self, folder: &Path) -> Result<Vec<JobId>, StoreError> {
        let mut ids: Vec<_> =
            self.disk.list(folder)?.iter().filter_map(|name| JobId::parse(name).ok()).collect();
        ids.sort();
        Ok(ids)
    }
}

/// Says that a reader has the answer of a job.
#[derive(Debug, Serialize, Deserialize)]
struct ReaderNote {
    format: u32,
    /// Nobody for the parent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reader: Option<Reader>,
    at: Stamp,
}

fn gone() -> StoreError {
    std::io::Error::from(ErrorKind::NotFound).into()
}

/// What was opened; nothing when it is none of ours, or not to be read: a job may put anything into its folder.
fn usable<T>(opened: Result<Option<T>, ReadError>) -> Result<Option<T>, StoreError> {
    match opened {
        Err(ReadError::Io(error)) if error.kind() != ErrorKind::PermissionDenied => Err(error.into()),
        Err(_) => Ok(None),
        Ok(opened) => Ok(opened),
    }
}

fn io_error(error: StoreError) -> ReadError {
    match error {
        StoreError::Io(error) => error.into(),
        other => std::io::Error::other(other).into(),
    }
}

impl<D: Disk> RecordStore for Store<D> {
    fn create(&self, now: Timestamp) -> Result<JobId, StoreError> {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        loop {
            let id = JobId::mint(millis, self.disk.nonce());
            if self.disk.make_dir(&self.layout.job(&id))? == Publish::New {
                return Ok(id);
            }
        }
    }

    fn recreate(&self, id: &JobId) -> Result<(), StoreError> {
        let _ = self.disk.make_dir(&self.layout.job(id))?;
        Ok(())
    }

    fn claim_key(&self, session: Option<&Session>, key: &Key, id: &JobId) -> Result<KeyClaim, StoreError> {
        key::claim(&self.disk, &self.layout, session, key, id)
    }

    fn publish(&self, id: &JobId, fact: &Fact, durability: Durability) -> Result<Publish, StoreError> {
        let folder = self.layout.job(id);
        let path = layout::fact(&folder, fact.kind());
        let flush = match (fact, durability) {
            (Fact::Spec(_) | Fact::End(_) | Fact::Answer(_) | Fact::Receipt(_), Durability::Power) => {
                Flush::Power
            }
            _ => Flush::No,
        };
        let published = match fact {
            Fact::End(end) => {
                let mut end = end.clone();
                end.fit(END_RESERVE_BYTES);
                let bytes = Fact::End(end).to_json()?;
                self.disk.publish_reserved(&layout::end_reserve(&folder), &path, &bytes, flush)?
            }
            Fact::Settled(settled) => {
                let bytes = settled::to_json(&self.disk, &folder, settled)?;
                self.disk.publish_new(&path, &bytes, flush)?
            }
            _ => self.disk.publish_new(&path, &fact.to_json()?, flush)?,
        };
        // Whoever relies on what another has published makes sure that it lasts: their flush may have failed.
        if published == Publish::Exists && flush == Flush::Power {
            self.disk.flush(&folder)?;
        }
        if matches!(fact, Fact::Spec(_)) && flush == Flush::Power {
            // The spec is no use if the name of its folder is lost.
            self.disk.flush(&self.layout.jobs())?;
        }
        Ok(published)
    }

    fn flush_spec(&self, id: &JobId) -> Result<(), StoreError> {
        let folder = self.layout.job(id);
        self.disk.flush(&layout::fact(&folder, FactKind::Spec))?;
        self.disk.flush(&folder)?;
        Ok(self.disk.flush(&self.layout.jobs())?)
    }

    fn reserve_end(&self, id: &JobId) -> Result<(), StoreError> {
        // Written and not merely allocated, so that no file system finds out later that it has no room. One that is
        // there is from an earlier launch under the same key.
        let reserve = layout::end_reserve(&self.layout.job(id));
        let _ = self.disk.publish_new(&reserve, &[b' '; END_RESERVE_BYTES], Flush::No)?;
        Ok(())
    }

    fn write_script(&self, id: &JobId, script: &Script) -> Result<PathBuf, StoreError> {
        let path = layout::script(&self.layout.job(id), script.extension);
        let _ = self.disk.publish_new(&path, &script.bytes, Flush::No)?;
        Ok(path)
    }

    fn log_path(&self, id: &JobId) -> PathBuf {
        let place = self.locate(id).ok().flatten();
        layout::log(&place.map_or_else(|| self.layout.job(id), |(folder, _)| folder))
    }

    fn log_tail_path(&self, id: &JobId) -> PathBuf {
        layout::log_tail(&self.layout.job(id))
    }

    fn answer_path(&self, id: &JobId) -> PathBuf {
        layout::answer(&self.layout.job(id))
    }

    fn remains(&self, seen: &Observed, most: u64) -> Result<Remains, StoreError> {
        let recorded = seen.facts.end.present().map(|end| end.output.clone());
        let log = usable(self.open_log(&seen.id, recorded))?;
        let excerpt = log.map(|mut log| log.excerpt(0, most)).transpose()?;
        let (output, cut) = excerpt.map_or((Vec::new(), false), |excerpt| {
            // Without a gap the head is everything.
            ([excerpt.head, excerpt.tail].concat(), excerpt.omitted > 0)
        });
        let mut file = Vec::new();
        if let Some((folder, _)) = self.locate(&seen.id)?
            && let Some(answer) = usable(self.disk.open(&layout::answer(&folder)))?
        {
            answer.take(most).read_to_end(&mut file)?;
        }
        Ok(Remains { file, output, cut })
    }

    fn acknowledge(
        &self,
        id: &JobId,
        reader: Option<&Reader>,
        at: &Stamp,
        durability: Durability,
    ) -> Result<Publish, StoreError> {
        let name = key::reader_name(reader);
        let note = ReaderNote { format: FORMAT, reader: reader.cloned(), at: at.clone() };
        let flush = if durability == Durability::Power { Flush::Power } else { Flush::No };
        self.wherever(id, |folder| {
            let path = layout::reader_note(folder, &name);
            let published = self.disk.publish_new(&path, &serde_json::to_vec(&note)?, flush)?;
            if published == Publish::Exists && flush == Flush::Power {
                self.disk.flush(folder)?;
            }
            Ok(published)
        })
    }

    fn is_acknowledged(&self, id: &JobId, reader: Option<&Reader>) -> Result<bool, StoreError> {
        let name = key::reader_name(reader);
        let noted = self.wherever(id, |folder| {
            let note: Read<ReaderNote> = read::fact(&self.disk, &layout::reader_note(folder, &name))?;
            // What is not there while its folder moves away may be there in the next place.
            match note {
                Read::Absent if !self.disk.is_dir(folder)? => Err(gone()),
                // One that cannot be read is there.
                note => Ok(!note.is_absent()),
            }
        });
        match noted {
            Err(error) if error.is_gone() => Ok(false),
            noted => noted,
        }
    }

    fn lock_reader(&self, id: &JobId, reader: Option<&Reader>) -> Result<Option<Lock>, StoreError> {
        let name = key::reader_name(reader);
        self.wherever(id, |folder| {
            Ok(self.disk.lock(&layout::reader_lock(folder, &name), LockMode::Exclusive, Wait::Try)?)
        })
    }

    fn bell_path(&self, id: &JobId) -> PathBuf {
        layout::bell(&self.layout.job(id))
    }

    fn note(&self, id: &JobId, line: &str) -> Result<(), StoreError> {
        let path = layout::supervisor_log(&self.layout.job(id));
        Ok(self.disk.append(&path, format!("{line}\n").as_bytes())?)
    }

    fn spec(&self, id: &JobId) -> Result<Read<Spec>, StoreError> {
        read::fact(&self.disk, &layout::fact(&self.layout.job(id), FactKind::Spec))
    }

    fn kills(&self, id: &JobId, after: u32) -> Result<Vec<(u32, Read<Kill>)>, StoreError> {
        let folder = self.layout.job(id);
        let mut kills = Vec::new();
        // They are numbered without gaps: whoever asks takes the first number that is free.
        for n in after.saturating_add(1).. {
            match read::fact(&self.disk, &layout::fact(&folder, FactKind::Kill(n)))? {
                Read::Absent => break,
                kill => kills.push((n, kill)),
            }
        }
        Ok(kills)
    }

    fn observe(&self, id: &JobId) -> Result<Option<Observed>, StoreError> {
        // A job moves once and is pruned once, so three looks see it or know that it is gone.
        for _ in 0..3 {
            let Some((folder, place)) = self.locate(id)? else { return Ok(None) };
            let seen = self.look(id, &folder, place);
            // What was read while the folder moved away is no observation: facts would seem to be missing.
            if self.disk.is_dir(&folder)? {
                return seen.map(Some);
            }
        }
        Ok(None)
    }

    fn lock(
        &self,
        id: &JobId,
        lock: JobLock,
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Lock>, StoreError> {
        Ok(self.disk.lock(&layout::lock(&self.layout.job(id), lock), mode, wait)?)
    }

    fn excerpt(&self, seen: &Observed, head: u64, tail: u64) -> Result<Excerpt, StoreError> {
        let recorded = seen.facts.end.present().map(|end| end.output.clone());
        match self.open_log(&seen.id, recorded) {
            Ok(Some(mut log)) => Ok(log.excerpt(head, tail)?),
            Ok(None) => Ok(Excerpt { head: Vec::new(), tail: Vec::new(), omitted: 0 }),
            Err(error) => Err(std::io::Error::other(error).into()),
        }
    }

    fn open_jobs(&self) -> Result<Vec<JobId>, StoreError> {
        self.ids_in(&self.layout.jobs())
    }

    fn past_jobs(&self, most: usize) -> Result<Vec<JobId>, StoreError> {
        let mut eras = self.disk.list(&self.layout.history())?;
        eras.sort();
        let mut newest = Vec::new();
        for era in eras.iter().rev() {
            // A file manager leaves files of its own wherever it looks.
            if !self.disk.is_dir(&self.layout.era(era))? {
                continue;
            }
            newest.extend(self.ids_in(&self.layout.era(era))?.into_iter().rev());
            if newest.len() >= most {
                break;
            }
        }
        newest.truncate(most);
        Ok(newest)
    }

    fn archive(&self, id: &JobId) -> Result<bool, StoreError> {
        let (folder, past) = (self.layout.job(id), self.layout.past_job(id));
        if !self.disk.is_dir(&folder)? {
            return Ok(self.disk.is_dir(&past)?);
        }
        if !self.is_quiet(&folder)? {
            return Ok(false);
        }
        let mut spent = self.spent(&folder)?;
        if !spent.is_empty() {
            for name in &spent {
                let _ = self.disk.remove(&folder.join(name));
            }
            // What somebody else is just removing too may be there until that one is done.
            spent = self.spent(&folder)?;
        }
        if !spent.is_empty() {
            // Somebody has it open, or the disk would not: among the open jobs the next look finds it.
            return Ok(false);
        }
        for _ in 0..MOVES {
            let _ = self.disk.make_dir(&self.layout.era(id.era()))?;
            match self.disk.move_dir(&folder, &past) {
                Ok(published) => return Ok(published == Publish::New),
                // Prune took the empty era away under us, or somebody else has moved it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    if self.disk.is_dir(&past)? {
                        return Ok(true);
                    }
                }
                // Where an open file holds its folder in place, somebody is reading: there is time.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn prune(&self, id: &JobId) -> Result<bool, StoreError> {
        let Some((folder, place)) = self.locate(id)? else { return Ok(true) };
        if !self.is_quiet(&folder)? {
            return Ok(false);
        }
        let spec: Read<Spec> = read::fact(&self.disk, &layout::fact(&folder, FactKind::Spec))?;
        if let Read::Present(Spec { session, key: Some(key), .. }) = spec {
            // Whoever launches under this key at the moment holds the lock, and keeps key and job.
            let launch = layout::lock(&folder, JobLock::Launch);
            let Some(_launching) = self.disk.lock(&launch, LockMode::Exclusive, Wait::Try)? else {
                return Ok(false);
            };
            key::release(&self.disk, &self.layout, session.as_ref(), &key, id)?;
        }
        match self.to_trash(&folder, id) {
            // Somebody else pruned it.
            Err(error) if error.is_gone() => {}
            other => other?,
        }
        if place == Place::History {
            self.disk.remove_if_empty(&self.layout.era(id.era()))?;
        }
        Ok(true)
    }

    fn discard(&self, id: &JobId) -> Result<bool, StoreError> {
        let folder = self.layout.job(id);
        if !self.disk.is_dir(&folder)? {
            return Ok(true);
        }
        let launch = layout::lock(&folder, JobLock::Launch);
        let launching = match self.disk.lock(&launch, LockMode::Exclusive, Wait::Try) {
            Ok(Some(launching)) => launching,
            Ok(None) => return Ok(false),
            // On a full disk there may be no room for the lock either; then the folder is as empty as it was made.
            Err(error) => {
                self.disk.remove_if_empty(&folder)?;
                return if self.disk.is_dir(&folder)? { Err(error.into()) } else { Ok(true) };
            }
        };
        if !self.is_blank(&folder)? {
            return Ok(false);
        }
        self.remove_blank(&folder, launching)
    }

    fn tidy(&self, now: Timestamp) -> Result<usize, StoreError> {
        let mut removed = 0;
        for name in self.disk.list(&self.layout.trash())? {
            // What we did not put there is not ours to remove.
            if !layout::is_trash(&name) {
                continue;
            }
            // One file that somebody holds open must not keep the rest.
            removed += usize::from(self.disk.remove(&self.layout.trash().join(name)).is_ok());
        }
        // Claims of keys, and what was being tried in the store itself.
        for folder in [self.layout.keys(), self.home().to_owned()] {
            for name in self.disk.list(&folder)? {
                if layout::unfinished_since(&name)
                    .is_some_and(|since| now.as_millis().saturating_sub(since) > UNFINISHED_MS)
                {
                    removed += usize::from(self.disk.remove(&folder.join(name)).is_ok());
                }
            }
        }
        for name in self.disk.list(&self.layout.sessions())? {
            let folder = self.layout.sessions().join(name);
            // One that somebody is in, or that cannot be looked at, stays.
            removed +=
                usize::from(self.disk.is_dir(&folder)? && self.forget_session(&folder).unwrap_or(false));
        }
        for id in self.open_jobs()? {
            if matches!(self.spec(&id), Ok(Read::Absent)) && self.disk.is_dir(&self.layout.job(&id))? {
                removed += usize::from(self.discard(&id).unwrap_or(false));
            }
        }
        for (session, key, id) in key::all(&self.disk, &self.layout)? {
            if self.locate(&id)?.is_none() {
                removed += usize::from(self.release_key(session.as_ref(), &key, &id).unwrap_or(false));
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::{FakeDisk, sample, suite};
    use hearback_core::{JobState, LockState, Outcome, fold};

    fn store() -> (FakeDisk, Store<FakeDisk>) {
        let disk = FakeDisk::default();
        (disk.clone(), Store::open(disk, Path::new("/home")).unwrap())
    }

    fn launched(store: &Store<FakeDisk>, durability: Durability) -> JobId {
        let id = store.create(sample::at()).unwrap();
        let spec = Fact::Spec(Box::new(sample::unowned(&id)));
        assert_eq!(store.publish(&id, &spec, durability).unwrap(), Publish::New);
        id
    }

    #[test]
    fn the_store_passes_the_suite_of_its_port() {
        suite::record(&store().1);
    }

    #[test]
    fn a_write_that_fails_at_any_point_leaves_no_half_job() {
        for n in 0..20 {
            let (disk, store) = store();
            disk.fail_after(n);
            let made = store.create(sample::at()).and_then(|id| {
                let spec = Fact::Spec(Box::new(sample::unowned(&id)));
                let _ = store.publish(&id, &spec, Durability::Power)?;
                store.reserve_end(&id)?;
                Ok(id)
            });
            disk.heal();
            match made {
                Ok(id) => {
                    let seen = store.observe(&id).unwrap().unwrap();
                    assert!(seen.facts.spec.present().is_some());
                }
                Err(_) => {
                    for id in store.open_jobs().unwrap() {
                        let seen = store.observe(&id).unwrap().unwrap();
                        let spec = &seen.facts.spec;
                        assert!(spec.is_absent() || spec.present().is_some(), "never torn");
                    }
                }
            }
        }
    }

    #[test]
    fn a_full_disk_has_room_for_the_end() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Power);
        store.reserve_end(&id).unwrap();
        disk.fail_after(0);
        let mut end = sample::end(7);
        end.survivors = (1..500).map(sample::process).collect();
        let fact = Fact::End(Box::new(end));
        assert_eq!(store.publish(&id, &fact, Durability::Power).unwrap(), Publish::New);
        let seen = store.observe(&id).unwrap().unwrap();
        let end = seen.facts.end.present().unwrap();
        assert_eq!(end.outcome, Outcome::Exited { code: 7 });
        assert_eq!(end.survivors.len() as u64 + end.survivors_omitted, 499, "what was cut is counted");
    }

    #[test]
    fn what_was_promised_survives_a_power_cut() {
        let (disk, store) = store();
        let kept = launched(&store, Durability::Power);
        let ended = launched(&store, Durability::Power);
        let lost = launched(&store, Durability::Process);
        store.reserve_end(&ended).unwrap();
        let end = Fact::End(Box::new(sample::end(3)));
        let _ = store.publish(&ended, &end, Durability::Power).unwrap();
        disk.cut_power();
        assert!(store.observe(&kept).unwrap().unwrap().facts.spec.present().is_some());
        assert!(store.observe(&ended).unwrap().unwrap().facts.end.present().is_some());
        let gone = store.observe(&lost).unwrap();
        assert!(gone.is_none_or(|seen| seen.facts.spec.present().is_none()), "nothing was promised");
    }

    #[test]
    fn a_spec_that_its_launcher_did_not_flush_is_flushed_by_the_supervisor() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        store.flush_spec(&id).unwrap();
        disk.cut_power();
        assert!(store.observe(&id).unwrap().unwrap().facts.spec.present().is_some());
    }

    #[test]
    fn what_is_held_is_neither_moved_nor_pruned() {
        let (_, store) = store();
        let id = launched(&store, Durability::Process);
        for (lock, mode) in [
            (JobLock::Launch, LockMode::Exclusive),
            (JobLock::Alive, LockMode::Exclusive),
            (JobLock::Keeper, LockMode::Exclusive),
        ] {
            let held = store.lock(&id, lock, mode, Wait::Try).unwrap().unwrap();
            assert!(!store.archive(&id).unwrap(), "{lock:?}");
            assert!(!store.prune(&id).unwrap(), "{lock:?}");
            drop(held);
        }
        let held = store.lock(&id, JobLock::Keeper, LockMode::Shared, Wait::Try).unwrap().unwrap();
        assert!(!store.archive(&id).unwrap(), "shared holders count");
        drop(held);
        assert!(store.archive(&id).unwrap());
    }

    #[test]
    fn tidying_removes_what_crashes_left_and_nothing_else() {
        let (disk, store) = store();
        let job = launched(&store, Durability::Process);
        let empty = store.create(sample::at()).unwrap();
        let launching = store.create(sample::at()).unwrap();
        let held = store.lock(&launching, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
        let now = sample::at();
        disk.plant(&PathBuf::from(format!("/home/trash/{}", layout::trash_name(&job, 7))), b"");
        disk.plant(Path::new("/home/trash/photos"), b"");
        disk.plant(
            &PathBuf::from(format!("/home/keys/tmp.{}.1.2", now.as_millis() - 2 * UNFINISHED_MS)),
            b"",
        );
        disk.plant(&PathBuf::from(format!("/home/keys/tmp.{}.1.2", now.as_millis())), b"");
        let long_ago = Timestamp::from_millis(now.as_millis() - 2 * UNFINISHED_MS);
        for begun in [long_ago, now] {
            disk.plant(&Path::new("/home").join(layout::workshop_name(begun, 7)), b"");
        }
        assert_eq!(store.tidy(now).unwrap(), 4);
        let mut left = vec![job, launching];
        left.sort();
        assert_eq!(store.open_jobs().unwrap(), left);
        assert!(store.observe(&empty).unwrap().is_none());
        assert_eq!(store.tidy(now).unwrap(), 0, "tidying again changes nothing");
        drop(held);
    }

    #[test]
    fn the_key_of_a_launch_that_died_early_is_given_back_and_no_other() {
        let (disk, store) = store();
        let (dead, alive, known) = ("dead", "alive", "known");
        let claimed = |name: &str, id: &JobId| {
            let key = Key::parse(name).unwrap();
            assert_eq!(store.claim_key(None, &key, id).unwrap(), KeyClaim::Ours);
        };
        let [died, launching, job] = [(); 3].map(|()| store.create(sample::at()).unwrap());
        for (name, id) in [(dead, &died), (alive, &launching), (known, &job)] {
            claimed(name, id);
        }
        let spec = Spec { key: Key::parse(known).ok(), ..sample::unowned(&job) };
        let _ = store.publish(&job, &Fact::Spec(Box::new(spec)), Durability::Process).unwrap();
        let held = store.lock(&launching, JobLock::Launch, LockMode::Exclusive, Wait::Try).unwrap();
        let keys = || disk.list(Path::new("/home/keys")).unwrap().len();
        assert_eq!(keys(), 3);
        // The folder goes first, and then its key.
        assert_eq!(store.tidy(sample::at()).unwrap(), 2);
        assert_eq!(keys(), 2);
        let mut left = vec![launching, job];
        left.sort();
        assert_eq!(store.open_jobs().unwrap(), left);
        assert_eq!(store.tidy(sample::at()).unwrap(), 0, "tidying again changes nothing");
        // What launches under it again takes a fresh id.
        let again = store.create(sample::at()).unwrap();
        claimed(dead, &again);
        drop(held);
    }

    #[test]
    fn what_a_launch_left_goes_also_where_its_lock_holds_the_folder_in_place() {
        let (disk, store) = store();
        let [blank, keyed] = [(); 2].map(|()| store.create(sample::at()).unwrap());
        assert_eq!(store.claim_key(None, &Key::parse("k").unwrap(), &keyed).unwrap(), KeyClaim::Ours);
        assert!(store.discard(&blank).unwrap());
        assert_eq!(store.open_jobs().unwrap(), [keyed]);
        assert_eq!(store.tidy(sample::at()).unwrap(), 2, "the folder goes first, and then its key");
        for folder in ["jobs", "keys", "trash"] {
            assert_eq!(disk.list(&Path::new("/home").join(folder)).unwrap(), [""; 0], "{folder}");
        }
    }

    #[test]
    fn a_lock_that_is_held_is_seen_as_held() {
        let (_, store) = store();
        let id = launched(&store, Durability::Process);
        let _ = store.publish(&id, &Fact::Begin(sample::begin()), Durability::Process).unwrap();
        let held = store.lock(&id, JobLock::Alive, LockMode::Exclusive, Wait::Block).unwrap();
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(seen.locks.alive, LockState::Held);
        assert_eq!(fold(&seen.facts, seen.locks).state, JobState::Running);
        drop(held);
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(fold(&seen.facts, seen.locks).state, JobState::Orphaned);
    }

    #[test]
    fn what_a_job_left_behind_is_read_within_bounds_and_never_through_a_stranger() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        let seen = store.observe(&id).unwrap().unwrap();
        assert_eq!(store.remains(&seen, 100).unwrap(), Remains::default());
        let folder = store.layout.job(&id);
        disk.plant(&layout::answer(&folder), "x".repeat(500).as_bytes());
        disk.plant(&layout::log(&folder), "line\n".repeat(100).as_bytes());
        let remains = store.remains(&seen, 100).unwrap();
        assert_eq!((remains.file.len(), remains.output.len(), remains.cut), (100, 100, true));
        let remains = store.remains(&seen, 1000).unwrap();
        assert_eq!((remains.file.len(), remains.output.len(), remains.cut), (500, 500, false));
    }

    #[test]
    fn scenario_55_what_is_spent_goes_with_the_settlement_or_with_a_later_look() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        let folder = store.layout.job(&id);
        let spent = [layout::answer(&folder), layout::script(&folder, ""), layout::script(&folder, "ps1")];
        for path in &spent {
            disk.plant(path, b"spent");
        }
        // However far the removal gets at first.
        for n in 0..=spent.len() as u32 {
            disk.fail_after(n.min(1));
            assert!(
                !store.archive(&id).is_ok_and(|archived| archived),
                "it stays where a later look finds it"
            );
            disk.heal();
            assert!(disk.image().contains_key(&layout::fact(&folder, FactKind::Spec)));
        }
        assert!(store.archive(&id).unwrap());
        let past = store.layout.past_job(&id);
        let left: Vec<_> = disk.image().into_keys().filter(|path| path.starts_with(&past)).collect();
        assert_eq!(left, [past.clone(), layout::fact(&past, FactKind::Spec)]);
    }

    #[test]
    fn scenario_46_a_session_of_which_nothing_is_left_leaves_no_shell() {
        use hearback_core::port::session::SessionStore;
        let (disk, store) = store();
        let [mine, yours, sent] = ["mine", "yours", "sent"].map(|name| Session::parse(name).unwrap());
        let enter =
            |session| store.lock_session(session, SessionLock::Turn, LockMode::Exclusive, Wait::Try).unwrap();
        let is_there = |session| disk.is_dir(&store.layout.session(&key::session_name(session))).unwrap();
        let turn = enter(&mine).unwrap();
        drop(enter(&yours).unwrap());
        store.queue(&sample::message("sent", "hello"), Durability::Power).unwrap();
        assert_eq!(store.tidy(sample::at()).unwrap(), 1);
        assert!(is_there(&mine), "it is in a turn");
        assert!(is_there(&sent), "something was said in it");
        assert!(!is_there(&yours));
        drop(turn);
        assert_eq!(store.tidy(sample::at()).unwrap(), 1);
        assert!(!is_there(&mine) && is_there(&sent));
        assert!(enter(&mine).is_some(), "whoever comes back finds a new one");
    }
}
