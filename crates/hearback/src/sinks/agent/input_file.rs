//! A file from which an open session reads prompts, if it was started with one. The command line of its process names
//! the file. When the session reads it is not known, so the follow-up counts as queued.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hearback_core::port::sink::SinkReply;
use hearback_platform::{Ancestor, Native};
use serde_json::json;

use super::{Knock, Visit, command};

pub(super) fn knock(visit: &Visit<'_>, option: &str) -> Knock {
    let closed = |reason: String| Knock::Closed { reason };
    let Some(process) = visit.open_in() else { return closed("the session is not open".into()) };
    let pid = process.pid;
    let Some(file) = file_of(&visit.hand_over.native.running(pid), option) else {
        return closed(format!("the session (pid {pid}) was not started with `{option}`"));
    };
    match append(&file, &command::text(visit, false)) {
        Ok(()) => Knock::Answered(SinkReply::Queued),
        Err(error) => closed(format!("the input file of the session cannot be written: {error}")),
    }
}

/// Whether a process was started with this option and a file.
pub(super) fn is_named_by(pid: u32, option: &str) -> bool {
    file_of(&Native::default().running(pid), option).is_some()
}

/// The file that an option of a process names.
fn file_of(process: &Ancestor, option: &str) -> Option<PathBuf> {
    let mut words = process.arguments.iter().map(|word| word.as_os_str());
    let file = words.find_map(|word| match word.to_str()?.strip_prefix(option)? {
        "" => Some(None),
        rest => rest.strip_prefix('=').map(|file| Some(PathBuf::from(file))),
    })?;
    let file = file.or_else(|| words.next().map(|word: &OsStr| PathBuf::from(word)))?;
    let place = process.cwd.as_deref().map(|cwd| cwd.join(&file)).unwrap_or(file);
    place.is_absolute().then_some(place)
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    // Opening a pipe would wait for its reader.
    if fs_err::metadata(file).is_ok_and(|about| !about.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = fs_err::OpenOptions::new().create(true).read(true).append(true).open(file)?;
    // What a full disk has cut must not swallow this line.
    let is_cut = match file.seek(SeekFrom::End(-1)) {
        Ok(_) => {
            let mut last = [0];
            file.read_exact(&mut last)?;
            last != *b"\n"
        }
        // It is empty.
        Err(_) => false,
    };
    let begin = if is_cut { "\n" } else { "" };
    // In one write, so that the session never reads half a line.
    let line = format!("{begin}{}\n", json!({"type": "submit", "text": text}));
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Option<PathBuf> {
        let arguments = words.iter().map(Into::into).collect();
        let root = std::env::temp_dir();
        file_of(&Ancestor { pid: 7, executable: None, arguments, cwd: Some(root) }, "--input-file")
    }

    #[test]
    fn the_file_is_the_one_that_the_command_line_names() {
        let there = Some(std::env::temp_dir().join("in.jsonl"));
        assert_eq!(named(&["node", "qwen", "--input-file", "in.jsonl", "-d"]), there);
        assert_eq!(named(&["node", "qwen", "--input-file=in.jsonl"]), there);
        assert_eq!(named(&["node", "qwen", "--input-files", "in.jsonl"]), None);
        assert_eq!(named(&["node", "qwen", "--input-file"]), None);
        assert_eq!(named(&["node", "qwen"]), None);
    }

    #[test]
    fn each_text_is_one_line_and_a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("in.jsonl");
        append(&file, "a\nb").unwrap();
        append(&file, "c").unwrap();
        let written = fs_err::read_to_string(&file).unwrap();
        let texts: Vec<_> = written
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].clone())
            .collect();
        assert_eq!(texts, ["a\nb", "c"]);
        // A full disk has cut the last line.
        fs_err::write(&file, r#"{"type":"subm"#).unwrap();
        append(&file, "d").unwrap();
        let last = fs_err::read_to_string(&file).unwrap().lines().last().unwrap().to_owned();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&last).unwrap()["text"], "d");
        assert!(append(folder.path(), "d").is_err());
    }
}
