//! Limits of the system: memory, file sizes, descriptors, interrupted calls. What a job meets is reported, and what its
//! supervisor meets costs no job its end.
#![cfg(any(target_os = "linux", windows))]

#[cfg(windows)]
use hearback_tests::outside;
use hearback_tests::{World, bin, eventually, scaled};
use serde_json::json;

/// Where limits can be set for a process.
// Not on Windows: limits of a process and cgroups.
#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    use hearback_tests::{World, alive, bin, eventually, lines, run};
    use serde_json::{Value, json};

    /// A memory cgroup of the test's own, gone with it.
    struct Group(PathBuf);

    impl Group {
        /// Nothing, with the reason printed, where none can be made.
        fn new(name: &str, limit: &str) -> Option<Group> {
            let path =
                Path::new("/sys/fs/cgroup/memory").join(format!("hearback-{name}-{}", std::process::id()));
            if let Err(error) = std::fs::create_dir(&path) {
                hearback_tests::skipped(format_args!(
                    "no memory cgroup of version 1 can be made here: {error}"
                ));
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
            // The world was dropped before; its processes are gone in a moment.
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

    // Not on Windows: no process is killed there for lack of memory; one that asks for too much is refused.
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

    // Not on Windows: no process is killed there when memory runs out, so none goes first.
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

    /// Runs hearback's launch from a shell with these limits.
    #[track_caller]
    pub(super) fn launch_in(world: &World, limits: &str, args: &[&str]) -> String {
        let mut command = Command::new("sh");
        world.settle(&mut command);
        command
            .args(["-c", &format!(r#"{limits} && exec "$0" launch "$@""#)])
            .arg(bin("hearback"))
            .args(args);
        run(command).ok()
    }

    // Not on Windows: a process has no limit on handles that could be set.
    #[test]
    fn a_supervisor_makes_do_with_sixteen_descriptors() {
        let world = World::new();
        let (go, witness) = (world.scratch("go"), world.scratch("witness"));
        let words =
            [bin("hold"), go.clone(), "--code".into(), "4".into(), "--witness".into(), witness.clone()];
        let words: Vec<_> = words.iter().map(|word| word.display().to_string()).collect();
        let args: Vec<&str> =
            ["--timeout", "1h", "--"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let low = "ulimit -n 16";
        let id = launch_in(&world, low, &args);
        eventually("it runs", || (!lines(&witness).is_empty()).then_some(()));
        fs_err::write(go, "").unwrap();
        assert_eq!(world.run(["wait", &id]).code, Some(4));
        let job = world.show(&id);
        assert_eq!(job["outcome"], json!({"kind": "exited", "code": 4}), "{job}");

        // To look for a whole tree, and to end it, takes no more.
        let seen = world.scratch("seen");
        let (animal, seen_text) = (bin("animal").display().to_string(), seen.display().to_string());
        let id =
            launch_in(&world, low, &["--grace", "100ms", "--", &animal, "deaf", "--witness", &seen_text]);
        eventually("it has grown", || (lines(&seen).len() == 7).then_some(()));
        world.run(["kill", &id]).ok();
        let pids = lines(&seen).into_iter().map(|line| line.split(' ').next().unwrap().parse().unwrap());
        assert_eq!(pids.filter(|pid| alive(*pid)).collect::<Vec<_>>(), [0; 0]);
    }
}

#[test]
fn a_limit_on_the_size_of_files_costs_output_and_never_the_end() {
    let world = World::new();
    let print = bin("print").display().to_string();
    #[cfg(target_os = "linux")]
    {
        let small = "ulimit -f 16"; // 8 KiB.
        let id = linux::launch_in(&world, small, &["--", &print, "--bytes", "100000"]);
        keeps_at_most(&world, &id, 8192);
        // The target itself meets the limit as it would without hearback.
        let text = format!("exec '{print}' --bytes 100000 > '{}'", world.scratch("own").display());
        let id = linux::launch_in(&world, small, &["--", "sh", "-c", &text]);
        assert_eq!(world.run(["wait", &id]).code, Some(128 + 25));
        assert_eq!(world.show(&id)["outcome"]["signal"], 25);
    }
    // No process has such a limit there, but a disk can have one.
    #[cfg(windows)]
    hearback_tests::with_private_mounts(|| {
        fs_err::create_dir(world.home()).unwrap();
        let small = "size=64k,mode=700";
        let disk = hearback_tests::Mount::new("tmpfs", small, world.home());
        let id = world.launch(["--", &print, "--bytes", "100000"]);
        keeps_at_most(&world, &id, 64 * 1024);
        // The target itself meets the limit of another disk as it would without hearback.
        disk.change("size=1m");
        let full = world.scratch("full");
        fs_err::create_dir(&full).unwrap();
        let _other = hearback_tests::Mount::new("tmpfs", small, &full);
        let text = format!("\"{print}\" --bytes 100000 > \"{}\"", full.join("own").display());
        let id = world.launch(["--shell-program", "cmd", "--shell", &text]);
        // What `print` says when it cannot write.
        assert_eq!(world.run(["wait", &id]).code, Some(1));
        assert_eq!(world.show(&id)["outcome"], json!({"kind": "exited", "code": 1}));
    });
}

/// A job that printed 100,000 bytes ended well, and of its output less than a limit may be kept, never more.
#[track_caller]
fn keeps_at_most(world: &World, id: &str, limit: u64) {
    assert_eq!(world.run(["wait", id]).code, Some(0));
    let job = world.show(id);
    assert_eq!(job["output"]["bytes"], 100_000, "{job}");
    let dropped = job["output"]["dropped"].as_u64().unwrap();
    assert!((100_000 - limit..100_000).contains(&dropped), "{job}");
}

#[test]
fn interrupted_calls_lose_no_output_and_no_end() {
    #[cfg(windows)]
    if !outside::is_there("a process that is stopped in the middle of a call") {
        return;
    }
    let bytes = scaled(4_000_000, 1_000_000);
    let world = World::new();
    let (print, go) = (bin("print").display().to_string(), world.scratch("go").display().to_string());
    let (act, printed) = (bin("act").display().to_string(), bytes.to_string());
    let steps = ["spawn", &print, "--bytes", &printed, ";", "hold", &go, "exit", "6"];
    let id = world.launch([&["--timeout", "1h", "--", &act][..], &steps].concat());
    eventually("all is printed", || {
        interrupt(&world, &id, 1);
        (world.show(&id)["output"]["bytes"].as_u64() == Some(bytes)).then_some(())
    });
    interrupt(&world, &id, 200);
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(6));
    let job = world.show(&id);
    assert_eq!(job["outcome"], json!({"kind": "exited", "code": 6}), "{job}");
    assert_eq!((&job["output"]["bytes"], &job["output"]["dropped"]), (&json!(bytes), &json!(0)), "{job}");
}

/// Interrupts the call that a supervisor waits in: it gets a signal, or is paused and continued.
#[cfg(target_os = "linux")]
fn interrupt(world: &World, id: &str, times: usize) {
    use nix::sys::signal::{Signal, kill};
    let supervisor = nix::unistd::Pid::from_raw(world.supervisor(id).try_into().unwrap());
    for _ in 0..times {
        for signal in [Signal::SIGCHLD, Signal::SIGSTOP, Signal::SIGCONT] {
            kill(supervisor, signal).unwrap();
        }
    }
}

#[cfg(windows)]
fn interrupt(_world: &World, id: &str, times: usize) {
    let supervisor = outside::find(&format!("__supervise {id}"));
    assert_eq!(supervisor.len(), 1, "{supervisor:?}");
    let script = r#"for n in $(seq "$1"); do kill -STOP "$0"; kill -CONT "$0"; done"#;
    outside::run("sh", &["-c", script, &supervisor[0].to_string(), &times.to_string()]).ok();
}
