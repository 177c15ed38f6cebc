//! What `/proc` says about processes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::look::POLL;

/// The letter of a process's state; none if there is no such process.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before it stands in parentheses and may contain any of them itself.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied().map(char::from)
}

pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    // proc(5) counts from 1 and two fields lie before the bracket: field n is at n - 3.
    let fields: Vec<_> = stat.get(end + 2..)?.split(|byte| *byte == b' ').collect();
    let number = |n: usize| str::from_utf8(fields.get(n - 3)?).ok()?.parse::<u64>().ok();
    // PF_EXITING: from then on no code of the process runs.
    let dead = matches!(*fields.first()?, b"Z" | b"X" | b"x") || number(9)? & 4 != 0;
    number(22).filter(|_| !dead)
}

/// Kills every process that carries this home, or the mark of a job in it, until there is none.
pub(crate) fn end_processes_of(home: &Path) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while Instant::now() < deadline {
        let marks = marks_of(home);
        let found: Vec<Pid> = others().filter(|pid| carries(*pid, &marks)).collect();
        if found.is_empty() {
            return;
        }
        for pid in found {
            // Only a process that was just seen to carry a name that only this world has.
            let _ = kill(pid, Signal::SIGKILL);
        }
        thread::sleep(POLL);
    }
}

pub(crate) fn carrying(entry: &str) -> Vec<u32> {
    let marks = HashSet::from([entry.as_bytes().to_vec()]);
    others().filter(|pid| carries(*pid, &marks)).map(|pid| pid.as_raw().unsigned_abs()).collect()
}

fn others() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    pids.filter(|pid| *pid != Pid::this())
}

/// The environment entries that only processes of this world have: the home is a fresh random path, and
/// a job's id is random too.
fn marks_of(home: &Path) -> HashSet<Vec<u8>> {
    let mut marks = HashSet::from([[b"HEARBACK_HOME=", home.as_os_str().as_encoded_bytes()].concat()]);
    let history = folders_in(&home.join("history"));
    for folder in [home.join("jobs")].iter().chain(&history) {
        for job in folders_in(folder) {
            let id = job.file_name().expect("a listed folder has a name").as_encoded_bytes();
            marks.insert([b"HEARBACK_JOB=", id].concat());
            marks.insert([b"HEARBACK_SUPERVISOR=", id].concat());
        }
    }
    marks
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

// A zombie has an empty environment, so it is not found again.
fn carries(pid: Pid, marks: &HashSet<Vec<u8>>) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|entry| marks.contains(entry))
}
