//! What the records of a world say about its processes.

use std::path::{Path, PathBuf};

use fs_err as fs;
use hearback_core::ProcessIdentity;
use hearback_core::port::process::ProcessControl;
use hearback_platform::Native;
use serde_json::Value;

/// Ends every supervisor that a record names, and with it its tree, and what was kept of a tree.
pub(crate) fn end_recorded(home: &Path) {
    end(supervisors(home).into_iter().chain(named(home, "target.json", "/handle")));
}

/// Ends every other process that works in this world. Looks at every process of the system.
pub(crate) fn end_others(home: &Path) {
    end(carrying(&format!("HEARBACK_HOME={}", home.display())));
}

fn end(processes: impl IntoIterator<Item = ProcessIdentity>) {
    let native = Native::default();
    for who in processes {
        // Only what is still exactly the process that was recorded, or found.
        let _ = native.end_by_force(&who);
    }
}

/// The processes that have `NAME=value` in their environment.
pub(crate) fn carrying(entry: &str) -> Vec<ProcessIdentity> {
    hearback_platform::testing::carrying(entry).expect("processes can be listed")
}

pub(crate) fn end_supervisor(job: &Path) {
    let who = fact(job, "begin.json", "/by/supervisor").expect("a process supervises it");
    let _ = Native::default().end_by_force(&who);
}

pub(crate) fn supervisors(home: &Path) -> Vec<ProcessIdentity> {
    named(home, "begin.json", "/by/supervisor")
}

fn named(home: &Path, fact: &str, place: &str) -> Vec<ProcessIdentity> {
    let mut places = folders_in(&home.join("history"));
    places.push(home.join("jobs"));
    let jobs = places.iter().flat_map(|folder| folders_in(folder));
    jobs.filter_map(|job| self::fact(&job, fact, place)).collect()
}

/// The process that a fact names at this place.
fn fact(job: &Path, fact: &str, place: &str) -> Option<ProcessIdentity> {
    let value: Value = serde_json::from_slice(&fs::read(job.join(fact)).ok()?).ok()?;
    serde_json::from_value(value.pointer(place)?.clone()).ok()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}
