//! What a monitor costs that has many open jobs, and how it takes a burst: descriptors, threads, memory, wake-ups, and
//! the time to notice deaths and to begin to end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{field, launch, remove, supervisor_pids};

/// How many jobs are open. The promise is about 2,000; a smaller number may be set where memory is scarce.
const JOBS: usize = 2000;
const BURST: usize = 400;
const DESCRIPTORS_MOST: u64 = 64;
const THREADS_MOST: u64 = 16;
const WATCHED: Duration = Duration::from_secs(20);
const WITHIN: Duration = Duration::from_secs(300);
/// Launches and kills go out by so many at once.
const AT_ONCE: usize = 4;

pub(super) fn run(hearback: &Path) -> Result<()> {
    let jobs = std::env::var("HEARBACK_MEASURE_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(JOBS);
    let home = std::env::temp_dir().join(format!("hearback-measure-monitor-{}", std::process::id()));
    let mut monitor = None;
    let measured = measure(hearback, &home, jobs, &mut monitor);
    if let Some(mut monitor) = monitor {
        let _ = monitor.kill();
        let _ = monitor.wait();
    }
    // What still runs is ended, so that nothing is left of the measurement.
    end_all(&home);
    measured.and(remove(&home))
}

fn measure(hearback: &Path, home: &Path, jobs: usize, slot: &mut Option<Child>) -> Result<()> {
    launch_many(hearback, home, jobs)?;
    let monitor = slot.insert(
        hearback_in(hearback, home)
            .args(["monitor", "run"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?,
    );
    let pid = u64::from(monitor.id());
    until("it is the host", || Ok(home.join("monitor/begin.1").exists()))?;
    until("it has looked at everything", || quiet(pid))?;
    let (descriptors, threads) = (descriptors(pid)?, field(&format!("/proc/{pid}/status"), "Threads:")?);
    let pss = field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?;
    println!("monitor: {jobs} open jobs, {descriptors} descriptors, {threads} threads, PSS {pss} KiB");
    let before = switches(pid)?;
    std::thread::sleep(WATCHED);
    println!(
        "monitor: {} context switches in {} s while nothing happens",
        switches(pid)? - before,
        WATCHED.as_secs()
    );

    let began = Instant::now();
    launch_many(hearback, home, BURST)?;
    let busy = began.elapsed();
    until("the burst is over", || quiet(pid))?;
    let most = field(&format!("/proc/{pid}/status"), "VmHWM:")?;
    println!("monitor: a burst of {BURST} launches took {busy:.1?}; at most {most} KiB resident");

    let victims: Vec<_> = supervisor_pids(home)?.into_iter().take(BURST).collect();
    let settled = history(home)?;
    let began = Instant::now();
    kill(&victims)?;
    until("all losses are recorded", || Ok(history(home)? >= settled + victims.len()))?;
    println!(
        "monitor: {} killed supervisors noticed and recorded within {:.1?}",
        victims.len(),
        began.elapsed()
    );

    launch_many(hearback, home, BURST)?;
    let began = Instant::now();
    Command::new("kill").args(["-TERM", &pid.to_string()]).status()?;
    until("it begins to end", || Ok(home.join("monitor/request.1.taken").exists()))?;
    println!(
        "monitor: {:.1?} from SIGTERM right after a burst to the beginning of the drain",
        began.elapsed()
    );
    monitor.wait()?;
    if descriptors >= DESCRIPTORS_MOST || threads >= THREADS_MOST {
        bail!("a monitor may need fewer than {DESCRIPTORS_MOST} descriptors and {THREADS_MOST} threads");
    }
    Ok(())
}

fn hearback_in(hearback: &Path, home: &Path) -> Command {
    let mut command = Command::new(hearback);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HEARBACK_HOME", home);
    command
}

fn launch_many(hearback: &Path, home: &Path, count: usize) -> Result<()> {
    let one = || {
        launch(hearback, home, "process", &["--notify", "never", "--timeout", "30m", "--", "sleep", "1800"])
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|n| scope.spawn(move || (n..count).step_by(AT_ONCE).try_for_each(|_| one())))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a launch panicked")))
    })
}

fn kill(pids: &[u64]) -> Result<()> {
    let numbers: Vec<_> = pids.iter().map(u64::to_string).collect();
    Command::new("kill").arg("-KILL").args(numbers).status().map(drop).context("kill")
}

/// Ends every supervisor that is left; the jobs end with them.
fn end_all(home: &Path) {
    if let Ok(pids) = supervisor_pids(home) {
        let _ = kill(&pids);
    }
    std::thread::sleep(Duration::from_secs(1));
}

fn descriptors(pid: u64) -> Result<u64> {
    Ok(fs_err::read_dir(format!("/proc/{pid}/fd"))?.count() as u64)
}

/// Context switches of all threads.
fn switches(pid: u64) -> Result<u64> {
    let mut sum = 0;
    for task in fs_err::read_dir(format!("/proc/{pid}/task"))? {
        let status: PathBuf = task?.path().join("status");
        sum += field(&status.display().to_string(), "voluntary_ctxt_switches:")?;
    }
    Ok(sum)
}

/// Whether a process did nothing for a second.
fn quiet(pid: u64) -> Result<bool> {
    let before = switches(pid)?;
    std::thread::sleep(Duration::from_secs(1));
    Ok(switches(pid)? == before)
}

/// How many jobs are in history.
fn history(home: &Path) -> Result<usize> {
    let mut count = 0;
    for era in fs_err::read_dir(home.join("history"))? {
        count += fs_err::read_dir(era?.path())?.count();
    }
    Ok(count)
}

fn until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + WITHIN;
    while !is_so()? {
        if Instant::now() > deadline {
            bail!("never: {what}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
