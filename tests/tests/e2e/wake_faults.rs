//! A campaign against everything between a launch and the agent that is woken: the agent that launched, the MCP server,
//! the supervisor, the deliverer, the monitor, the sink and the agent that is resumed are killed at random moments.
//! Afterwards nothing is lost, nothing was heard after its receipt, and nothing is called delivered that the agent did
//! not get.
//!
//! By default 40 processes are killed; with `HEARBACK_TEST_FULL=1` 500. The campaign prints its seed, and
//! `HEARBACK_TEST_SEED` repeats its choices, though not the moments at which the processes of a round are.

// Not on Windows: the processes above a launch are not looked at there, and pids are soon reused.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use hearback_tests::{
    Chance, Era, KillOnDrop, McpClient, Outbox, alive, bin, copy_program, eventually, is_full, kill_if_there,
    lines, rounds,
};
use serde_json::{Value, json};

/// How many processes are killed in one store.
const KILLS: usize = 20;
/// How long everything may take to arrive after the last kill.
const IN_THE_END: Duration = Duration::from_secs(180);
/// How long after its job has ended a process is killed at most.
const WITHIN_MS: u64 = 80;
/// How long to look for a sink.
const SINK_WITHIN: Duration = Duration::from_millis(1500);

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    /// The supervisor of the job.
    Supervisor,
    /// A process of hearback that works in the store: a deliverer, or another supervisor.
    Worker,
    Monitor,
    /// The sink, or the agent that is resumed.
    Sink,
    /// The agent that launched and is open, or the MCP server.
    Launcher,
}

struct Campaign {
    outbox: Outbox,
    agent: PathBuf,
    chance: Chance,
    monitor: Option<KillOnDrop>,
    /// Agents that are open, and servers that run.
    agents: Vec<KillOnDrop>,
    /// The jobs whose launch was answered.
    launched: Vec<String>,
    killed: Vec<Victim>,
}

impl Campaign {
    fn new(seed: u64) -> Campaign {
        let outbox = Outbox::pull();
        let folder = outbox.world.scratch("agent");
        fs::create_dir(&folder).unwrap();
        let agent = folder.join("gemini");
        copy_program("agent", &agent);
        fs::write(folder.join("slow"), "15").unwrap();
        let alone = outbox.world.scratch("alone");
        fs::create_dir(&alone).unwrap();
        let sink = outbox.command(&["--alone", &text(&alone), "pause:20:0"]);
        outbox.write_settings(&format!(
            "retry_first = \"20ms\"\nretry_most = \"300ms\"\nattempts = 1000\nmax_rate = 100000\n\
             [sink.session]\n{sink}\nturn = true\n[sink.person]\nfile = '{}'\n",
            text(&outbox.world.scratch("person"))
        ));
        let (chance, monitor) = (Chance::from_seed(seed), None);
        Campaign { outbox, agent, chance, monitor, agents: vec![], launched: vec![], killed: vec![] }
    }

    /// A random moment is the point here; nothing is waited for.
    fn pause(&mut self, most_ms: u64) {
        std::thread::sleep(Duration::from_millis(self.chance.below(most_ms)));
    }

    /// One job, by one of the ways into hearback, and one process that is killed around its end.
    fn round(&mut self, n: usize) {
        if self.monitor.is_none() && self.chance.below(2) == 0 {
            self.monitor = Some(self.outbox.monitor());
        }
        let gate = self.outbox.world.scratch(format!("gate{n}"));
        let job = match self.chance.below(3) {
            0 => self.launch_by_command(&gate),
            1 => self.launch_by_server(&gate),
            _ => self.launch_by_agent(n, &gate),
        };
        let victim = match self.chance.below(5) {
            0 => Victim::Supervisor,
            1 => Victim::Worker,
            2 => Victim::Monitor,
            3 => Victim::Sink,
            _ => Victim::Launcher,
        };
        let before = victim != Victim::Sink && self.chance.below(5) == 0;
        if !before {
            fs::write(&gate, "").unwrap();
        }
        if victim != Victim::Sink {
            self.pause(WITHIN_MS);
        }
        self.kill(victim, job.as_deref());
        fs::write(&gate, "").unwrap();
        // What is left open is closed by its person, sooner or later.
        if self.chance.below(2) == 0 && !self.agents.is_empty() {
            let which = self.chance.below(self.agents.len() as u64) as usize;
            drop(self.agents.remove(which));
        }
        if self.chance.below(3) == 0 {
            self.outbox.world.run(["list", "--all-sessions"]);
        }
        self.launched.extend(job);
    }

    fn target(&self, gate: &Path) -> [String; 2] {
        [text(&bin("hold")), text(gate)]
    }

    fn launch_by_command(&mut self, gate: &Path) -> Option<String> {
        let session = format!("s{}", self.chance.below(3));
        let target = self.target(gate);
        let options = ["--session", &session, "--sink", "session", "--label", "session", "--"];
        let words = options.into_iter().chain(target.iter().map(String::as_str));
        Some(self.outbox.world.launch(words))
    }

    /// The server is killed while it launches, or stays with the others.
    fn launch_by_server(&mut self, gate: &Path) -> Option<String> {
        let session = format!("s{}", self.chance.below(3));
        let era = if self.chance.below(2) == 0 { Era::Modern } else { Era::Legacy };
        let mut client =
            McpClient::start(self.outbox.command_as(&session, &["mcp", "--sink", "session"]), era);
        let arguments = json!({ "argv": self.target(gate), "label": "session" });
        if self.chance.below(3) == 0 {
            client.send("tools/call", json!({ "name": "launch", "arguments": arguments }));
            self.pause(40);
            client.kill();
            self.killed.push(Victim::Launcher);
            return None;
        }
        let launched = client.tool("launch", arguments);
        if self.chance.below(2) == 0 {
            client.kill();
            self.killed.push(Victim::Launcher);
        }
        launched["job"]["id"].as_str().map(str::to_owned)
    }

    fn launch_by_agent(&mut self, n: usize, gate: &Path) -> Option<String> {
        let session = format!("01a1ecaf-0869-7a61-91a7-57c5c9f65cc{}", self.chance.below(3));
        let out = self.outbox.world.scratch(format!("launched{n}"));
        let mut agent = Command::new(&self.agent);
        self.outbox.world.settle(&mut agent);
        agent.args(["begin", &text(&self.outbox.world.scratch("never")), &text(&out)]);
        agent.args([&text(&bin("hearback")), "launch", "--session", &session, "--label", "agent"]);
        agent.args(["--sink", "gemini", "--sink", "person", "--"]).args(self.target(gate));
        agent.stdout(Stdio::null()).stderr(Stdio::null());
        self.agents.push(KillOnDrop(agent.spawn().unwrap()));
        Some(eventually("it has launched a job", || {
            let printed = fs::read_to_string(&out).ok()?;
            printed.ends_with('\n').then(|| printed.trim().to_owned())
        }))
    }

    /// Kills a process, if there is one of this kind at this moment.
    fn kill(&mut self, victim: Victim, job: Option<&str>) {
        let is_killed = match victim {
            Victim::Supervisor => job.and_then(|id| self.supervisor(id)).is_some_and(is_killed),
            Victim::Worker => {
                let workers = self.workers();
                let which = self.chance.below(workers.len().max(1) as u64) as usize;
                workers.get(which).copied().is_some_and(is_killed)
            }
            Victim::Monitor => self.monitor.take().is_some_and(|monitor| is_killed(monitor.0.id())),
            Victim::Sink => self.sink(job).is_some_and(is_killed),
            Victim::Launcher => self.agents.pop().is_some_and(|agent| is_killed(agent.0.id())),
        };
        if is_killed {
            self.killed.push(victim);
        }
    }

    fn supervisor(&self, id: &str) -> Option<u32> {
        let begin = fs::read(self.outbox.world.home().join("jobs").join(id).join("begin.json")).ok()?;
        let begin: Value = serde_json::from_slice(&begin).ok()?;
        begin["by"]["supervisor"]["pid"].as_u64()?.try_into().ok()
    }

    /// The process to which a follow-up is handed. It lives for some milliseconds, so it is waited for.
    fn sink(&mut self, job: Option<&str>) -> Option<u32> {
        let delivery = format!("{}.end", job?);
        // A session that is open is not resumed.
        self.agents.clear();
        let deadline = Instant::now() + SINK_WITHIN;
        loop {
            if let Some(pid) = carrying_delivery(&delivery).first() {
                self.pause(20);
                return Some(*pid);
            }
            if Instant::now() > deadline {
                return None;
            }
        }
    }

    /// The processes of hearback that work in the store: its folder is theirs.
    fn workers(&self) -> Vec<u32> {
        let home = fs::canonicalize(self.outbox.world.home()).unwrap();
        let is_worker = |pid: &u32| {
            let link = |name| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
            link("cwd").as_ref() == Some(&home) && link("exe").is_some_and(|exe| exe.ends_with("hearback"))
        };
        pids().filter(is_worker).collect()
    }

    /// Everything is closed, and a monitor runs: nothing may be left.
    fn finish(&mut self) {
        self.agents.clear();
        let monitor = self.monitor.take();
        self.monitor = monitor.or_else(|| Some(self.outbox.monitor()));
        let deadline = Instant::now() + IN_THE_END;
        loop {
            let jobs = self.jobs();
            let left: Vec<_> = jobs
                .iter()
                .filter(|job| job["follow_up"]["state"] != "delivered")
                .map(Value::to_string)
                .collect();
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "not delivered: {left:#?}\n{:?}", self.killed);
            // What waits for a person because its turns were cut short three times in a row, a person lets go.
            for job in jobs.iter().filter(|job| job["follow_up"]["state"] == "dead_letter") {
                let error = job["follow_up"]["error"].as_str().unwrap_or_default();
                assert!(error.starts_with("held for a person"), "{job}");
                self.outbox.world.run(["followups", "retry", job["follow_up"]["delivery"].as_str().unwrap()]);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn jobs(&self) -> Vec<Value> {
        let listed = self.outbox.world.json(["list", "--all", "--all-sessions", "--json"]);
        listed["jobs"].as_array().expect("a list").clone()
    }

    fn check(&self) {
        let jobs = self.jobs();
        for id in &self.launched {
            assert!(jobs.iter().any(|job| job["id"] == **id), "{id} was launched, and there is no such job");
        }
        assert_eq!(self.outbox.said("after-receipt"), Vec::<String>::new(), "heard after its receipt");
        assert_eq!(self.outbox.said("overlap"), Vec::<String>::new(), "turns overlapped");
        let (ends, resumed) = (self.outbox.said("end"), lines(self.agent.with_file_name("resumed")));
        for job in &jobs {
            let id = job["id"].as_str().unwrap();
            if job["label"] == "session" {
                assert!(ends.iter().any(|line| line.contains(id)), "called delivered, and not heard: {job}");
                continue;
            }
            let heard: Vec<_> = resumed.iter().filter(|line| line.contains(id)).collect();
            assert!(!heard.is_empty(), "called delivered, and not heard: {job}");
            let receipt = self.outbox.receipt(id)["at"]["wall_ms"].as_i64().expect("a time");
            for line in heard {
                let at: i64 = line.rsplit(' ').next().unwrap().parse().unwrap();
                assert!(at <= receipt, "heard after its receipt ({receipt}): {line}");
            }
        }
    }
}

/// Kills a process that is there; a zombie is not.
fn is_killed(pid: u32) -> bool {
    alive(pid) && kill_if_there(pid).is_ok()
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The processes that deliver this, alone or with others.
fn carrying_delivery(delivery: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| {
            let entry = String::from_utf8_lossy(entry);
            entry
                .strip_prefix("HEARBACK_DELIVERIES=")
                .is_some_and(|ids| ids.split(' ').any(|id| id == delivery))
        })
    };
    pids().filter(is_it).collect()
}

#[test]
fn whatever_is_killed_between_a_launch_and_its_agent_nothing_is_lost_and_nothing_is_invented() {
    let stores = if is_full() { 25 } else { 2 };
    let mut chance = Chance::new("wake_faults");
    let seeds: Vec<_> = (0..stores).map(|_| chance.below(u64::MAX)).collect();
    let killed = rounds(stores, 2, |n| {
        let mut campaign = Campaign::new(seeds[n]);
        let mut n = 0;
        while campaign.killed.len() < KILLS {
            campaign.round(n);
            n += 1;
            assert!(n < 20 * KILLS, "nothing is there to be killed: {:?}", campaign.killed);
        }
        campaign.finish();
        campaign.check();
        let (jobs, heard) = (campaign.jobs().len(), campaign.outbox.calls().len());
        let resumed = lines(campaign.agent.with_file_name("resumed")).len();
        (campaign.killed, jobs, heard + resumed)
    });
    let kills = killed.iter().flat_map(|(kills, ..)| kills);
    let of = |victim| kills.clone().filter(|it| **it == victim).count();
    eprintln!(
        "{} kills (supervisor {}, worker {}, monitor {}, sink {}, agent or server {}), {} jobs, {} times handed over",
        kills.clone().count(),
        of(Victim::Supervisor),
        of(Victim::Worker),
        of(Victim::Monitor),
        of(Victim::Sink),
        of(Victim::Launcher),
        killed.iter().map(|(_, jobs, _)| jobs).sum::<usize>(),
        killed.iter().map(|(.., times)| times).sum::<usize>(),
    );
}
