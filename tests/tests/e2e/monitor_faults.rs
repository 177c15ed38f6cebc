//! A campaign against a monitor: descriptors, threads, room and disk fail it for a while, it is stopped, killed and
//! ended, bursts of work arrive, and its sinks fail, hang and lie. Afterwards nothing is lost, nothing was sent after
//! its receipt, and no two turns of a session overlapped.
//!
//! By default a tenth is run; with `HEARBACK_TEST_FULL=1` 2,000 faults against 200 jobs in 50 sessions. The campaign
//! prints its seed, and `HEARBACK_TEST_SEED` repeats its choices.

// Not on Windows: the faults are made by a library that is preloaded, and by signals.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use hearback_tests::{
    Chance, KillOnDrop, Outbox, alive, bin, eventually, go_on, is_full, kill_if_there, lines, run, stop,
};
use serde_json::Value;

/// The kinds of calls that can fail, with the numbers of `faults.c`.
const CALLS: [(&str, u32); 4] = [("files", 1), ("threads", 2), ("space", 3), ("device", 4)];
/// The sinks: each takes every delivery in the end.
const SINKS: [(&str, &[&str]); 4] = [
    ("fine", &["0"]),
    ("weak", &["1:not yet", "75", "crash", "0"]),
    ("slow", &["hang", "0"]),
    ("odd", &["deaf:1", "flood:300000:1", "fork:0"]),
];
/// How long everything may take to arrive once the faults are over.
const IN_THE_END: Duration = Duration::from_secs(180);

struct Campaign {
    outbox: Outbox,
    /// Shared with the library in the monitor: which calls fail, how many of a thousand, how many did.
    control: fs::File,
    library: PathBuf,
    monitor: KillOnDrop,
    sessions: u64,
    /// Jobs that were launched, each with the process that ends it when it is killed.
    jobs: Vec<(String, u32)>,
    /// How many of `jobs`, from the first on, were ended.
    ended: usize,
    messages: Vec<String>,
    chance: Chance,
    history: Vec<String>,
}

impl Campaign {
    fn new(name: &str, sessions: u64) -> Campaign {
        let outbox = Outbox::new(&[]);
        let alone = outbox.world.scratch("alone");
        fs::create_dir(&alone).unwrap();
        let mut settings =
            "default_sink = \"fine\"\nretry_first = \"20ms\"\nretry_most = \"300ms\"\nattempts = 1000\n\
                            drain_timeout = \"300ms\"\n"
                .to_owned();
        for (name, answers) in SINKS {
            let alone = alone.to_str().expect("paths of the tests are text");
            let words = [&["--alone", alone], answers].concat();
            write!(settings, "[sink.{name}]\n{}\n", outbox.command(&words)).unwrap();
            settings.push_str("turn = true\ntimeout = \"400ms\"\n");
        }
        outbox.write_settings(&settings);
        let (source, library) = (outbox.world.scratch("faults.c"), outbox.world.scratch("faults.so"));
        fs::write(&source, include_str!("../../src/faults.c")).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
        run(compiler).ok();
        let control = outbox.world.scratch("control");
        fs::write(&control, [0; 4096]).unwrap();
        let control = fs::OpenOptions::new().read(true).write(true).open(control).unwrap();
        let monitor = start(&outbox, &library);
        let chance = Chance::new(name);
        let (jobs, messages, history) = (Vec::new(), Vec::new(), Vec::new());
        Campaign { outbox, control, library, monitor, sessions, jobs, ended: 0, messages, chance, history }
    }

    fn launch(&mut self) {
        let session = format!("s{}", self.chance.below(self.sessions));
        let sink = SINKS[self.chance.below(4) as usize].0;
        let program = bin("act").display().to_string();
        let options = ["launch", "--json", "--session", &session, "--sink", sink, "--notify", "always"];
        let job = self.outbox.world.json([&options[..], &["--", &program, "rest"]].concat());
        let pid = job["pid"].as_u64().expect("it runs");
        self.jobs.push((job["id"].as_str().expect("an id").to_owned(), pid.try_into().unwrap()));
    }

    /// Ends the oldest job that runs.
    fn end_one(&mut self) {
        if let Some((_, pid)) = self.jobs.get(self.ended) {
            let _ = kill_if_there(*pid); // It may have ended with its supervisor.
            self.ended += 1;
        }
    }

    fn send(&mut self) {
        let session = format!("s{}", self.chance.below(self.sessions));
        let sent = self.outbox.world.json(["send", "--json", "--session", &session, "hello"]);
        let number = sent["message"].as_u64().expect("a number");
        self.messages.push(format!("{session}.message.{number}"));
    }

    /// Lets calls of this kind fail for a while, in the monitor alone.
    fn let_fail(&mut self, kind: u32) {
        let share = [1000, 300, 30][self.chance.below(3) as usize];
        self.set(kind, share);
        self.pause(120);
        self.set(0, 0);
    }

    fn set(&self, kind: u32, of_a_thousand: u32) {
        let bytes = [kind.to_ne_bytes(), of_a_thousand.to_ne_bytes()].concat();
        self.control.file().write_all_at(&bytes, 0).unwrap();
    }

    /// How many calls have failed so far.
    fn failed_calls(&self) -> u32 {
        let mut bytes = [0; 4];
        self.control.file().read_exact_at(&mut bytes, 8).unwrap();
        u32::from_ne_bytes(bytes)
    }

    /// A random moment is the point here; nothing is waited for.
    fn pause(&mut self, most_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.chance.below(most_ms)));
    }

    fn replace_monitor(&mut self) {
        self.monitor = start(&self.outbox, &self.library);
    }

    /// A supervisor of a job that is not ended yet is killed, and its job is lost.
    fn lose_one(&mut self) {
        let open = self.jobs.len() - self.ended;
        if open > 0 {
            let which = self.ended + self.chance.below(open as u64) as usize;
            self.outbox.world.end_supervisor(&self.jobs[which].0);
        }
    }

    fn kill_a_sink(&mut self) {
        let call = self.outbox.calls().pop();
        if let Some(call) = call.filter(hearback_tests::Call::is_running) {
            let _ = kill_if_there(call.pid); // It may have ended just now.
        }
    }

    /// Leaves something in the store that is not hearback's.
    fn litter(&mut self) {
        let home = self.outbox.world.home();
        let n = self.history.len();
        let place = ["jobs", "sessions", "monitor", "history", "."][self.chance.below(5) as usize];
        match self.chance.below(2) {
            0 => fs::write(home.join(place).join(format!(".litter{n}")), "not a fact").unwrap(),
            _ => fs::create_dir_all(home.join(place).join(format!("litter{n}")).join("inside")).unwrap(),
        }
    }

    fn fault(&mut self) {
        let which = self.chance.below(14);
        let name = match which {
            0..4 => CALLS[which as usize].0,
            4 => "stop",
            5 => "kill",
            6 => "terminate",
            7 | 8 => "burst",
            9 => "lose",
            10 => "sink",
            11 | 12 => "messages",
            _ => "litter",
        };
        self.history.push(name.to_owned());
        match which {
            0..4 => self.let_fail(CALLS[which as usize].1),
            4 => {
                stop(self.monitor.0.id());
                self.pause(150);
                go_on(self.monitor.0.id());
            }
            5 => {
                self.monitor.0.kill().unwrap();
                self.monitor.0.wait().unwrap();
                self.pause(50);
                self.replace_monitor();
            }
            6 => {
                terminate(self.monitor.0.id());
                let asked = Instant::now();
                let monitor = &mut self.monitor.0;
                let end = eventually("a monitor that is terminated ends", || monitor.try_wait().unwrap());
                assert!(end.success(), "{end} after {:?}: {:?}", asked.elapsed(), self.history);
                self.replace_monitor();
            }
            7 | 8 => {
                let burst = 1 + self.chance.below(8);
                for _ in 0..burst {
                    self.end_one();
                }
                for _ in 0..burst {
                    self.launch();
                }
            }
            9 => self.lose_one(),
            10 => self.kill_a_sink(),
            11 | 12 => {
                for _ in 0..=self.chance.below(4) {
                    self.send();
                }
            }
            _ => self.litter(),
        }
        let ended = self.monitor.0.try_wait().unwrap();
        assert!(
            ended.is_none(),
            "the monitor ended by itself ({ended:?}) after {:?}\n{}",
            self.history,
            self.log()
        );
    }

    /// The last lines that the monitor logged.
    fn log(&self) -> String {
        let written = self.outbox.world.scratch("monitor.stderr");
        let log = lines(written);
        log[log.len().saturating_sub(30)..].join("\n")
    }

    /// Ends the faults and every job, and waits until nothing is pending.
    fn finish(&mut self) {
        self.set(0, 0);
        self.outbox.tell("0");
        while self.ended < self.jobs.len() {
            self.end_one();
        }
        let (begun, deadline) = (Instant::now(), Instant::now() + IN_THE_END);
        let mut left = self.pending();
        while !left.is_empty() {
            assert!(Instant::now() < deadline, "still pending: {left:?}\n{:?}\n{}", self.history, self.log());
            if begun.elapsed() > Duration::from_secs(5) {
                eprintln!("{:?} {left:?}", begun.elapsed());
            }
            self.release_held();
            std::thread::sleep(Duration::from_millis(100));
            left = self.pending();
        }
        eprintln!("everything has arrived {:?} after the last fault", begun.elapsed());
    }

    /// What waits for a person because its turns were cut short three times in a row, a person lets go.
    fn release_held(&self) {
        let listed = self.outbox.world.json(["followups", "list", "--all-sessions", "--json"]);
        for job in listed["jobs"].as_array().into_iter().flatten() {
            if job["follow_up"]["state"] == "dead_letter" {
                let delivery = job["follow_up"]["delivery"].as_str().expect("a name");
                self.outbox.world.run(["followups", "retry", delivery]);
            }
        }
    }

    /// Jobs without a receipt, and messages that wait.
    fn pending(&self) -> Vec<String> {
        let home = self.outbox.world.home();
        let has_receipt = |id: &str| {
            let past = home.join("history").join(&id[..5]).join(id);
            [home.join("jobs").join(id), past].iter().any(|folder| folder.join("receipt.json").exists())
        };
        let jobs = self.jobs.iter().map(|(id, _)| id.clone()).filter(|id| !has_receipt(id));
        let listed = self.outbox.world.json(["sessions", "--json"]);
        let sessions = listed["sessions"].as_array().expect("a list");
        let waiting = sessions.iter().filter(|session| session["waiting"].as_u64().unwrap_or(0) > 0);
        jobs.chain(waiting.map(Value::to_string)).collect()
    }

    fn check(&self) {
        assert_eq!(
            self.outbox.said("after-receipt"),
            Vec::<String>::new(),
            "nothing is sent after its receipt"
        );
        let mut calls = BTreeMap::new();
        for call in self.outbox.calls() {
            let last = calls.entry(call.delivery.clone()).or_insert(0);
            // On a full disk an attempt is made without a record of its own, and so the number comes again.
            assert!(call.attempt >= *last, "attempt {last} came before {call:?}");
            *last = call.attempt;
        }
        for (id, _) in &self.jobs {
            assert!(calls.contains_key(&format!("{id}.end")), "{id} has a receipt and was never sent");
        }
        for message in &self.messages {
            assert!(calls.contains_key(message), "{message} was never handed over");
        }
        assert_eq!(self.outbox.said("overlap"), Vec::<String>::new(), "turns overlapped");
        assert!(alive(self.monitor.0.id()), "{:?}", self.history);
        eprintln!(
            "{} faults, {} failed calls, {} jobs, {} messages, {} invocations of sinks",
            self.history.len(),
            self.failed_calls(),
            self.jobs.len(),
            self.messages.len(),
            self.outbox.calls().len()
        );
    }
}

fn start(outbox: &Outbox, library: &Path) -> KillOnDrop {
    let mut command = outbox.world.command(["monitor", "run"]);
    let errors =
        fs::OpenOptions::new().create(true).append(true).open(outbox.world.scratch("monitor.stderr"));
    command.env("LD_PRELOAD", library).env("HEARBACK_TESTS_FAULTS", outbox.world.scratch("control"));
    command.env("HEARBACK_LOG", "info");
    let monitor = command.stdout(Stdio::null()).stderr(errors.unwrap().into_file()).spawn().unwrap();
    let monitor = KillOnDrop(monitor);
    // A monitor that cannot begin says so and ends: the faults are for one that works.
    eventually("the monitor is the host", || {
        let status = outbox.world.json(["monitor", "status", "--json"]);
        (status["pid"] == monitor.0.id()).then_some(())
    });
    monitor
}

fn terminate(pid: u32) {
    use nix::sys::signal::{Signal, kill};
    kill(nix::unistd::Pid::from_raw(pid.try_into().unwrap()), Signal::SIGTERM).unwrap();
}

#[test]
fn a_monitor_survives_a_campaign_of_faults_and_nothing_is_lost() {
    let (faults, jobs, sessions) = if is_full() { (2000, 200, 50) } else { (150, 40, 12) };
    let mut campaign = Campaign::new("faults of a monitor", sessions);
    for _ in 0..jobs {
        campaign.launch();
    }
    for _ in 0..faults {
        campaign.fault();
    }
    campaign.finish();
    campaign.check();
    assert!(campaign.failed_calls() > 0, "the library was loaded");
}
