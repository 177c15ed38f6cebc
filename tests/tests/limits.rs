//! Limits of the system: memory, file sizes, descriptors, interrupted calls. What a job meets is told, and what its
//! supervisor meets costs no job its end.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hearback_tests::{World, alive, bin, eventually, lines, run};
use serde_json::{Value, json};

/// A memory cgroup of the test's own, gone with it.
struct Group(PathBuf);

impl Group {
    /// Nothing, with a word about why, where none can be made.
    fn new(name: &str, limit: &str) -> Option<Group> {
        let path = Path::new("/sys/fs/cgroup/memory").join(format!("hearback-{name}-{}", std::process::id()));
        if let Err(error) = std::fs::create_dir(&path) {
            eprintln!("skipped: no memory cgroup of version 1 can be made here: {error}");
            return None;
        }
        let group = Group(path);
        fs_err::write(group.0.join("memory.limit_in_bytes"), limit).unwrap();
        // Where there is swap, it counts too.
        let _ = std::fs::write(group.0.join("memory.memsw.limit_in_bytes"), limit);
        Some(group)
    }

    /// Runs hearback in there.
    #[track_caller]
    fn launch(&self, world: &World, args: &[&OsStr]) -> String {
        let mut command = Command::new("sh");
        world.settle(&mut command);
        command.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.0.join("cgroup.procs"));
        command.arg(bin("hearback")).arg("launch").args(args);
        run(command).ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The world was dropped before; whoever was in there is gone in a moment.
        for _ in 0..500 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn notes(job: &Value) -> String {
    job.get("notes").map(Value::to_string).unwrap_or_default()
}

#[test]
fn a_job_that_was_ended_for_lack_of_memory_says_so_and_its_supervisor_lives() {
    let Some(group) = Group::new("oom", "64M") else { return };
    let world = World::new();
    let hog = bin("hog");
    let id = group.launch(&world, &["--".as_ref(), hog.as_ref(), "512".as_ref()]);
    assert_eq!(world.run(["wait", &id]).code, Some(137));
    let job = world.show(&id);
    assert_eq!(job["outcome"], json!({"kind": "signaled", "signal": 9, "core": false}), "{job}");
    assert!(notes(&job).contains("out-of-memory killer"), "{job}");
    assert!(world.run(["show", &id]).ok().contains("out-of-memory killer"));

    // What a shell says of a command that was killed.
    let text = format!("'{}' 512; exit $?", hog.display());
    let id = group.launch(&world, &["--shell".as_ref(), text.as_ref()]);
    assert_eq!(world.run(["wait", &id]).code, Some(137));
    let job = world.show(&id);
    assert_eq!(job["outcome"], json!({"kind": "exited", "code": 137}), "{job}");
    assert!(notes(&job).contains("out-of-memory killer"), "{job}");

    // Others of the same kind are not blamed on it.
    let exit_with = bin("exit-with");
    let id = group.launch(
        &world,
        &["--".as_ref(), exit_with.as_ref(), "0".as_ref(), "--signal".as_ref(), "9".as_ref()],
    );
    assert_eq!(world.run(["wait", &id]).code, Some(137));
    let job = world.show(&id);
    assert_eq!(notes(&job), "", "{job}");
}

#[test]
fn a_target_goes_before_its_supervisor_when_memory_runs_out() {
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let arguments = ["--".into(), bin("hold"), go.clone(), "--witness".into(), witness.clone()];
    let id = world.launch(arguments);
    let target = eventually("it runs", || lines(&witness).first()?.strip_prefix("start ")?.parse().ok());
    let score = |pid: u32| -> i32 {
        fs_err::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse().unwrap()
    };
    let ours = score(std::process::id());
    assert_eq!(score(world.supervisor(&id)), ours);
    assert_eq!(score(target), (ours + 300).min(1000));
    fs_err::write(go, "").unwrap();
    world.run(["wait", &id]).ok();
    assert!(!alive(target));
}
