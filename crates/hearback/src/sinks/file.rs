//! Sinks that are a file: each delivery appends one line of JSON.
//!
//! hearback, executed again, writes the line, so that a disk that hangs blocks only that process.

use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_platform::Native;
use serde::Deserialize;

use super::builtin::{BuiltIn, Undelivered, input};
use super::hand_over::{HandOver, answer};
use super::kind::{SinkKind, TableKind};
use super::settings::SinkSettings;
use crate::settings_file::{Problem, SpannedTable};

/// A file that grows by one line of JSON with each delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileSink {
    /// Its path. A relative path is taken from the working directory of each job.
    pub path: PathBuf,
}

impl FileSink {
    /// The file at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl SinkKind for FileSink {
    fn check(&self, _: Native) -> Option<String> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
        folder.map(|folder| format!("there is no folder `{}`", folder.display()))
    }

    fn deliver(&self, hand_over: &HandOver<'_>) -> Result<SinkReply, SinkError> {
        let path = hearback_platform::from_os(self.path.as_os_str());
        answer(&hand_over.run_built_in(BUILT_IN.name, vec![path])?)
    }
}

/// `file = "…"` in the settings file.
pub(super) const TABLE: TableKind = TableKind { key: "file", keys: &["file"], parse };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    file: PathBuf,
}

fn parse(table: SpannedTable<'_>) -> Result<SinkSettings, Problem> {
    let Table { file } = table.read()?;
    // A delivery starts in the directory of its job, so that each job would have a file of its own. On Windows, a path
    // that begins with a backslash is on the current drive.
    if !file.has_root() {
        return Err(format!("`file` has to be an absolute path, and `{}` is not", file.display()).into());
    }
    Ok(SinkSettings::new(FileSink { path: file }))
}

/// What hearback does as this sink.
pub(super) const BUILT_IN: BuiltIn = BuiltIn { name: "file", run };

fn run(words: &[OsString]) -> Result<(), Undelivered> {
    let [path] = words else { return Err("a file sink needs one path".to_owned().into()) };
    append(Path::new(path))
}

/// Appends one line to a file in one write, so that two deliveries at the same time do not mix. The line is flushed
/// before it counts as delivered.
fn append(path: &Path) -> Result<(), Undelivered> {
    let mut line = input()?;
    // Output of jobs goes in there, which is nobody else's.
    let mut file = hearback_platform::open_to_add(path)?;
    // A line that a full disk cut short stays separate.
    if ends_within_a_line(&mut file)? {
        line.insert(0, b'\n');
    }
    file.write_all(&line)?;
    Ok(file.sync_data()?)
}

fn ends_within_a_line(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
