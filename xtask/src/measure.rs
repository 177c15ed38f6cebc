//! `cargo xtask measure`: what a release build costs on this machine. The figures in `docs/cost.md` come from here.
//!
//! Linux only: it reads what the kernel counts. Everything it starts is a job that ends by itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

mod monitor;
mod peer;
mod peers;

const SUPERVISORS: usize = 200;
/// What an idle supervisor may cost, in KiB.
const PSS_MOST: u64 = 200;
const WATCHED: Duration = Duration::from_secs(20);
const LAUNCHES: usize = 100;
const FOLLOW_UPS: usize = 100;
const FOLLOW_UP_WITHIN: Duration = Duration::from_secs(20);

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything.
    All,
    /// A monitor with many open jobs.
    Monitor,
    /// hearback beside other tools.
    Peers,
}

pub(crate) fn run(workspace: &Workspace, part: Part) -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("measuring reads /proc, which only Linux has");
    }
    workspace.cargo(&["build", "--release", "--package", "hearback-cli"])?;
    workspace.cargo(&[
        "build",
        "--release",
        "--package",
        "hearback-tests",
        "--bin",
        "exit-with",
        "--bin",
        "sink",
    ])?;
    let hearback = workspace.root().join("target/release/hearback");
    let size = fs_err::metadata(&hearback)?.len();
    println!("program: {:.2} MB", size as f64 / 1e6);
    // Pages of a program that was just written count as its own until they are on the disk.
    Command::new("sync").status()?;
    match part {
        Part::All => {}
        Part::Monitor => return monitor::run(&hearback),
        Part::Peers => return peers::run(&hearback),
    }
    let home = std::env::temp_dir().join(format!("hearback-measure-{}", std::process::id()));
    let measured = supervisors(&hearback, &home)
        .and_then(|()| launches(&hearback, &home))
        .and_then(|()| follow_ups(&hearback, &home));
    let removed = remove(&home);
    measured.and(removed)?;
    monitor::run(&hearback)
}

/// Removes the store, once the last supervisor has filed its job away.
fn remove(home: &Path) -> Result<()> {
    let deadline = Instant::now() + FOLLOW_UP_WITHIN;
    while let Err(error) = fs_err::remove_dir_all(home) {
        if Instant::now() > deadline {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Memory and wake-ups of many supervisors side by side.
fn supervisors(hearback: &Path, home: &Path) -> Result<()> {
    for _ in 0..SUPERVISORS {
        launch(hearback, home, "power", &["--", "sleep", "45"])?;
    }
    let pids = supervisor_pids(home)?;
    std::thread::sleep(Duration::from_secs(1));
    let mut pss = Vec::new();
    for pid in &pids {
        pss.push(field(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?);
    }
    let before = switches(&pids)?;
    std::thread::sleep(WATCHED);
    let woken = switches(&pids)? - before;
    let (most, sum) = (pss.iter().max().copied().unwrap_or(0), pss.iter().sum::<u64>());
    println!(
        "supervisors: {} idle, PSS {} KiB on average, {most} KiB at most",
        pids.len(),
        sum / pids.len() as u64
    );
    println!("wake-ups: {woken} context switches of all of them in {} s", WATCHED.as_secs());
    if most > PSS_MOST || woken > 0 {
        bail!("an idle supervisor may cost {PSS_MOST} KiB and never wakes up");
    }
    Ok(())
}

/// Time from the request to the answer that the job runs, beside a plain start without any record, alternating.
fn launches(hearback: &Path, home: &Path) -> Result<()> {
    let (mut power, mut process, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LAUNCHES {
        power.push(timed(|| launch(hearback, home, "power", &["--", "true"]))?);
        process.push(timed(|| launch(hearback, home, "process", &["--", "true"]))?);
        plain.push(timed(|| {
            Command::new("sh").args(["-c", "setsid true </dev/null >/dev/null 2>&1 &"]).status()?;
            Ok(())
        })?);
    }
    let base = median(&mut plain);
    for (name, times) in [("durability power", &mut power), ("durability process", &mut process)] {
        let median = median(times);
        let ratio = median.as_secs_f64() / base.as_secs_f64();
        println!("launch, {name}: median {median:.1?}, {ratio:.1} times `sh -c 'setsid … &'` ({base:.1?})");
    }
    Ok(())
}

/// Time from the last action of a job to the first action of its sink: each reads the clock then.
fn follow_ups(hearback: &Path, home: &Path) -> Result<()> {
    let programs = hearback.parent().context("a program has a folder")?;
    let (job, sink) = (programs.join("exit-with"), programs.join("sink"));
    let (ended, woken) = (home.join("ended"), home.join("woken"));
    let config = format!(
        "default_sink = 'clock'\n[sink.clock]\ncommand = ['{}', '--witness', '{}']\n",
        sink.display(),
        woken.display()
    );
    fs_err::write(home.join("config.toml"), config)?;
    let mut times = Vec::new();
    for _ in 0..FOLLOW_UPS {
        let [job, ended] = [&job, &ended].map(|path| path.display().to_string());
        launch(hearback, home, "power", &["--session", "measured", "--", &job, "0", "--clock", &ended])?;
        let deadline = Instant::now() + FOLLOW_UP_WITHIN;
        let started = loop {
            let text = fs_err::read_to_string(&woken).unwrap_or_default();
            // `start <delivery> <attempt> <pid> <nanoseconds> <session>`, and then `end …`
            if text.ends_with('\n') && text.lines().count() == 2 {
                break text.split(' ').nth(4).and_then(|nanos| nanos.parse::<u64>().ok());
            }
            if Instant::now() > deadline {
                bail!("a follow-up did not arrive within {} s", FOLLOW_UP_WITHIN.as_secs());
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let nanos = fs_err::read_to_string(&ended)?.trim().parse::<u64>()?;
        let started = started.context("a sink that says when it started")?;
        times.push(Duration::from_nanos(started.saturating_sub(nanos)));
        for file in [ended.as_str().as_ref(), woken.as_path()] {
            fs_err::remove_file(file)?;
        }
    }
    let (median, most) = (median(&mut times), times[times.len() - 1]);
    println!("follow-up: median {median:.1?} from the end of a job to its sink, {most:.1?} at most");
    Ok(())
}

fn launch(hearback: &Path, home: &Path, durability: &str, argv: &[&str]) -> Result<()> {
    let status = Command::new(hearback)
        .args(["launch", "--quiet"])
        .args(argv)
        // Without the variables that cargo adds for the programs it runs: every supervisor carries its own copy.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HEARBACK_HOME", home)
        .env("HEARBACK_DURABILITY", durability)
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { bail!("a launch failed: {status}") }
}

fn supervisor_pids(home: &Path) -> Result<Vec<u64>> {
    let mut pids = Vec::new();
    for job in fs_err::read_dir(home.join("jobs"))? {
        let begin: PathBuf = job?.path().join("begin.json");
        let text = fs_err::read_to_string(begin)?;
        let pid = text.split("\"pid\":").nth(1).and_then(|rest| rest.split(',').next());
        pids.push(pid.and_then(|pid| pid.parse().ok()).context("a begin without a pid")?);
    }
    Ok(pids)
}

fn switches(pids: &[u64]) -> Result<u64> {
    let mut sum = 0;
    for pid in pids {
        let status = format!("/proc/{pid}/status");
        sum += field(&status, "voluntary_ctxt_switches:")? + field(&status, "nonvoluntary_ctxt_switches:")?;
    }
    Ok(sum)
}

fn field(path: &str, name: &str) -> Result<u64> {
    let text = fs_err::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no {name} in {path}"))
}

fn timed(run: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let began = Instant::now();
    run()?;
    Ok(began.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
