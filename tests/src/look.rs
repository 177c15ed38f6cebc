//! Waiting for a condition, and the files by which programs bear witness.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;

use crate::scaled;

pub(crate) const POLL: Duration = Duration::from_millis(5);

/// Looks until there is something to return, every 5 ms for at most 20 s; under Wine, for a minute.
///
/// # Panics
///
/// With `what`, when the time has passed.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let most = Duration::from_secs(scaled(20, 60));
    let deadline = Instant::now() + most;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {most:?}: {what}");
        thread::sleep(POLL);
    }
}

/// The complete lines of a file; none if there is no file.
#[track_caller]
pub fn lines(path: impl AsRef<Path>) -> Vec<String> {
    match fs::read(path.as_ref()) {
        // What comes after the last newline is still being written.
        Ok(bytes) => bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_suffix(b"\n"))
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// Appends one line to a witness file, which many processes may share.
///
/// # Panics
///
/// If the line cannot be written: a witness that says nothing would prove the wrong thing.
pub fn witness(path: impl AsRef<Path>, line: impl Display) {
    // Wine looks for the end first and writes second, so that two processes can write over each other.
    let _turn = cfg!(windows).then(|| {
        let path = path.as_ref().with_added_extension("lock");
        let lock = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        lock.lock().unwrap();
        lock
    });
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path.as_ref()).unwrap();
    // One write, so that lines of different processes never mix.
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
