//! Processes that a trial leaves behind. Some agents start a daemon that outlives them: the next trial in the same
//! folder would talk to it, and not to one of its own.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long they may take to end.
const WITHIN: Duration = Duration::from_secs(20);

/// Kills every process that has this store in its environment: only a trial sets it, and each has its own.
pub(super) fn end(store: &Path) -> Result<()> {
    let deadline = Instant::now() + WITHIN;
    loop {
        let pids = of(store);
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("processes of an earlier trial do not end: {}", pids.join(" "));
        }
        // One may have ended meanwhile.
        let _ = Command::new("kill").arg("-KILL").args(&pids).output();
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Their pids. A zombie has no environment. Empty where there is no `/proc`.
fn of(store: &Path) -> Vec<String> {
    let variable = format!("HEARBACK_HOME={}", store.display());
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            let environment = fs_err::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_this_store_is_ended() {
        // Names of this test process alone: the same test may run in another checkout at this moment.
        let [store, longer] = ["", "-2"].map(|end| format!("/no/such/store/{}{end}", std::process::id()));
        let [ours, other] = [&store, &longer].map(|store| {
            Command::new("sleep").arg("60").env("HEARBACK_HOME", store).spawn().expect("sleep is there")
        });
        end(Path::new(&store)).unwrap();
        assert!(of(Path::new(&store)).is_empty());
        assert_eq!(of(Path::new(&longer)), [other.id().to_string()]);
        for mut child in [ours, other] {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}
