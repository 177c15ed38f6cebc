//! `cargo xtask measure peers`: hearback beside other tools that run commands in the background. The figures of
//! `docs/comparison.md` come from here.
//!
//! Each round tries every tool once before the next round begins, so that a busy moment of the machine hits all of
//! them. Tools that are not on the PATH are named and skipped. Each has a folder of its own for its state, and its
//! processes are found again by the name of that folder in their environment.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::peer::{PEERS, Peer};
use super::{field, median};

const ROUNDS: usize = 30;
const CLIENTS: usize = 8;
const BURSTS: usize = 3;
const BURST: usize = 80;
const IDLE: usize = 20;
const LISTS: usize = 15;
/// How many jobs there are when they are listed; `HEARBACK_MEASURE_JOBS` sets another number.
const JOBS: usize = 10_000;
/// How long a tool has to take that many. A tool that needs longer is measured with what it took.
const FILL_WITHIN: Duration = Duration::from_secs(120);
const WITHIN: Duration = Duration::from_secs(60);

/// A job that says when it has started, waits for a word and says when it ends.
const SCRIPT: &str = "#!/bin/sh\n\"$1/exit-with\" 0 --clock \"$2/started\"\nread word < \"$2/fifo\"\n\
                      exec \"$1/exit-with\" 0 --clock \"$2/ended\"\n";

pub(super) fn run(hearback: &Path) -> Result<()> {
    let scratch = std::env::temp_dir().join(format!("hearback-peers-{}", std::process::id()));
    let mut contestants = Vec::new();
    for peer in &PEERS {
        match peer.find(hearback) {
            Some(program) => contestants.push(Contestant::new(peer, program, &scratch)?),
            None => println!("skipped: {} is not on the PATH", peer.name),
        }
    }
    println!("load before: {}", load()?);
    let measured = measure(&mut contestants, hearback, &scratch);
    println!("load after: {}", load()?);
    contestants.iter().for_each(Contestant::end);
    measured.and(super::remove(&scratch))
}

fn measure(contestants: &mut [Contestant], hearback: &Path, scratch: &Path) -> Result<()> {
    let programs = hearback.parent().context("a program has a folder")?;
    for contestant in contestants.iter() {
        contestant.start()?;
    }
    for round in 0..ROUNDS {
        for contestant in contestants.iter_mut() {
            contestant.one_job(programs, scratch, round)?;
        }
    }
    for _ in 0..BURSTS {
        for contestant in contestants.iter_mut() {
            let began = Instant::now();
            contestant.launch_many(BURST, WITHIN)?;
            contestant.burst.push(began.elapsed() / BURST as u32);
            contestant.settle()?;
        }
    }
    for contestant in contestants.iter_mut() {
        contestant.idle()?;
    }
    let jobs = std::env::var("HEARBACK_MEASURE_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(JOBS);
    for contestant in contestants.iter_mut().filter(|contestant| !contestant.peer.list.is_empty()) {
        contestant.jobs = contestant.launch_many(jobs, FILL_WITHIN)?;
        contestant.settle()?;
    }
    for _ in 0..LISTS {
        for contestant in contestants.iter_mut().filter(|contestant| contestant.jobs > 0) {
            contestant.list()?;
        }
    }
    report(contestants);
    Ok(())
}

/// A tool that takes part, and what was measured of it.
struct Contestant {
    peer: &'static Peer,
    program: PathBuf,
    home: PathBuf,
    returned: Vec<Duration>,
    started: Vec<Duration>,
    told: Vec<Duration>,
    burst: Vec<Duration>,
    listed: Vec<Duration>,
    memory_kib: u64,
    jobs: usize,
}

impl Contestant {
    fn new(peer: &'static Peer, program: PathBuf, scratch: &Path) -> Result<Self> {
        let home = scratch.join(peer.name.replace(' ', "-"));
        fs_err::create_dir_all(&home)?;
        Ok(Self {
            peer,
            program,
            home,
            returned: Vec::new(),
            started: Vec::new(),
            told: Vec::new(),
            burst: Vec::new(),
            listed: Vec::new(),
            memory_kib: 0,
            jobs: 0,
        })
    }

    /// Starts the daemon, if the tool has one, and lets it run as many jobs at once as will be launched.
    fn start(&self) -> Result<()> {
        for words in self.peer.start {
            self.command(words, &[]).stdout(Stdio::null()).status().with_context(|| self.peer.name)?;
            // A daemon is ready when its next command succeeds, which is tried by the first launch.
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    fn command(&self, words: &[&str], more: &[&str]) -> Command {
        let program = match words.first() {
            Some(&"{}") | None => self.program.clone(),
            Some(other) => other.into(),
        };
        let home = self.home.display().to_string();
        let mut command = Command::new(program);
        command
            .args(words.iter().skip(1).map(|word| word.replace("{home}", &home)))
            .args(more)
            .current_dir(&self.home)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.peer.env.iter().map(|(name, value)| (name, value.replace("{home}", &home))))
            .stdin(Stdio::null());
        command
    }

    /// Launches a job and returns its id.
    fn launch(&self, argv: &[&str]) -> Result<String> {
        let output = self.command(self.peer.launch, argv).output()?;
        if !output.status.success() {
            bail!("{}: {}", self.peer.name, String::from_utf8_lossy(&output.stderr));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok((self.peer.id)(&text).to_owned())
    }

    /// Times one job: until its launch returns, until it runs, and from its end until a waiting process is told.
    fn one_job(&mut self, programs: &Path, scratch: &Path, round: usize) -> Result<()> {
        let folder = scratch.join("round");
        let _ = fs_err::remove_dir_all(&folder);
        fs_err::create_dir_all(&folder)?;
        let script = scratch.join("job.sh");
        if !script.exists() {
            fs_err::write(&script, SCRIPT)?;
            Command::new("chmod").arg("+x").arg(&script).status()?;
        }
        let fifo = folder.join("fifo");
        Command::new("mkfifo").arg(&fifo).status()?;

        let (began, began_wall) = (Instant::now(), wall());
        let [script, programs, place] = [&script, programs, &folder].map(|path| path.display().to_string());
        let id = self.launch(&[&script, &programs, &place])?;
        self.returned.push(began.elapsed());
        self.started.push(read_clock(&folder.join("started"))?.saturating_sub(began_wall));

        let waiter = match self.peer.wait {
            [] => None,
            words => Some(self.command(words, &[&id]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?),
        };
        // Long enough for the waiter to sleep; and a tool that looks from time to time is met at different moments.
        std::thread::sleep(Duration::from_millis(200 + (round as u64 * 61) % 400));
        fs_err::OpenOptions::new().write(true).open(&fifo)?.write_all(b"go\n")?;
        if let Some(mut waiter) = waiter {
            waiter.wait()?;
            let told = wall();
            self.told.push(told.saturating_sub(read_clock(&folder.join("ended"))?));
        }
        read_clock(&folder.join("ended")).map(drop)
    }

    /// Launches jobs by several clients at once, until there are enough or the time is over. Returns how many.
    fn launch_many(&self, count: usize, within: Duration) -> Result<usize> {
        let deadline = Instant::now() + within;
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn(move || -> Result<usize> {
                        let mut launched = 0;
                        for _ in (client..count).step_by(CLIENTS) {
                            if Instant::now() > deadline {
                                break;
                            }
                            self.launch(&["true"])?;
                            launched += 1;
                        }
                        Ok(launched)
                    })
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap_or_else(|_| bail!("a client panicked")))
                .sum()
        })
    }

    /// Waits until only its daemon is left, so that the next tool has the machine for itself.
    fn settle(&self) -> Result<()> {
        let deadline = Instant::now() + FILL_WITHIN;
        while self.processes()?.len() > self.peer.daemons {
            if Instant::now() > deadline {
                bail!("{}: its jobs do not end", self.peer.name);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The memory of its own processes while jobs sleep, which themselves do not count.
    fn idle(&mut self) -> Result<()> {
        for _ in 0..IDLE {
            self.launch(&["sleep", "3600"])?;
        }
        std::thread::sleep(Duration::from_secs(2));
        for pid in self.processes()? {
            let Ok(exe) = fs_err::read_link(format!("/proc/{pid}/exe")) else { continue };
            let name = exe.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !["sleep", "sh", "dash", "bash"].contains(&name.as_str()) {
                self.memory_kib += field(&format!("/proc/{pid}/smaps_rollup"), "Pss:").unwrap_or(0);
            }
        }
        self.end();
        self.start()
    }

    fn list(&mut self) -> Result<()> {
        let began = Instant::now();
        let output = self.command(self.peer.list, &[]).output()?;
        self.listed.push(began.elapsed());
        if output.status.success() { Ok(()) } else { bail!("{}: {output:?}", self.peer.name) }
    }

    /// Every process that has the folder of this tool in its environment.
    fn processes(&self) -> Result<Vec<u32>> {
        let home = self.home.display().to_string();
        let mut found = Vec::new();
        for entry in fs_err::read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(environ) = fs_err::read(format!("/proc/{pid}/environ")) else { continue };
            if environ.split(|byte| *byte == 0).any(|variable| variable.ends_with(home.as_bytes())) {
                found.push(pid);
            }
        }
        Ok(found)
    }

    /// Ends everything that this tool runs.
    fn end(&self) {
        for _ in 0..20 {
            let pids: Vec<_> = self.processes().unwrap_or_default().iter().map(u32::to_string).collect();
            if pids.is_empty() {
                return;
            }
            let _ = Command::new("kill").arg("-KILL").args(&pids).stderr(Stdio::null()).status();
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn report(contestants: &mut [Contestant]) {
    println!(
        "\n| | launch returns | target runs | waiter told | launches/s, {CLIENTS} clients | own memory, {IDLE} \
              idle jobs | list newest 20 |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    let mut first: Option<Vec<f64>> = None;
    for contestant in contestants {
        let times = [&mut contestant.returned, &mut contestant.started, &mut contestant.told];
        let mut figures: Vec<f64> = times.into_iter().map(|times| milliseconds(times)).collect();
        figures.push(1000.0 / milliseconds(&mut contestant.burst));
        figures.push(contestant.memory_kib as f64 / 1024.0);
        figures.push(milliseconds(&mut contestant.listed));
        let base = first.get_or_insert_with(|| figures.clone());
        let units = [" ms", " ms", " ms", "", " MiB", " ms"];
        let cells: Vec<_> = figures.iter().zip(base.iter()).zip(units).map(cell).collect();
        let jobs = if contestant.jobs == 0 { String::new() } else { format!(" of {}", contestant.jobs) };
        println!("| {} | {}{jobs} |", contestant.peer.name, cells.join(" | "));
    }
}

/// A figure and its ratio to that of hearback. What was not measured is not a number.
fn cell(((figure, base), unit): ((&f64, &f64), &str)) -> String {
    match figure.is_finite() {
        true => format!("{figure:.1}{unit} ({:.2})", figure / base),
        false => "none".to_owned(),
    }
}

fn milliseconds(times: &mut [Duration]) -> f64 {
    if times.is_empty() { f64::NAN } else { median(times).as_secs_f64() * 1000.0 }
}

fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The time that a job has written, as soon as it has.
fn read_clock(file: &Path) -> Result<Duration> {
    let deadline = Instant::now() + WITHIN;
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Some(nanos) = text.strip_suffix('\n').and_then(|nanos| nanos.parse().ok()) {
            return Ok(Duration::from_nanos(nanos));
        }
        if Instant::now() > deadline {
            bail!("no time in {}", file.display());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn load() -> Result<String> {
    Ok(fs_err::read_to_string("/proc/loadavg")?.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
