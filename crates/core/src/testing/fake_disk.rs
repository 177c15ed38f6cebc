//! A file system in memory that can be full, broken, or cut off from power.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::LockState;
use crate::port::disk::{
    Disk, Flush, FolderWatch, Lock, LockMode, Publish, ReadError, ReadSeek, Wait, Watch,
};

/// Files, directories and locks by path.
#[derive(Debug, Clone, Default)]
pub struct FakeDisk(Arc<(Mutex<Tree>, Condvar)>);

#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
    locks: BTreeMap<PathBuf, i32>,
    nonce: u64,
    /// Changes that still succeed; nothing when all do.
    changes_left: Option<u32>,
    changes: u32,
    flushes: u32,
}

#[derive(Debug, Clone)]
struct Node {
    content: Option<Vec<u8>>,
    content_flushed: bool,
    name_flushed: bool,
}

impl FakeDisk {
    /// Lets the next `n` changes succeed and every later one fail, as on a full disk.
    pub fn fail_after(&self, n: u32) {
        self.tree().changes_left = Some(n);
    }

    /// Makes room again.
    pub fn heal(&self) {
        self.tree().changes_left = None;
    }

    /// How many changes there have been.
    pub fn changes(&self) -> u32 {
        self.tree().changes
    }

    /// How often a file or a directory that was already there was flushed.
    pub fn flushes(&self) -> u32 {
        self.tree().flushes
    }

    /// Cuts the power: names that were not flushed are gone, content that was not flushed is empty, no lock is held.
    pub fn cut_power(&self) {
        let mut tree = self.tree();
        let lost: Vec<_> =
            tree.nodes.iter().filter(|(_, node)| !node.name_flushed).map(|(path, _)| path.clone()).collect();
        tree.nodes.retain(|path, _| !lost.iter().any(|gone| path.starts_with(gone)));
        for node in tree.nodes.values_mut().filter(|node| !node.content_flushed) {
            node.content = node.content.as_ref().map(|_| Vec::new());
        }
        tree.locks.clear();
    }

    /// Every file with its content: the whole disk, to be compared.
    pub fn image(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        self.tree().nodes.iter().map(|(path, node)| (path.clone(), node.content.clone())).collect()
    }

    /// Puts any bytes under a name, as a crash or a stranger would.
    pub fn plant(&self, path: &Path, bytes: &[u8]) {
        self.tree().nodes.insert(path.to_owned(), Node::file(bytes, Flush::Power));
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.0.lock().unwrap()
    }
}

impl Node {
    fn file(bytes: &[u8], flush: Flush) -> Self {
        let flushed = flush == Flush::Power;
        Self { content: Some(bytes.to_vec()), content_flushed: flushed, name_flushed: flushed }
    }
    fn dir() -> Self {
        Self { content: None, content_flushed: true, name_flushed: false }
    }
}

impl Tree {
    fn change(&mut self) -> io::Result<()> {
        match &mut self.changes_left {
            Some(0) => return Err(io::Error::from(io::ErrorKind::StorageFull)),
            Some(left) => *left -= 1,
            None => {}
        }
        self.changes += 1;
        Ok(())
    }

    fn parent_must_exist(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.nodes.get(parent).is_some_and(|node| node.content.is_none()) {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::NotFound))
        }
    }

    fn is_held_below(&self, folder: &Path) -> bool {
        self.locks.iter().any(|(path, held)| path.starts_with(folder) && *held != 0)
    }

    fn take(&mut self, path: &Path, mode: LockMode) -> bool {
        let held = self.locks.entry(path.to_owned()).or_default();
        match mode {
            LockMode::Shared if *held >= 0 => *held += 1,
            LockMode::Exclusive if *held == 0 => *held = -1,
            _ => return false,
        }
        true
    }
}

struct Guard {
    disk: FakeDisk,
    path: PathBuf,
    mode: LockMode,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(held) = self.disk.tree().locks.get_mut(&self.path) {
            match self.mode {
                LockMode::Shared => *held -= 1,
                LockMode::Exclusive => *held = 0,
            }
        }
        self.disk.0.1.notify_all();
    }
}

impl Disk for FakeDisk {
    fn secure_home(&self, path: &Path) -> io::Result<PathBuf> {
        self.tree().nodes.entry(path.to_owned()).or_insert(Node { name_flushed: true, ..Node::dir() });
        Ok(path.to_owned())
    }

    fn make_dir(&self, path: &Path) -> io::Result<Publish> {
        let mut tree = self.tree();
        tree.parent_must_exist(path)?;
        if tree.nodes.contains_key(path) {
            return Ok(Publish::Exists);
        }
        tree.change()?;
        tree.nodes.insert(path.to_owned(), Node::dir());
        Ok(Publish::New)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let tree = self.tree();
        let children = tree.nodes.keys().filter(|path| path.parent() == Some(dir));
        Ok(children.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn publish_new(&self, path: &Path, bytes: &[u8], flush: Flush) -> io::Result<Publish> {
        let mut tree = self.tree();
        tree.parent_must_exist(path)?;
        tree.change()?;
        if tree.nodes.contains_key(path) {
            return Ok(Publish::Exists);
        }
        tree.nodes.insert(path.to_owned(), Node::file(bytes, flush));
        Ok(Publish::New)
    }

    fn publish_reserved(
        &self,
        reserve: &Path,
        path: &Path,
        bytes: &[u8],
        flush: Flush,
    ) -> io::Result<Publish> {
        let mut tree = self.tree();
        let room = tree.nodes.get(reserve).and_then(|node| node.content.as_ref()).map_or(0, Vec::len);
        if bytes.len() > room {
            drop(tree);
            return self.publish_new(path, bytes, flush);
        }
        if tree.nodes.contains_key(path) {
            return Ok(Publish::Exists);
        }
        tree.changes += 1; // The room is ours already: a full disk does not matter.
        tree.nodes.remove(reserve);
        tree.nodes.insert(path.to_owned(), Node::file(bytes, flush));
        Ok(Publish::New)
    }

    fn read(&self, path: &Path, max: u64) -> Result<Option<Vec<u8>>, ReadError> {
        match self.tree().nodes.get(path).map(|node| &node.content) {
            None => Ok(None),
            Some(None) => Err(ReadError::Refused("a directory".into())),
            Some(Some(bytes)) if bytes.len() as u64 > max => Err(ReadError::Refused("too large".into())),
            Some(Some(bytes)) => Ok(Some(bytes.clone())),
        }
    }

    fn open(&self, path: &Path) -> Result<Option<Box<dyn ReadSeek>>, ReadError> {
        Ok(self.read(path, u64::MAX)?.map(|bytes| Box::new(io::Cursor::new(bytes)) as Box<dyn ReadSeek>))
    }

    fn watch(&self, _folder: &Path) -> io::Result<Box<dyn Watch>> {
        Ok(Box::new(Restless))
    }

    fn watch_folders(&self) -> io::Result<Box<dyn FolderWatch>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        let tree = self.tree();
        Ok(tree.nodes.get(path).and_then(|node| node.content.as_ref()).map_or(0, Vec::len) as u64)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut tree = self.tree();
        tree.parent_must_exist(path)?;
        tree.change()?;
        let node = tree.nodes.entry(path.to_owned()).or_insert_with(|| Node::file(b"", Flush::No));
        node.content.get_or_insert_default().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&self, path: &Path) -> io::Result<()> {
        let mut tree = self.tree();
        tree.flushes += 1;
        for (name, node) in &mut tree.nodes {
            if name == path {
                node.content_flushed = true;
            } else if name.parent() == Some(path) {
                node.name_flushed = true;
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path, mode: LockMode, wait: Wait) -> io::Result<Option<Lock>> {
        let mut tree = self.tree();
        match (mode, tree.nodes.contains_key(path)) {
            (LockMode::Shared, false) => return Ok(Some(Lock::new(()))),
            (LockMode::Exclusive, false) => {
                tree.parent_must_exist(path)?;
                tree.change()?;
                tree.nodes.insert(path.to_owned(), Node::file(b"", Flush::No));
            }
            _ => {}
        }
        while !tree.take(path, mode) {
            match wait {
                Wait::Try => return Ok(None),
                Wait::Block => tree = self.0.1.wait(tree).unwrap(),
            }
        }
        drop(tree);
        Ok(Some(Lock::new(Guard { disk: self.clone(), path: path.to_owned(), mode })))
    }

    fn probe(&self, path: &Path) -> io::Result<LockState> {
        let held = self.tree().locks.get(path).is_some_and(|held| *held < 0);
        Ok(if held { LockState::Held } else { LockState::Free })
    }

    fn move_dir(&self, from: &Path, to: &Path) -> io::Result<Publish> {
        let mut tree = self.tree();
        tree.parent_must_exist(to)?;
        if !tree.nodes.contains_key(from) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        if tree.nodes.contains_key(to) {
            return Ok(Publish::Exists);
        }
        // As on the strictest of systems: a folder stays where it is while a file in it is open.
        if tree.is_held_below(from) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        tree.change()?;
        let inside: Vec<_> = tree.nodes.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in inside {
            let node = tree.nodes.remove(&path).expect("it was just listed");
            let rest = path.strip_prefix(from).expect("it starts with it");
            tree.nodes.insert(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) }, node);
        }
        Ok(Publish::New)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        let mut tree = self.tree();
        tree.parent_must_exist(name)?;
        tree.change()?;
        let content = tree.nodes.get(file).and_then(|node| node.content.clone());
        let bytes = content.ok_or(io::ErrorKind::NotFound)?;
        tree.nodes.insert(name.to_owned(), Node::file(&bytes, Flush::No));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut tree = self.tree();
        tree.change()?;
        tree.nodes.retain(|name, _| !name.starts_with(path));
        Ok(())
    }

    fn remove_if_empty(&self, path: &Path) -> io::Result<()> {
        if self.list(path)?.is_empty() { self.remove(path) } else { Ok(()) }
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        Ok(self.tree().nodes.get(path).is_some_and(|node| node.content.is_none()))
    }

    fn nonce(&self) -> u64 {
        let mut tree = self.tree();
        tree.nonce += 1;
        // Spread over all bits, so that consecutive ids differ where they should.
        tree.nonce.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Always returns early.
pub(super) struct Restless;

impl Watch for Restless {
    fn wait(&mut self, _within: Duration) {}
}
