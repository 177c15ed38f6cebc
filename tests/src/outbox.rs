//! A world with a sink of ours, and the deliveries that arrived there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use serde_json::Value;

use crate::{Job, KillOnDrop, Ran, World, bin, eventually, lines, run};

/// A world whose settings send follow-ups to the fixture `sink`, which bears witness.
#[derive(Debug)]
pub struct Outbox {
    /// The world.
    pub world: World,
    /// What the sink bears witness in.
    pub witness: PathBuf,
    /// Where it saves what it reads.
    pub saved: PathBuf,
    /// Holds the answer to give, if that file is there.
    pub told: PathBuf,
}

/// One invocation of the sink; one of several follow-ups is one for each, with the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The delivery.
    pub delivery: String,
    /// The number of the attempt, as hearback gave it.
    pub attempt: u32,
    /// The process.
    pub pid: u32,
    /// When it began, in nanoseconds since 1970.
    pub at: u128,
    /// The session that it was started for; `-` for none.
    pub session: String,
}

impl Call {
    /// Whether this invocation still runs. A pid alone may belong to another process by now.
    pub fn is_running(&self) -> bool {
        #[cfg(any(target_os = "linux", windows))]
        return crate::carrying(&format!("HEARBACK_DELIVERY={}", self.delivery)).contains(&self.pid);
        #[cfg(not(any(target_os = "linux", windows)))]
        return crate::alive(self.pid);
    }
}

impl Outbox {
    /// A world in which every follow-up goes to `sink` with these answers, and attempts follow each other quickly.
    pub fn new(answers: &[&str]) -> Outbox {
        Outbox::with("", "", answers)
    }

    /// The same with more settings, and with more of the sink's own.
    pub fn with(settings: &str, of_sink: &str, answers: &[&str]) -> Outbox {
        let world = World::new();
        let (witness, saved, told) = (world.scratch("calls"), world.scratch("saved"), world.scratch("told"));
        fs::create_dir(&saved).unwrap();
        let outbox = Outbox { world, witness, saved, told };
        outbox.configure(settings, of_sink, answers);
        outbox
    }

    /// A world without sinks: pending follow-ups are fetched.
    pub fn pull() -> Outbox {
        let outbox = Outbox::new(&[]);
        outbox.write_settings("");
        outbox
    }

    /// A file of the test's own, as text for an argument.
    pub fn gate(&self, name: &str) -> String {
        let path = self.world.scratch(name);
        path.to_str().expect("paths of the tests are text").to_owned()
    }

    /// Releases the process that waits for such a file.
    pub fn release(&self, name: &str) {
        fs::write(self.world.scratch(name), "").unwrap();
    }

    /// Writes the settings anew.
    pub fn configure(&self, settings: &str, of_sink: &str, answers: &[&str]) {
        let first = if settings.contains("retry_first") { "" } else { "retry_first = \"40ms\"\n" };
        let text = format!(
            "default_sink = \"fixture\"\n{first}{settings}\n[sink.fixture]\n{}\n{of_sink}\n",
            self.command(answers)
        );
        self.write_settings(&text);
    }

    /// The line of settings that names the sink with these answers.
    pub fn command(&self, answers: &[&str]) -> String {
        let path = |path: &Path| path.to_str().expect("paths of the tests are text").to_owned();
        let mut words = vec![path(&bin("sink"))];
        let options = [("--witness", &self.witness), ("--save", &self.saved), ("--told", &self.told)];
        words.extend(options.into_iter().flat_map(|(name, value)| [name.to_owned(), path(value)]));
        words.extend(answers.iter().map(|answer| (*answer).to_owned()));
        format!("command = {words:?}")
    }

    /// Writes the settings file as it is.
    pub fn write_settings(&self, text: &str) {
        let home = self.world.home();
        if !home.exists() {
            fs::create_dir(home).unwrap();
            #[cfg(unix)]
            set_mode(home, 0o700);
        }
        fs::write(home.join("config.toml"), text).unwrap();
        #[cfg(unix)]
        set_mode(&home.join("config.toml"), 0o600);
    }

    /// Tells the sink what to answer from now on.
    pub fn tell(&self, answer: &str) {
        // Put there in one piece, because a sink may be reading. Wine replaces no file that a process has open.
        let draft = self.told.with_extension("draft");
        fs::write(&draft, answer).unwrap();
        eventually("the sink is told", || fs::rename(&draft, &self.told).ok());
    }

    /// hearback as a session runs it.
    #[track_caller]
    pub fn run_as(&self, session: &str, args: &[&str]) -> Ran {
        run(self.command_as(session, args))
    }

    /// See [`Outbox::run_as`].
    pub fn command_as(&self, session: &str, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        command.env("HEARBACK_SESSION", session);
        command
    }

    /// Launches a fixture for session `s`.
    #[track_caller]
    pub fn launch(&self, options: &[&str], program: &str, args: &[&str]) -> String {
        let program = bin(program);
        let program = program.to_str().expect("paths of the tests are text");
        let words = [&["--session", "s"], options, &["--", program], args].concat();
        self.world.launch(words)
    }

    /// A monitor in the background, until it is dropped.
    pub fn monitor(&self) -> KillOnDrop {
        let mut command = self.world.command(["monitor", "run"]);
        KillOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Every invocation so far, in the order of their beginnings.
    pub fn calls(&self) -> Vec<Call> {
        let started = lines(&self.witness);
        let started = started.iter().filter_map(|line| line.strip_prefix("start "));
        let calls = started.map(|line| {
            let words: Vec<_> = line.splitn(5, ' ').collect();
            let [delivery, attempt, pid, at, session] = words[..] else { panic!("what is `{line}`?") };
            Call {
                delivery: delivery.to_owned(),
                attempt: attempt.parse().unwrap(),
                pid: pid.parse().unwrap(),
                at: at.parse().unwrap(),
                session: session.to_owned(),
            }
        });
        calls.collect()
    }

    /// The processes of the sink so far: one for each turn, however many follow-ups it told of.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.calls().iter().map(|call| call.pid).collect()
    }

    /// The invocations for one job.
    pub fn calls_of(&self, id: &str) -> Vec<Call> {
        let delivery = format!("{id}.end");
        self.calls().into_iter().filter(|call| call.delivery == delivery).collect()
    }

    /// What the witness says after this word, once for each time.
    pub fn said(&self, word: &str) -> Vec<String> {
        let lines = lines(&self.witness);
        let found = lines.iter().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        found.map(str::to_owned).collect()
    }

    /// Waits until the sink was invoked so often, for whatever it was.
    #[track_caller]
    pub fn called(&self, times: usize) -> Vec<Call> {
        eventually("the sink is invoked", || Some(self.calls()).filter(|calls| calls.len() >= times))
    }

    /// What was sent for a job, as it was read by the attempt with this number.
    #[track_caller]
    pub fn sent(&self, id: &str, attempt: u32) -> Value {
        self.read(&format!("{id}.end.{attempt}."))
    }

    /// What the sink read, of which it saved a file whose name begins so.
    #[track_caller]
    pub fn read(&self, start: &str) -> Value {
        eventually("the sink has read a delivery", || {
            let entries = fs::read_dir(&self.saved).unwrap().map(|entry| entry.unwrap());
            let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
            // Until it is all there it is no JSON.
            serde_json::from_slice(&fs::read(found.next()?.path()).unwrap()).ok()
        })
    }

    /// Waits until the follow-up of a job is in one of these states, looking as any command does. Returns the job.
    #[track_caller]
    pub fn until(&self, id: &str, states: &[&str]) -> Job {
        eventually(&format!("{id} is {states:?}"), || {
            let job = self.world.show(id);
            states.contains(&job["follow_up"]["state"].as_str()?).then_some(job)
        })
    }

    /// Waits until the receipt of a job is there, without disturbing any process.
    #[track_caller]
    pub fn receipt(&self, id: &str) -> Value {
        eventually(&format!("{id} has its receipt"), || {
            let home = self.world.home();
            let past = home.join("history").join(id.get(..5)?).join(id);
            let found = [home.join("jobs").join(id), past]
                .into_iter()
                .find_map(|folder| fs::read(folder.join("receipt.json")).ok());
            serde_json::from_slice(&found?).ok()
        })
    }

    /// The follow-ups that are pending for a session, as it would get them.
    #[track_caller]
    pub fn pending(&self, session: &str) -> Vec<String> {
        let listed = self.world.json(["followups", "list", "--session", session, "--json"]);
        let jobs = listed["jobs"].as_array().expect("a list");
        jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// What holds of turns: one process of the sink ends before the next one starts. Each says so for every follow-up
    /// that it tells.
    #[track_caller]
    pub fn check_turns(&self) {
        let (lines, of_whom) =
            (lines(&self.witness), |line: &String| line.split(' ').nth(3).map(str::to_owned));
        for turn in lines.chunk_by(|one, other| of_whom(one) == of_whom(other)) {
            let (starts, ends) = turn.split_at(turn.len() / 2);
            let is_whole = starts.iter().all(|line| line.starts_with("start "))
                && ends.iter().all(|line| line.starts_with("end "));
            assert!(is_whole && starts.len() == ends.len(), "two at once: {turn:?}");
        }
    }

    /// What holds of every history of deliveries: attempts of a delivery rise by one, and none begins after its
    /// receipt. Returns the number of invocations of each.
    #[track_caller]
    pub fn check_order(&self) -> BTreeMap<String, u32> {
        assert_eq!(self.said("after-receipt"), Vec::<String>::new(), "nothing is sent after its receipt");
        let mut seen = BTreeMap::new();
        for call in self.calls() {
            let last = seen.entry(call.delivery.clone()).or_insert(0);
            assert!(call.attempt > *last, "attempts rise: {:?}", self.calls());
            *last = call.attempt;
        }
        seen
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
