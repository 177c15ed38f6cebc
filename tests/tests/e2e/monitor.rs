//! A monitor that is short of descriptors, threads or memory, that has many jobs, or that gets much to do at once.

use hearback_tests::{Outbox, bin, eventually};

/// A monitor of this store, once it is the host.
fn start(outbox: &Outbox) -> hearback_tests::KillOnDrop {
    let monitor = outbox.monitor();
    eventually("the monitor runs", || {
        let status = outbox.world.json(["monitor", "status", "--json"]);
        status["pid"].as_u64()
    });
    monitor
}

#[test]
fn supervisors_that_are_killed_at_the_same_time_are_all_noticed() {
    let outbox = Outbox::new(&[]);
    let _monitor = start(&outbox);
    let never = outbox.gate("never");
    let hold = bin("hold");
    let hold = hold.to_str().expect("paths of the tests are text");
    let launch = |n| outbox.world.launch(["--session", &format!("s{n}"), "--", hold, &never]);
    let ids: Vec<_> = (0..20).map(launch).collect();
    for id in &ids {
        outbox.world.end_supervisor(id);
    }
    // No other command looks, and a monitor would look by itself only after a minute.
    for id in &ids {
        assert_eq!(outbox.receipt(id)["how"], "delivered");
    }
    outbox.check_order();
}

/// The lines of the monitor's log in which this stands.
fn named(outbox: &Outbox, what: &str) -> usize {
    let log = outbox.world.home().join("monitor").join("monitor.log");
    hearback_tests::lines(log).iter().filter(|line| line.contains(what) && line.contains("cannot")).count()
}

#[test]
fn scenario_114_a_stray_entry_costs_its_own_job_or_session_alone_and_is_named_once() {
    let outbox = Outbox::new(&[]);
    let home = outbox.world.home();
    let never = outbox.gate("never");
    let ids: Vec<_> = (0..3).map(|_| outbox.launch(&[], "hold", &[&never])).collect();
    let [launch, lease, fine] = &ids[..] else { panic!("three jobs") };
    // A folder where a lock should be.
    for (id, lock) in [(launch, "launch.lock"), (lease, "lease.1.lock")] {
        let lock = outbox.world.job_dir(id).join(lock);
        fs_err::remove_file(&lock).unwrap();
        fs_err::create_dir(&lock).unwrap();
    }
    // A file manager's files, and an inbox that is none.
    let sessions = home.join("sessions");
    fs_err::create_dir_all(sessions.join("stray")).unwrap();
    fs_err::write(sessions.join("stray").join("inbox"), "").unwrap();
    for folder in [&sessions, &home.join("jobs"), &home.join("history"), &outbox.world.job_dir(fine)] {
        fs_err::write(folder.join(".DS_Store"), "").unwrap();
    }
    let _monitor = start(&outbox);
    ids.iter().for_each(|id| outbox.world.end_supervisor(id));
    assert_eq!(outbox.receipt(fine)["how"], "delivered");
    outbox.world.run(["send", "--session", "other", "hello"]).ok();
    eventually("the message arrives", || {
        outbox.calls().iter().any(|call| call.delivery.starts_with("other.message")).then_some(())
    });
    for what in [launch.as_str(), lease, "stray"] {
        eventually(&format!("{what} is named"), || (named(&outbox, what) > 0).then_some(()));
    }
    // They are tried again and again, and named once.
    std::thread::sleep(std::time::Duration::from_secs(7));
    for what in [launch.as_str(), lease, "stray"] {
        assert_eq!(named(&outbox, what), 1, "{what}");
    }
    let seen = outbox.world.run(["sessions", "--json"]);
    assert_eq!(seen.code, Some(125), "{seen:?}");
    let seen: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(seen["problems"][0]["session"], "stray", "{seen}");
    assert!(seen["sessions"].as_array().unwrap().iter().any(|it| it["session"] == "other"), "{seen}");
    outbox.world.run(["sessions"]).exits(125).says("stray");
    outbox.world.run(["list"]).exits(125).says(launch);
}

// Not on Windows: a process there may have as many handles and threads as there is memory for, and another process
// cannot change that.
#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use hearback_tests::alive;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Sets a limit of another process, which it has from now on.
    fn limit(pid: u32, what: &str, to: &str) {
        let status =
            Command::new("prlimit").args(["--pid", &pid.to_string(), &format!("--{what}={to}")]).status();
        assert!(status.unwrap().success());
    }

    /// A number of `/proc/PID/status`.
    fn status(pid: u32, field: &str) -> u64 {
        let text = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn descriptors(pid: u32) -> usize {
        fs_err::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
    }

    /// A world whose agent waits for its session's gate, a monitor, and a turn of session `busy` that is under way.
    fn with_a_turn() -> (Outbox, hearback_tests::KillOnDrop, u32) {
        let outbox = Outbox::with("", "", &[]);
        let gate = outbox.gate("go-{session}");
        outbox.configure("", "turn = true", &[&format!("until:{gate}:0")]);
        outbox.release("go-s");
        let monitor = start(&outbox);
        outbox.world.run(["send", "--session", "busy", "keep busy"]).ok();
        let agent = outbox.called(1)[0].pid;
        (outbox, monitor, agent)
    }

    /// What was due in the time of need arrives after it, the monitor is the same, and its turn was not cut.
    #[track_caller]
    fn recovers(outbox: &Outbox, monitor: u32, agent: u32, ids: &[String]) {
        for id in ids {
            assert_eq!(outbox.receipt(id)["how"], "delivered");
        }
        assert!(alive(monitor), "the monitor has ended");
        assert!(alive(agent), "its turn was cut short");
        outbox.release("go-busy");
        eventually("the turn has ended", || {
            let sessions = outbox.world.json(["sessions", "--session", "busy", "--json"]);
            sessions["sessions"][0]["turn"].is_null().then_some(())
        });
        assert_eq!(outbox.calls().iter().filter(|call| call.session == "busy").count(), 1);
        outbox.check_order();
    }

    #[test]
    fn scenario_114_a_fact_that_cannot_be_read_from_the_disk_costs_its_own_job_alone() {
        hearback_tests::with_private_mounts(|| {
            let outbox = Outbox::new(&[]);
            let never = outbox.gate("never");
            let [broken, fine] = [0, 1].map(|_| outbox.launch(&[], "hold", &[&never]));
            // Reading the memory of a process at address zero is an input/output error.
            let fact = outbox.world.job_dir(&broken).join("target.json");
            let memory = format!("/proc/{}/mem", std::process::id());
            let mount = |args: &[&std::ffi::OsStr]| {
                assert!(Command::new(args[0]).args(&args[1..]).status().unwrap().success());
            };
            mount(&["mount".as_ref(), "--bind".as_ref(), memory.as_ref(), fact.as_ref()]);
            let monitor = start(&outbox);
            [&broken, &fine].into_iter().for_each(|id| outbox.world.end_supervisor(id));
            assert_eq!(outbox.receipt(&fine)["how"], "delivered");
            eventually("it is named", || (named(&outbox, &broken) > 0).then_some(()));
            outbox.world.run(["list"]).exits(125).says(&broken).prints(&fine[9..]);
            assert_eq!(named(&outbox, &broken), 1);
            mount(&["umount".as_ref(), fact.as_ref()]);
            assert_eq!(outbox.receipt(&broken)["how"], "delivered", "served again when it can be read");
            drop(monitor);
        });
    }

    #[test]
    fn scenario_115_a_monitor_without_descriptors_for_a_while_cuts_no_turn_and_does_all_afterwards() {
        let (outbox, monitor, agent) = with_a_turn();
        let never = outbox.gate("never");
        let pid = monitor.0.id();
        let ids: Vec<_> = (0..4).map(|_| outbox.launch(&[], "hold", &[&never])).collect();
        limit(pid, "nofile", "3:4096");
        // The name of a request makes it read the store as a whole, which fails.
        let request = outbox.world.home().join("monitor").join("request.7");
        fs_err::write(&request, "").unwrap();
        fs_err::remove_file(&request).unwrap();
        for id in &ids {
            outbox.world.end_supervisor(id);
        }
        // Longer than the pause after an error, so that it meets the limit more than once.
        std::thread::sleep(Duration::from_secs(5));
        limit(pid, "nofile", "1024:4096");
        recovers(&outbox, pid, agent, &ids);
    }

    #[test]
    fn scenario_116_what_a_thread_that_could_not_be_started_was_to_do_is_done_soon() {
        let (outbox, monitor, agent) = with_a_turn();
        let never = outbox.gate("never");
        let pid = monitor.0.id();
        let ids: Vec<_> = (0..4).map(|_| outbox.launch(&[], "hold", &[&never])).collect();
        // There is room for what is small, and not for the stack of a thread.
        limit(pid, "as", &format!("{}:", (status(pid, "VmSize:") + 1024) * 1024));
        for id in &ids {
            outbox.world.end_supervisor(id);
        }
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(outbox.calls().len(), 1, "no thread could be started");
        limit(pid, "as", "unlimited:");
        recovers(&outbox, pid, agent, &ids);
    }

    #[test]
    fn scenario_115_open_jobs_cost_a_monitor_no_descriptors_and_no_threads() {
        let outbox = Outbox::new(&[]);
        let monitor = start(&outbox);
        let pid = monitor.0.id();
        let before = (descriptors(pid), status(pid, "Threads:"));
        let never = outbox.gate("never");
        for _ in 0..40 {
            outbox.launch(&[], "hold", &[&never]);
        }
        // Threads that brought something up to date end by themselves.
        eventually("it has as many as before", || {
            ((descriptors(pid), status(pid, "Threads:")) <= before).then_some(())
        });
        assert!(before.0 < 64 && before.1 < 16, "{before:?}");
    }

    #[test]
    fn a_monitor_sleeps_while_nothing_happens_and_its_own_log_wakes_nobody() {
        let outbox = Outbox::new(&[]);
        let monitor = start(&outbox);
        let pid = monitor.0.id();
        outbox.launch(&[], "hold", &[&outbox.gate("never"), "--print", "hello"]);
        let log = outbox.world.home().join("monitor/monitor.log");
        let wakes = || {
            let tasks = fs_err::read_dir(format!("/proc/{pid}/task")).unwrap();
            let tids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap().parse().unwrap());
            tids.map(|tid: u32| status(tid, "voluntary_ctxt_switches:")).sum::<u64>()
        };
        // It may be in the middle of its look at everything, which it makes each minute.
        eventually("it does not wake up", || {
            let before = wakes();
            std::thread::sleep(Duration::from_secs(2));
            (wakes() == before).then_some(())
        });
        // Lines in its log are no news. The watch hears of them and goes on sleeping; the loop does not wake up.
        let main = || status(pid, "voluntary_ctxt_switches:");
        eventually("its loop does not wake up for its log", || {
            let before = main();
            for _ in 0..20 {
                use std::io::Write;
                let mut file = fs_err::OpenOptions::new().append(true).create(true).open(&log).unwrap();
                file.write_all(b"a line\n").unwrap();
            }
            std::thread::sleep(Duration::from_secs(1));
            (main() == before).then_some(())
        });
    }

    #[test]
    fn a_burst_of_launches_delays_no_stop() {
        let outbox = Outbox::new(&[]);
        let mut monitor = start(&outbox);
        let never = outbox.gate("never");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..15 {
                        outbox.launch(&[], "hold", &[&never]);
                    }
                });
            }
        });
        let began = Instant::now();
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(monitor.0.id().try_into().unwrap()),
            nix::sys::signal::Signal::SIGTERM,
        )
        .unwrap();
        let taken = outbox.world.home().join("monitor/request.1.taken");
        eventually("it begins to end", || taken.exists().then_some(()));
        println!("from the signal to the beginning of the end: {:?}", began.elapsed());
        assert!(monitor.0.wait().unwrap().success());
    }

    #[test]
    fn a_sink_gets_the_limit_of_descriptors_that_the_monitor_was_started_with() {
        let outbox = Outbox::new(&[]);
        let said = outbox.world.scratch("limit");
        outbox.write_settings(&format!(
            "default_sink = 'limit'\n[sink.limit]\ncommand = ['sh', '-c', 'ulimit -Sn >{}']\n",
            said.display()
        ));
        let mut command = Command::new("sh");
        outbox.world.settle(&mut command);
        command.args(["-c", r#"ulimit -Sn 321; exec "$0" monitor run"#]).arg(bin("hearback"));
        let monitor = hearback_tests::KillOnDrop(command.spawn().unwrap());
        eventually("it has raised its own", || {
            let limits = fs_err::read_to_string(format!("/proc/{}/limits", monitor.0.id())).unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap().to_owned();
            let words: Vec<_> = line.split_whitespace().collect();
            (words[3] == words[4] && words[3] != "321").then_some(())
        });
        let id = outbox.launch(&[], "hold", &[&outbox.gate("never")]);
        outbox.world.end_supervisor(&id);
        assert_eq!(outbox.receipt(&id)["how"], "delivered");
        assert_eq!(fs_err::read_to_string(said).unwrap().trim(), "321");
    }
}
