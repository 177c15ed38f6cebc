//! The logs that hearback writes about itself: `supervisor.log` of a job, `monitor.log` of the store. Each is bounded.

use std::path::Path;

use hearback_core::JobId;
use hearback_core::port::disk::Disk;
use hearback_core::port::record::StoreError;

use crate::{Store, layout};

/// A supervisor's log is put aside at this size, and the one that was put aside before goes: 256 KiB for a job.
const SUPERVISOR_LOG_MAX: u64 = 128 * 1024;
/// The same for the log of the monitor: 2 MiB for a store.
const MONITOR_LOG_MAX: u64 = 1024 * 1024;

impl<D: Disk> Store<D> {
    /// Adds a line to the log of a job's supervisor. Not flushed.
    ///
    /// # Errors
    ///
    /// When the job is gone, or the line cannot be written.
    pub fn append_supervisor_log(&self, id: &JobId, line: &str) -> Result<(), StoreError> {
        self.in_folder(id, |folder| {
            self.append_bounded(&layout::supervisor_log(folder), line, SUPERVISOR_LOG_MAX)
        })
    }

    /// Adds a line to the log of the monitor. Not flushed.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn append_monitor_log(&self, line: &str) -> Result<(), StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        self.append_bounded(&layout::monitor_log(&folder), line, MONITOR_LOG_MAX)
    }

    /// Adds a line to a file, which is put aside first when it has become too large. Processes that do so at the same
    /// moment may put aside a short one; no more is lost by that than was to be lost soon.
    fn append_bounded(&self, path: &Path, line: &str, most: u64) -> Result<(), StoreError> {
        let disk = self.disk();
        if disk.size(path)?.saturating_add(line.len() as u64) >= most {
            let old = layout::put_aside(path);
            disk.remove(&old)?;
            match disk.move_dir(path, &old) {
                // Another process has just put it aside.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                moved => drop(moved?),
            }
        }
        Ok(disk.append(path, format!("{line}\n").as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use hearback_core::Durability;
    use hearback_core::port::record::{FactStore, Housekeeping};

    use super::*;
    use crate::testing::{launched, store};

    #[test]
    fn a_log_is_bounded_and_keeps_its_newest_lines() {
        let (disk, store) = store();
        let id = launched(&store, Durability::Process);
        let folder = store.layout.job(&id);
        let (log, old) = (folder.join("supervisor.log"), folder.join("supervisor.log.1"));
        let line = "x".repeat(1000);
        for n in 0..400 {
            store.append_supervisor_log(&id, &format!("{n} {line}")).unwrap();
            assert!(disk.size(&log).unwrap() < SUPERVISOR_LOG_MAX);
        }
        assert!((SUPERVISOR_LOG_MAX / 2..SUPERVISOR_LOG_MAX).contains(&disk.size(&old).unwrap()));
        let text = disk.read(&log, SUPERVISOR_LOG_MAX).unwrap().unwrap();
        assert!(String::from_utf8(text).unwrap().contains(&format!("\n399 {line}\n")));
    }

    #[test]
    fn the_log_of_the_monitor_needs_no_monitor_to_have_run() {
        let (disk, store) = store();
        store.append_monitor_log("one").unwrap();
        store.append_monitor_log("two").unwrap();
        let log = store.layout.monitor().join("monitor.log");
        assert_eq!(disk.read(&log, 100).unwrap().unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn the_log_of_a_job_is_found_wherever_the_job_is() {
        let (_, store) = store();
        let id = launched(&store, Durability::Process);
        store.append_supervisor_log(&id, "here").unwrap();
        assert!(store.prune(&id).unwrap());
        assert!(store.observe(&id).unwrap().is_none());
        assert!(store.append_supervisor_log(&id, "gone").unwrap_err().is_gone());
    }
}
