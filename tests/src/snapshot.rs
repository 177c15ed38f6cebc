//! What is in a folder at one moment.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::eventually;

/// Every file and folder below a folder, as it was at one moment: kind, permissions, times and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, (String, Vec<u8>)>);

impl Snapshot {
    /// Looks at everything below `folder`; nothing is followed and nothing but regular files is opened.
    ///
    /// A job that is just ending moves and removes files under the walk. What vanished between being listed and
    /// being looked at is somewhere else, so the walk begins again until it has seen one state of the folder.
    #[track_caller]
    pub fn of(folder: impl AsRef<Path>) -> Snapshot {
        let folder = folder.as_ref();
        eventually("the folder holds still for one look", || match Snapshot::look(folder) {
            Ok(snapshot) => Some(snapshot),
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.exists() => None,
            Err(error) => panic!("{error}"),
        })
    }

    fn look(folder: &Path) -> io::Result<Snapshot> {
        let mut seen = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let found = fs::symlink_metadata(&path)?;
                let (kind, bytes) = match found.file_type() {
                    kind if kind.is_dir() => {
                        folders.push(path.clone());
                        ("folder", Vec::new())
                    }
                    kind if kind.is_symlink() => {
                        ("link", fs::read_link(&path)?.into_os_string().into_encoded_bytes())
                    }
                    // The holder of a lock may keep other processes from reading it, and there is nothing in it.
                    _ if path.extension().is_some_and(|extension| extension == "lock") => {
                        ("lock", Vec::new())
                    }
                    kind if kind.is_file() => ("file", fs::read(&path)?),
                    _ => ("special", Vec::new()),
                };
                let about = format!("{kind} {:?} {:?}", found.permissions(), found.modified().ok());
                seen.insert(path, (about, bytes));
            }
        }
        Ok(Snapshot(seen))
    }

    /// The paths that were added, removed or changed in any way since then.
    #[track_caller]
    pub fn changes(&self, now: &Snapshot) -> Vec<PathBuf> {
        let paths = self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path)));
        paths.filter(|path| self.0.get(*path) != now.0.get(*path)).cloned().collect()
    }

    /// The paths, for what is not about their content.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// The files that hold these bytes, or have them in their name.
    pub fn holding(&self, bytes: &[u8]) -> Vec<&Path> {
        // A log has a second name there.
        let is_second = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with("logs"));
        let within = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        let found =
            self.0.iter().filter(|(path, _)| !is_second(path)).filter(|(path, (_, content))| {
                within(content) || within(path.as_os_str().as_encoded_bytes())
            });
        found.map(|(path, _)| path.as_path()).collect()
    }
}
