//! Kill points: the command line, the supervisor and the deliverer are killed from outside of Wine, as its host kills,
//! at moments by chance. Nothing is lost, nothing is taken for a success, and no process is left.
//!
//! By default some dozen of them are hit; with `HEARBACK_TEST_FULL=1` a thousand. The seed is printed, and
//! `HEARBACK_TEST_SEED` repeats it.
#![cfg(windows)]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use fs_err as fs;
use hearback_tests::{Chance, Outbox, bin, carrying, copy_program, eventually, is_full, lines, outside};
use serde_json::json;

/// The exit code of a target. A success would be the code of a kill on close.
const CODE: u32 = 7;
const WORKERS: usize = 4;
/// A victim is killed so long after it was first seen, in milliseconds.
const LATEST: u64 = 300;
const ERROR_INTERNAL_ERROR: i32 = 1359;

/// Takes requests in a folder, and kills from outside of Wine. No other test has the names of this folder.
const KILLER: &str = r#"
cd "$1" || exit 1
turn=0
while [ -d "$1" ] && [ ! -e stop ] && [ $turn -lt 180000 ]; do
  turn=$((turn + 1))
  for ask in *.ask; do
    [ -e "$ask" ] || continue
    name=${ask%.ask}
    end=
    { read -r delay; read -r pattern; read -r end; } < "$ask"
    [ "$end" = end ] || continue
    rm "$ask"
    (
      look() { grep -l -s -a -e "$pattern" /proc/[0-9]*/cmdline | cut -d/ -f3; }
      tries=0
      while [ -z "$(look)" ] && [ $tries -lt 150 ]; do tries=$((tries + 1)); sleep 0.02; done
      sleep "$delay"
      found=$(look)
      [ -n "$found" ] && kill -9 $found && echo "$found" > "$name.part"
      : >> "$name.part"
      mv "$name.part" "$name.done"
    ) &
  done
  sleep 0.02
done
"#;

/// One store, one copy of hearback that no other test runs, and a killer outside of Wine.
struct Scene {
    outbox: Outbox,
    hearback: PathBuf,
    kills: PathBuf,
    asked: AtomicUsize,
}

impl Scene {
    fn new() -> Scene {
        let settings = "retry_first = \"10ms\"\nretry_most = \"50ms\"\nattempts = 20";
        let outbox = Outbox::with(settings, "", &["0"]);
        let (hearback, kills) = (outbox.world.scratch("victim.exe"), outbox.world.scratch("kills"));
        copy_program("hearback", &hearback);
        fs::create_dir(&kills).unwrap();
        let script = outbox.world.scratch("killer.sh");
        fs::write(&script, KILLER).unwrap();
        let mut killer = Command::new("start");
        killer.args(["/unix", "/bin/sh", &outside::unix(&script), &outside::unix(&kills)]);
        killer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(killer.status().unwrap().success());
        Scene { outbox, hearback, kills, asked: AtomicUsize::new(0) }
    }

    /// Asks the killer for the process of this scene that has this part, so long after it was first seen.
    fn doom(&self, part: &str, after_ms: u64) -> Doom {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        let world = self.outbox.world.home().parent().unwrap().file_name().unwrap().to_str().unwrap();
        // Spelled so that it does not match itself.
        let pattern = format!("[{}]{}.*victim.exe.*{part}", &world[..1], &world[1..]);
        // The killer waits for the last line.
        fs::write(self.kills.join(format!("{n}.ask")), format!("0.{after_ms:03}\n{pattern}\nend\n")).unwrap();
        Doom(self.kills.join(format!("{n}.done")))
    }

    /// The output of a hearback that may be killed. Its code says nothing: a kill from outside shows as 0.
    fn hearback(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.hearback);
        self.outbox.world.settle(&mut command);
        match command.args(args).stderr(Stdio::null()).output() {
            Ok(done) => String::from_utf8_lossy(&done.stdout).trim().to_owned(),
            // Killed before it had begun.
            Err(error) if error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) => String::new(),
            Err(error) => panic!("{error}"),
        }
    }

    /// One job, whose launcher or supervisor is killed, and then the deliverer. Returns how many were hit.
    #[track_caller]
    fn round(&self, n: usize, chance: &mut Chance) -> usize {
        let Scene { outbox, .. } = self;
        let (go, witness) = (outbox.gate(&format!("go{n}")), outbox.gate(&format!("ran{n}")));
        let (hold, key, code) = (bin("hold"), format!("k{n}"), CODE.to_string());
        let words = ["launch", "--session", "s", "--key", &key, "--", hold.to_str().unwrap(), &go];
        let words = [&words[..], &["--witness", &witness, "--code", &code]].concat();

        let part = ["launch", "__supervise"][chance.below(2) as usize];
        let first = self.doom(part, chance.below(LATEST));
        let promised = self.hearback(&words);
        let mut hits = first.hits();
        // Said again, it is the same job, or the first.
        let id = eventually("a repeated launch is answered", || {
            let again = outbox.world.run(&words);
            (again.code == Some(0)).then(|| again.stdout.trim().to_owned())
        });
        assert!(promised.is_empty() || promised == id, "{promised} was promised, and it is {id}");

        let second = self.doom("__supervise", chance.below(LATEST));
        fs::write(&go, "").unwrap();
        hits += second.hits();
        let third = self.doom("monitor", chance.below(LATEST));
        self.hearback(&["monitor", "run", "--once"]);
        hits += third.hits();

        let job = eventually(&format!("{id} is told in the end"), || {
            outbox.world.run(["monitor", "run", "--once"]).ok();
            let job = outbox.world.show(&id);
            let state = job["follow_up"]["state"].as_str()?;
            ["delivered", "read"].contains(&state).then_some(job)
        });
        let (outcome, ran) = (&job["outcome"], lines(&witness).len());
        assert_eq!(job["state"], "failed", "nothing is taken for a success: {job}");
        match outcome["kind"].as_str() {
            Some("exited") => assert_eq!((outcome, ran), (&json!({"kind": "exited", "code": CODE}), 1)),
            Some("lost") => assert!(ran <= 1, "it ran {ran} times: {job}"),
            _ => panic!("what is this? {job}"),
        }
        assert_eq!(job.get("survivors"), None, "{job}");
        eventually("no process is left", || carrying(&format!("HEARBACK_JOB={id}")).is_empty().then_some(()));
        hits
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::write(self.kills.join("stop"), "");
    }
}

/// A kill that was asked for.
struct Doom(PathBuf);

impl Doom {
    /// Waits until it is done, and returns how many it hit.
    #[track_caller]
    fn hits(&self) -> usize {
        eventually("the killer answers", || self.0.exists().then_some(()));
        fs::read_to_string(&self.0).unwrap().split_whitespace().count()
    }
}

#[test]
fn a_kill_from_outside_loses_nothing_and_leaves_no_process() {
    if !outside::is_there("a kill without a word") {
        return;
    }
    let wanted = if is_full() { 1000 } else { 24 };
    let mut chance = Chance::new("kill points");
    let seeds: Vec<_> = (0..WORKERS).map(|_| chance.below(u64::MAX)).collect();
    let (hits, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (hits, rounds) = (&hits, &rounds);
    std::thread::scope(|scope| {
        for seed in seeds {
            scope.spawn(move || {
                let mut chance = Chance::from_seed(seed);
                let scene = Scene::new();
                while hits.load(Ordering::Relaxed) < wanted {
                    let n = rounds.fetch_add(1, Ordering::Relaxed);
                    assert!(n < wanted * 2, "most kills hit no process");
                    hits.fetch_add(scene.round(n, &mut chance), Ordering::Relaxed);
                }
                scene.outbox.check_order();
            });
        }
    });
    eprintln!("{hits:?} were killed in {rounds:?} rounds");
}
