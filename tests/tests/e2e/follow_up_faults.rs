//! Whatever dies, hangs or lies on the way: a follow-up arrives, under one identity, and never after its receipt.
//!
//! By default a tenth of each campaign is run, and less under Wine; with `HEARBACK_TEST_FULL=1` all of it. A campaign
//! by chance prints its seed, and `HEARBACK_TEST_SEED` repeats it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fs_err as fs;
use hearback_tests::{
    Chance, KillOnDrop, Outbox, alive, bin, eventually, is_full, kill_if_there, killat, lines, rounds, scaled,
};
use serde_json::{Value, json};

/// How many rounds of a campaign run side by side.
const AT_ONCE: usize = 4;

/// All of it, or a tenth; under Wine less.
fn of(all: usize) -> usize {
    if is_full() { all } else { scaled(all / 10, all.div_ceil(50)) }
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths of the tests are text").to_owned()
}

/// Looks after the store again and again, as any later command would, until a job has its receipt.
#[track_caller]
fn delivered_in_the_end(outbox: &Outbox, id: &str) {
    let job = eventually(&format!("{id} is delivered in the end"), || {
        outbox.world.run(["monitor", "run", "--once"]).ok();
        let job = outbox.world.show(id);
        (job["follow_up"]["state"] == "delivered").then_some(job)
    });
    let identity = format!("{id}.end");
    assert_eq!(job["follow_up"]["delivery"], identity);
    let calls = outbox.calls_of(id);
    assert!(!calls.is_empty(), "{job}");
    let attempts = job["follow_up"]["attempts"].as_u64().unwrap();
    assert!(calls.iter().all(|call| u64::from(call.attempt) <= attempts), "{calls:?}");
    let mut leases: Vec<u32> = fs::read_dir(outbox.world.job_dir(id))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_prefix("lease.")?.parse().ok())
        .collect();
    leases.sort_unstable();
    assert!(leases.iter().zip(1..).all(|(n, wanted)| *n == wanted), "numbered without a gap: {leases:?}");
}

#[test]
fn scenario_25_a_job_outlives_its_host_and_the_real_code_and_all_output_arrive() {
    let outbox = Outbox::new(&[]);
    let mut host = outbox.monitor();
    let go = outbox.gate("go");
    let id = outbox.launch(&[], "hold", &[&go, "--code", "7", "--print", "before"]);
    eventually("it prints", || (outbox.world.run(["logs", &id]).ok() == "before").then_some(()));
    host.0.kill().unwrap();
    host.0.wait().unwrap();
    let _host = outbox.monitor();
    outbox.release("go");
    outbox.receipt(&id);
    let data = &outbox.sent(&id, 1)["data"];
    assert_eq!(data["job"]["outcome"], json!({"kind": "exited", "code": 7}));
    assert_eq!(data["output"]["head"], "before\n");
    assert_eq!(outbox.calls().len(), 1);
}

#[test]
fn scenario_26_an_end_while_no_process_listened_is_delivered_once_later() {
    let go = |outbox: &Outbox| format!("until:{}:0", outbox.gate("never"));
    let outbox = Outbox::new(&[]);
    outbox.configure("", "", &[&go(&outbox), "0"]);
    let id = outbox.launch(&[], "exit-with", &["5"]);
    // Its supervisor dies on the way, and with it the sink that it had started.
    let call = outbox.called(1).remove(0);
    outbox.world.end_supervisor(&id);
    eventually("the sink ends with its sender", || (!call.is_running()).then_some(()));
    assert_eq!(outbox.calls().len(), 1);
    // Any later command finds it.
    eventually("it is delivered", || {
        outbox.world.run(["list"]).ok();
        (outbox.calls().len() == 2).then_some(())
    });
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
    outbox.world.run(["monitor", "run", "--once"]).ok();
    assert_eq!(outbox.calls().len(), 2, "once");
    assert_eq!(outbox.sent(&id, 2)["data"]["job"]["outcome"]["code"], 5);
    outbox.check_order();
}

#[test]
fn scenario_29_the_owner_of_a_job_whose_pid_was_reused_is_notified_that_it_is_lost() {
    let outbox = Outbox::new(&[]);
    let mut command = Command::new(bin("hold"));
    command.args([outbox.world.scratch("never")]).stdin(Stdio::null());
    let mut stranger = KillOnDrop(command.spawn().unwrap());
    let id = outbox.launch(&[], "hold", &[&outbox.gate("never")]);
    let folder = outbox.world.job_dir(&id);
    let target = fs::read(folder.join("target.json")).unwrap();
    let mut target: Value = serde_json::from_slice(&target).unwrap();
    let supervisor = outbox.world.supervisor(&id);
    outbox.world.end_supervisor(&id);
    eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
    target["handle"]["pid"] = json!(stranger.0.id());
    fs::write(folder.join("target.json"), target.to_string()).unwrap();
    outbox.world.run(["list"]).ok();
    let sent = outbox.sent(&id, 1);
    assert_eq!(sent["data"]["job"]["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}));
    let words = sent["data"]["text"].as_str().unwrap();
    assert!(words.contains("\noutcome: lost: its supervisor died"), "{words}");
    assert!(stranger.0.try_wait().unwrap().is_none(), "the stranger lives");
}

#[test]
fn scenario_34_what_was_handed_over_and_not_acknowledged_comes_again_under_the_same_identity() {
    let outbox = Outbox::new(&["betray", "0"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    let first = outbox.sent(&id, 1);
    delivered_in_the_end(&outbox, &id);
    let second = outbox.sent(&id, 2);
    assert_eq!(first["id"], second["id"]);
    assert_eq!((&first["data"]["attempt"], &second["data"]["attempt"]), (&json!(1), &json!(2)));
    assert_eq!(first["data"]["text"], second["data"]["text"]);
    assert_eq!(outbox.calls().len(), 2);
    outbox.check_order();
}

#[test]
fn a_last_attempt_without_a_result_is_a_dead_letter_without_a_monitor() {
    let outbox = Outbox::with("attempts = 1", "", &["betray"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    let job = outbox.until(&id, &["dead_letter"]);
    assert_eq!(job["follow_up"]["error"], "its last attempt left no result", "{job}");
    assert_eq!(outbox.calls().len(), 1);
}

#[test]
fn fewer_attempts_allowed_meanwhile_end_in_a_dead_letter() {
    let outbox = Outbox::with("retry_first = \"300ms\"", "", &["1"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    eventually("two attempts have failed", || {
        (outbox.world.show(&id)["follow_up"]["attempts"] == 2).then_some(())
    });
    outbox.world.end_supervisor(&id);
    outbox.configure("attempts = 1\nretry_first = \"10ms\"", "", &["1"]);
    let _monitor = outbox.monitor();
    let job = outbox.until(&id, &["dead_letter"]);
    assert!(job["follow_up"]["attempts"].as_u64().unwrap() <= 3, "{job}");
}

#[test]
fn scenario_69_the_owner_of_a_job_whose_supervisor_was_killed_is_notified_with_its_output() {
    let outbox = Outbox::new(&[]);
    let never = outbox.gate("never");
    let id = outbox.launch(&[], "hold", &[&never, "--print", "half done"]);
    eventually("it prints", || (outbox.world.run(["logs", &id]).ok() == "half done").then_some(()));
    outbox.world.end_supervisor(&id);
    eventually("a command looks", || {
        outbox.world.run(["list"]).ok();
        (!outbox.calls().is_empty()).then_some(())
    });
    let data = &outbox.sent(&id, 1)["data"];
    assert_eq!(data["job"]["outcome"]["kind"], "lost");
    assert_eq!(data["output"]["head"], "half done\n");
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn a_monitor_notices_at_once_that_a_supervisor_was_killed() {
    let outbox = Outbox::new(&[]);
    let _monitor = outbox.monitor();
    let lock = outbox.world.home().join("monitor").join("run.lock");
    eventually("a monitor is there", || lock.exists().then_some(()));
    for _ in 0..5 {
        let id = outbox.launch(&[], "hold", &[&outbox.gate("never")]);
        outbox.world.end_supervisor(&id);
        // No other command looks, and a monitor would look by itself only after a minute.
        assert_eq!(outbox.receipt(&id)["how"], "delivered");
    }
}

#[test]
fn scenario_20_a_kill_that_meets_an_end_makes_at_most_one_follow_up() {
    let outbox = Outbox::new(&[]);
    let (asked, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
    rounds(of(1000), AT_ONCE, |n| {
        let go = outbox.gate(&format!("go{n}"));
        let id = outbox.launch(&[], "hold", &[&go]);
        std::thread::scope(|scope| {
            scope.spawn(|| outbox.run_as("s", &["kill", &id]));
            // Sometimes the kill is first, sometimes the end.
            std::thread::sleep(Duration::from_millis(n as u64 % 30));
            fs::write(&go, "").unwrap();
        });
        let job = outbox.world.show(&id);
        if job["outcome"]["kind"] == "killed" {
            assert_eq!(job["follow_up"]["state"], "not_wanted", "{job}");
            assert_eq!(outbox.calls_of(&id), []);
            asked.fetch_add(1, Ordering::Relaxed);
        } else {
            outbox.receipt(&id);
            assert_eq!(outbox.calls_of(&id).len(), 1, "{job}");
            told.fetch_add(1, Ordering::Relaxed);
        }
    });
    eprintln!("{asked:?} were killed, {told:?} ended by themselves");
    assert_eq!(outbox.calls().len(), told.into_inner());
}

#[test]
fn an_owner_who_is_waiting_is_not_woken() {
    let outbox = Outbox::new(&[]);
    let count = of(500);
    rounds(count, AT_ONCE, |n| {
        let go = outbox.gate(&format!("go{n}"));
        let id = outbox.launch(&[], "hold", &[&go]);
        let mut wait = match n % 2 {
            0 => outbox.command_as("s", &["wait", &id]),
            _ => outbox.world.command(["wait", "--session", "s", &id]),
        };
        let mut wait = KillOnDrop(wait.stdout(Stdio::null()).spawn().unwrap());
        let lock = outbox.world.job_dir(&id).join("reader.lock");
        eventually("it waits", || {
            let open = || std::fs::File::open(&lock).ok();
            // Before it shares the lock it has it to itself for a moment.
            open()?.try_lock_shared().ok()?;
            matches!(open()?.try_lock(), Err(std::fs::TryLockError::WouldBlock)).then_some(())
        });
        fs::write(&go, "").unwrap();
        assert_eq!(wait.0.wait().unwrap().code(), Some(0));
        assert_eq!(outbox.receipt(&id)["how"], "read");
    });
    outbox.world.run(["monitor", "run", "--once"]).ok();
    assert_eq!(outbox.calls(), [], "of {count} not one was woken");
}

#[test]
fn a_caller_that_launches_and_waits_is_not_woken() {
    let outbox = Outbox::new(&[]);
    let exit_with = text(&bin("exit-with"));
    rounds(of(500), AT_ONCE, |_| {
        outbox.run_as("s", &["launch", "--wait", "--", &exit_with, "0"]).ok();
    });
    outbox.world.run(["monitor", "run", "--once"]).ok();
    assert_eq!(outbox.calls(), []);
}

/// Kills a process at a random moment of a delivery.
fn kill_at_a_moment(
    campaign: &str,
    with_monitor: bool,
    kill: impl Fn(&Outbox, &str, Option<&mut KillOnDrop>) + Sync,
) {
    let mut chance = Chance::new(campaign);
    let count = of(300);
    let within = scaled(50_000, 1_000_000);
    let plans: Vec<_> = (0..count).map(|_| (chance.below(within), chance.below(3))).collect();
    rounds(count, AT_ONCE, |n| {
        let (micros, answer) = plans[n];
        // Some sinks are quick, some busy first, some refuse first.
        let answers = [&["0"][..], &["75", "0"], &["1", "0"]][answer as usize];
        let outbox =
            Outbox::with("retry_first = \"10ms\"\nretry_most = \"50ms\"\nattempts = 20", "", answers);
        let mut monitor = with_monitor.then(|| outbox.monitor());
        let id = outbox.launch(&[], "hold", &[&outbox.gate("go")]);
        outbox.release("go");
        // A random moment is the point here; nothing is waited for.
        std::thread::sleep(Duration::from_micros(micros));
        kill(&outbox, &id, monitor.as_mut());
        drop(monitor);
        delivered_in_the_end(&outbox, &id);
        outbox.check_order();
    });
}

#[test]
fn a_supervisor_killed_at_any_moment_loses_no_follow_up() {
    kill_at_a_moment("supervisors", false, |outbox, id, _| outbox.world.end_supervisor(id));
}

#[test]
fn a_supervisor_killed_beside_a_monitor_loses_no_follow_up() {
    kill_at_a_moment("supervisors and a monitor", true, |outbox, id, _| outbox.world.end_supervisor(id));
}

#[test]
fn a_monitor_killed_at_any_moment_loses_no_follow_up() {
    kill_at_a_moment("monitors", true, |outbox, id, monitor| {
        // Without the supervisor it has the delivery to itself.
        if outbox.calls().is_empty() {
            outbox.world.end_supervisor(id);
        }
        std::thread::sleep(Duration::from_millis(5));
        monitor.expect("there is one").0.kill().unwrap();
    });
}

#[test]
fn a_sink_killed_at_any_moment_is_started_again_under_the_same_identity() {
    kill_at_a_moment("sinks", false, |outbox, _, _| {
        let deadline = Instant::now() + Duration::from_millis(scaled(200, 5000));
        while outbox.calls().is_empty() && Instant::now() < deadline {
            std::hint::spin_loop();
        }
        if let Some(call) = outbox.calls().pop().filter(|call| call.is_running()) {
            let _ = kill_if_there(call.pid); // It may have ended just now.
        }
    });
}

#[test]
fn a_supervisor_killed_at_any_call_of_a_delivery_loses_no_follow_up() {
    if !killat::is_there() {
        return;
    }
    let supervisor = ["--match", "__supervise"];
    let program = text(&bin("exit-with"));
    let launch = ["launch", "--session", "s", "--", &program, "0"];
    let last = killat::count(&Outbox::new(&[]).world, &supervisor, &launch);
    let (found, first) = (AtomicUsize::new(0), last / 3);
    // What comes before is about launching, which is tried elsewhere.
    let points = killat::at_each(first..=last, scaled(24, 60), |point| {
        let outbox = Outbox::with("retry_first = \"10ms\"", "", &["0"]);
        let at = point.to_string();
        killat::run(&outbox.world, &[&["kill", &at, "--wait-root"], &supervisor[..]].concat(), &launch);
        let jobs = outbox.world.json(["list", "--all", "--json"]);
        for job in jobs["jobs"].as_array().unwrap() {
            delivered_in_the_end(&outbox, job["id"].as_str().unwrap());
            found.fetch_add(1, Ordering::Relaxed);
        }
        outbox.check_order();
        outbox.world.settle_down();
    });
    eprintln!("{points} of the calls {first} to {last}, {found:?} jobs");
    assert!(found.into_inner() * 2 > points, "most of them had a job");
}

#[test]
fn a_supervisor_killed_while_it_starts_a_sink_leaves_no_process_behind() {
    if !killat::is_there() {
        return;
    }
    // From where it looks for the program on. Wine reads the program before it starts it.
    let supervisor = ["--match", "__supervise", "--from", "debug/sink"];
    let program = text(&bin("exit-with"));
    let launch = ["launch", "--session", "s", "--", &program, "0"];
    killat::at_each(scaled(1..=60, 60..=90), scaled(24, 150), |point| {
        let outbox = Outbox::with("retry_first = \"10ms\"", "", &["0"]);
        let at = point.to_string();
        let killed = killat::run(&outbox.world, &[&["kill", &at], &supervisor[..]].concat(), &launch);
        assert!(killed.stderr.contains("killed "), "point {point}: {killed:?}");
        let jobs = outbox.world.json(["list", "--all", "--json"]);
        delivered_in_the_end(&outbox, jobs["jobs"][0]["id"].as_str().unwrap());
        outbox.world.settle_down();
    });
}

#[test]
fn scenario_129_killed_at_any_call_of_a_turn_for_several_it_loses_none_and_tells_none_after_its_receipt() {
    if !killat::is_there() {
        return;
    }
    // Their supervisors died, so that the delivery is another process's: here that of a turn.
    let forsaken = || {
        let outbox = Outbox::with("retry_first = \"1ms\"", "turn = true", &["0"]);
        let go = outbox.gate("never");
        let jobs: Vec<_> = (0..3).map(|_| outbox.launch(&[], "hold", &[&go])).collect();
        for id in &jobs {
            let supervisor = outbox.world.supervisor(id);
            outbox.world.end_supervisor(id);
            eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
        }
        (outbox, jobs)
    };
    let program = text(&bin("exit-with"));
    // From the first attempt at one of them on.
    let of_turn = ["--match", "turn --session", "--from", "lease.1"];
    let turn = ["turn", "--session", "s", "--", &program, "0"];
    let last = killat::count(&forsaken().0.world, &of_turn, &turn);
    let together = AtomicUsize::new(0);
    let points = killat::at_each(1..=last, scaled(24, 60), |point| {
        let (outbox, jobs) = forsaken();
        killat::run(&outbox.world, &[&["kill", &point.to_string()], &of_turn[..]].concat(), &turn);
        for id in &jobs {
            delivered_in_the_end(&outbox, id);
        }
        let told = outbox.check_order();
        assert_eq!(told.len(), jobs.len(), "point {point}: {told:?}");
        let calls = outbox.calls();
        let first = calls.iter().filter(|call| call.attempt == 1);
        let pids: std::collections::BTreeSet<_> = first.map(|call| call.pid).collect();
        together.fetch_add(usize::from(pids.len() == 1), Ordering::Relaxed);
        outbox.world.settle_down();
    });
    eprintln!("{points} of {last} calls, {together:?} told together");
    assert!(together.into_inner() > 0, "some of them were told together");
}

#[test]
fn a_monitor_killed_at_any_call_of_a_delivery_loses_no_follow_up() {
    if !killat::is_there() {
        return;
    }
    // Its supervisor died on the way, so that the delivery is the monitor's.
    let forsaken = || {
        let outbox = Outbox::with("retry_first = \"1ms\"", "", &["betray", "0"]);
        let id = outbox.launch(&[], "exit-with", &["0"]);
        let call = outbox.called(1).remove(0);
        eventually("the sink ends with its sender", || (!alive(call.pid)).then_some(()));
        (outbox, id)
    };
    let (monitor, run) = (["--match", "monitor run"], ["monitor", "run", "--once"]);
    let last = killat::count(&forsaken().0.world, &monitor, &run);
    let points = killat::at_each(1..=last, scaled(24, 60), |point| {
        let (outbox, id) = forsaken();
        killat::run(&outbox.world, &[&["kill", &point.to_string()], &monitor[..]].concat(), &run);
        delivered_in_the_end(&outbox, &id);
        outbox.check_order();
        outbox.world.settle_down();
    });
    eprintln!("{points} of {last} calls");
}

#[test]
fn a_sink_that_hangs_is_killed_and_delays_no_other() {
    let outbox = Outbox::new(&[]);
    let settings = format!(
        "attempts = 2\nretry_first = \"20ms\"\n[sink.hung]\n{}\ntimeout = \"{}\"\nturn = true\n\
         [sink.well]\n{}\nturn = true\n",
        outbox.command(&["hang"]),
        scaled("400ms", "5s"),
        outbox.command(&["0"])
    );
    outbox.write_settings(&settings);
    let _monitor = outbox.monitor();
    let hung: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|session| {
            let args = ["--session", session, "--sink", "hung", "--", &text(&bin("exit-with")), "0"];
            outbox.world.launch(args)
        })
        .collect();
    outbox.called(3);
    let began = Instant::now();
    let well = outbox.launch(&["--sink", "well"], "exit-with", &["0"]);
    outbox.receipt(&well);
    assert!(began.elapsed() < Duration::from_secs(scaled(3, 15)), "{:?}", began.elapsed());
    for id in &hung {
        let job = outbox.until(id, &["dead_letter"]);
        assert_eq!(job["follow_up"]["attempts"], 2, "{job}");
        for call in outbox.calls_of(id) {
            assert!(!call.is_running(), "what hung is gone");
        }
    }
    outbox.check_order();
}

#[test]
fn a_sink_that_crashes_lies_floods_or_forks_is_bounded_and_tried_again() {
    let flood = if is_full() { 1 << 30 } else { scaled(100 << 20_u64, 1 << 20) };
    let (flooded, refused) = (format!("flood:{flood}:0"), format!("flood:{flood}:1"));
    let cases = [
        (&["crash", "0"][..], 2),
        (&["deaf:1", "deaf:0"], 2),
        // A sink that exits with 0 is believed, whether or not it read its input.
        (&["deaf:0"], 1),
        (&[&refused, &flooded], 2),
        (&["fork:1", "fork:0"], 2),
    ];
    for (answers, calls) in cases {
        let outbox = Outbox::with("retry_first = \"20ms\"", "timeout = \"30s\"", answers);
        let began = Instant::now();
        let id = outbox.launch(&[], "exit-with", &["0"]);
        let supervisor = outbox.world.supervisor(&id);
        let mut most = 0;
        eventually("it is delivered", || {
            most = most.max(peak_kib(supervisor));
            (outbox.world.show(&id)["follow_up"]["state"] == "delivered").then_some(())
        });
        assert_eq!(outbox.calls().len(), calls, "{answers:?}");
        let promptly = Duration::from_secs(scaled(15, 60));
        assert!(began.elapsed() < promptly, "{answers:?}: {:?}", began.elapsed());
        assert!(most < 64 * 1024, "{answers:?}: {most} KiB");
        outbox.check_order();
    }
}

/// The most memory that a process had so far; nothing where there is no `/proc`.
fn peak_kib(pid: u32) -> u64 {
    if !cfg!(target_os = "linux") {
        return 0;
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|peak| peak.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn a_crowd_of_bad_sinks_keeps_no_follow_up_from_arriving() {
    let outbox = Outbox::new(&[]);
    let flood = scaled(3_000_000, 100_000);
    let (refused, flooded) = (format!("flood:{flood}:1"), format!("flood:{flood}:0"));
    // Each does its worst at first, and then takes what it is given.
    let bad: [(&str, &[&str]); 8] = [
        ("well", &["0"]),
        ("crash", &["crash", "0"]),
        ("deaf", &["deaf:1", "deaf:0"]),
        ("liar", &["deaf:0"]),
        ("flood", &[&refused, &flooded]),
        ("fork", &["fork:1", "0"]),
        ("hang", &["hang", "0"]),
        ("busy", &["75", "69", "0"]),
    ];
    let mut settings = String::from("retry_first = \"20ms\"\nretry_most = \"200ms\"\n");
    for (name, answers) in bad {
        let timeout = if name == "hang" { scaled("400ms", "10s") } else { "60s" };
        settings += &format!("[sink.{name}]\n{}\ntimeout = \"{timeout}\"\n", outbox.command(answers));
    }
    outbox.write_settings(&settings);
    let monitors = [outbox.monitor(), outbox.monitor()];
    rounds(scaled(of(1000), bad.len()), AT_ONCE, |n| {
        let (name, answers) = bad[n % bad.len()];
        let session = format!("s{}", n % 20);
        let words = ["--session", &session, "--sink", name, "--sink", "well", "--"];
        let id = outbox.world.launch([&words[..], &[&text(&bin("exit-with")), "0"]].concat());
        assert_eq!(outbox.receipt(&id)["how"], "delivered", "{name}");
        // A sink that is gone falls to the next one.
        let most = answers.len();
        assert!(outbox.calls_of(&id).len() <= most, "{name}: {:?}", outbox.calls_of(&id));
    });
    outbox.check_order();
    for pid in outbox.said("left") {
        kill_if_there(pid.parse().unwrap()).unwrap();
    }
    drop(monitors);
}

#[test]
fn what_a_woken_agent_launches_lives_on() {
    let outbox = Outbox::new(&[]);
    let (hearback, hold) = (text(&bin("hearback")), text(&bin("hold")));
    let go = outbox.gate("go");
    for (answer, sink) in [
        (format!("launch:{hearback}|{hold}|{go}:0"), "turn = true".to_owned()),
        (
            format!("launch-hang:{hearback}|{hold}|{go}"),
            format!("turn = true\ntimeout = \"{}\"", scaled("500ms", "8s")),
        ),
    ] {
        let outbox = Outbox::with("attempts = 1", &sink, &[]);
        outbox.tell(&answer);
        let id = outbox.launch(&[], "exit-with", &["0"]);
        let job = outbox.until(&id, &["delivered", "dead_letter"]);
        assert!(!outbox.calls()[0].is_running());
        let launched = outbox.said("launched").remove(0);
        let child = outbox.world.show(&launched);
        assert_eq!((&child["state"], &child["session"]), (&json!("running"), &json!("s")), "{job}");
        outbox.tell("0");
        outbox.release("go");
        // The file that it waits for is of the first world.
        fs::write(&go, "").unwrap();
        outbox.receipt(&launched);
        assert_eq!(outbox.sent(&launched, 1)["data"]["depth"], 2);
        fs::remove_file(&go).unwrap();
    }
}

#[test]
fn a_chain_of_follow_ups_that_launch_is_bounded() {
    let outbox = Outbox::with("max_depth = 3", "", &[]);
    let (hearback, hold) = (text(&bin("hearback")), text(&bin("hold")));
    let go = outbox.gate("go");
    outbox.release("go");
    outbox.tell(&format!("launch:{hearback}|{hold}|{go}:0"));
    outbox.launch(&[], "exit-with", &["0"]);
    let said = eventually("the chain is cut", || {
        let said = outbox.said("launched");
        said.iter().any(|line| line.contains("error")).then_some(said)
    });
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[3].contains("chain"), "{said:?}");
}

/// Kills the supervisor of a job, and waits for its death.
fn forsake(outbox: &Outbox, id: &str) {
    let supervisor = outbox.world.supervisor(id);
    outbox.world.end_supervisor(id);
    eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
}

/// How many invocations of the sink ran at the same time, at most.
fn most_at_once(outbox: &Outbox) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for line in lines(&outbox.witness) {
        match line.split(' ').next() {
            Some("start") => now += 1,
            Some("end") => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[test]
fn scenario_127_follow_ups_that_no_process_has_go_out_a_few_at_a_time() {
    const AT_ONCE: usize = 8;
    let (count, gate) = (scaled(30, 12), "go");
    for of_sink in ["", "turn = true"] {
        let outbox = Outbox::with("", of_sink, &[]);
        outbox.tell(&format!("until:{}:0", outbox.gate(gate)));
        let hold = text(&bin("hold"));
        let jobs: Vec<_> = (0..count)
            .map(|n| outbox.run_as(&format!("s{n}"), &["launch", "--", &hold, &outbox.gate("never")]).ok())
            .collect();
        for id in &jobs {
            forsake(&outbox, id);
        }
        let looks = || ["list", "followups", "list"].map(|look| outbox.world.run([look]).ok());
        looks();
        outbox.called(AT_ONCE);
        looks();
        outbox.release(gate);
        for id in &jobs {
            assert_eq!(outbox.receipt(id)["how"], "delivered");
        }
        eventually("all have ended", || (outbox.said("end").len() == count).then_some(()));
        assert_eq!((outbox.calls().len(), most_at_once(&outbox)), (count, AT_ONCE), "{of_sink}");
        outbox.check_order();
        outbox.world.settle_down();
    }
}

#[test]
fn scenario_127_what_becomes_due_while_the_deliverer_sleeps_goes_out_at_once() {
    let outbox = Outbox::with("attempts = 2\nretry_first = \"1h\"", "", &["1"]);
    let gone = |session: &str| {
        let id = outbox.run_as(session, &["launch", "--", &text(&bin("hold")), &outbox.gate("never")]).ok();
        forsake(&outbox, &id);
        id
    };
    // One that is due again in an hour: the deliverer sleeps.
    let sleeping = gone("s");
    outbox.world.run(["list"]).ok();
    outbox.called(1);
    eventually("its attempt is recorded", || {
        let job = outbox.world.show(&sleeping);
        (job["follow_up"]["state"] == "pending").then_some(())
    });
    outbox.tell("0");
    let next = gone("t");
    outbox.world.run(["list"]).ok();
    assert_eq!(outbox.receipt(&next)["how"], "delivered");
    assert_eq!(outbox.calls_of(&sleeping).len(), 1, "its time has not come");
}

#[test]
fn jobs_of_one_session_that_end_at_once_are_delivered_one_turn_at_a_time() {
    let count = of(200);
    let outbox = Outbox::with("", "turn = true", &[]);
    let go = outbox.gate("go");
    let jobs: Vec<_> = (0..count).map(|_| outbox.launch(&[], "hold", &[&go])).collect();
    outbox.release("go");
    let deadline = Instant::now() + Duration::from_secs(120);
    while lines(&outbox.witness).len() < 2 * count {
        assert!(Instant::now() < deadline, "{} lines", lines(&outbox.witness).len());
        std::thread::sleep(Duration::from_millis(20));
    }
    for id in &jobs {
        assert_eq!(outbox.receipt(id)["how"], "delivered");
    }
    let told = lines(&outbox.witness);
    assert_eq!(told.len(), 2 * count, "each once");
    let turns = outbox.processes();
    assert!(turns.len() < count, "some turns tell of several: {} of {count}", turns.len());
    outbox.check_turns();
}

#[test]
fn any_number_of_monitors_sends_nothing_twice() {
    for monitors in [2, scaled(8, 4)] {
        let outbox = Outbox::with("retry_first = \"30ms\"", "", &["1", "75", "0"]);
        let _monitors: Vec<_> = (0..monitors).map(|_| outbox.monitor()).collect();
        let jobs: Vec<_> = (0..of(100).clamp(4, 40))
            .map(|n| {
                let session = format!("s{}", n % 5);
                outbox.world.launch(["--session", &session, "--", &text(&bin("exit-with")), "0"])
            })
            .collect();
        // Half of them lose their supervisor.
        for id in jobs.iter().step_by(2) {
            outbox.world.end_supervisor(id);
        }
        for id in &jobs {
            assert_eq!(outbox.receipt(id)["how"], "delivered");
            assert!(outbox.calls_of(id).len() <= 3, "{:?}", outbox.calls_of(id));
        }
        outbox.check_order();
        let calls = outbox.calls().len();
        outbox.world.run(["monitor", "run", "--once"]).ok();
        assert_eq!(outbox.calls().len(), calls);
    }
}

#[cfg(any(target_os = "linux", windows))]
mod full_disk {
    use super::*;

    /// A store on a small disk, which can be filled to the last block and name.
    struct SmallDisk {
        // Undone first, because what is mounted cannot be removed.
        _disk: hearback_tests::Mount,
        outbox: Outbox,
    }

    impl SmallDisk {
        fn new() -> SmallDisk {
            let outbox = Outbox::new(&[]);
            // The settings move onto the small disk.
            let settings = fs::read(outbox.world.home().join("config.toml")).unwrap();
            let options = "size=256k,nr_inodes=200,mode=700";
            let disk = hearback_tests::Mount::new("tmpfs", options, outbox.world.home());
            outbox.write_settings(str::from_utf8(&settings).unwrap());
            SmallDisk { outbox, _disk: disk }
        }

        fn filler(&self) -> std::path::PathBuf {
            self.outbox.world.home().join("filler")
        }

        fn fill(&self) {
            fs::create_dir(self.filler()).unwrap();
            let mut file = fs::File::create(self.filler().join("blocks")).unwrap();
            while std::io::Write::write(&mut file, &[b'x'; 4096]).is_ok_and(|written| written > 0) {}
            (0..).find(|n| fs::File::create(self.filler().join(n.to_string())).is_err()).unwrap();
        }

        fn make_room(&self) {
            fs::remove_dir_all(self.filler()).unwrap();
        }
    }

    #[test]
    fn a_full_disk_does_not_keep_the_first_attempt_back() {
        hearback_tests::with_private_mounts(|| {
            for monitors in [0, 2] {
                let disk = SmallDisk::new();
                let outbox = &disk.outbox;
                let _monitors: Vec<_> = (0..monitors).map(|_| outbox.monitor()).collect();
                let id = outbox.launch(&[], "hold", &[&outbox.gate("go"), "--code", "4"]);
                if monitors > 0 {
                    let held = outbox.world.home().join("monitor");
                    eventually("a monitor is there", || held.exists().then_some(()));
                }
                disk.fill();
                outbox.release("go");
                let sent = outbox.sent(&id, 1);
                assert_eq!(sent["data"]["job"]["outcome"], json!({"kind": "exited", "code": 4}));
                // No other process sends it again, although nothing could be recorded.
                for _ in 0..3 {
                    outbox.world.run(["list"]).ok();
                    outbox.world.run(["monitor", "run", "--once"]);
                    outbox.run_as("s", &["turn", "--", &text(&bin("exit-with")), "0"]);
                }
                // With room again, what was delivered is recorded, even if another command looks first.
                disk.make_room();
                for _ in 0..3 {
                    outbox.world.run(["monitor", "run", "--once"]);
                }
                assert_eq!(outbox.receipt(&id)["how"], "delivered");
                assert_eq!(outbox.calls().len(), 1, "{monitors} monitors");
            }
        });
    }

    #[test]
    fn what_failed_on_a_full_disk_is_tried_again_once_there_is_room() {
        hearback_tests::with_private_mounts(|| {
            let disk = SmallDisk::new();
            let outbox = &disk.outbox;
            outbox.tell("1");
            let id = outbox.launch(&[], "hold", &[&outbox.gate("go")]);
            disk.fill();
            outbox.release("go");
            outbox.called(1);
            outbox.tell("0");
            disk.make_room();
            // Its supervisor is still there; no other command looks.
            assert_eq!(outbox.receipt(&id)["how"], "delivered");
        });
    }
}

#[test]
fn a_log_that_cannot_be_read_stops_no_follow_up() {
    let outbox = Outbox::new(&[]);
    let id = outbox.launch(&[], "hold", &[&outbox.gate("go"), "--code", "3", "--print", "words"]);
    let log = outbox.world.job_dir(&id).join("output.log");
    fs::rename(&log, log.with_extension("away")).unwrap();
    fs::create_dir(&log).unwrap();
    outbox.release("go");
    let data = &outbox.sent(&id, 1)["data"];
    assert_eq!(data["job"]["outcome"], json!({"kind": "exited", "code": 3}));
    let words = data["text"].as_str().unwrap();
    assert!(words.contains("\nnote: its output cannot be read: "), "{words}");
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn a_session_that_stays_busy_is_tried_less_and_less_often() {
    let outbox = Outbox::with("retry_first = \"20ms\"", "", &["75"]);
    let id = outbox.launch(&[], "exit-with", &["0"]);
    let calls = outbox.called(7);
    let pauses: Vec<_> = calls.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    // Twice as long each time, a quarter more or less.
    assert!(pauses[5] > 8 * 20_000_000, "{pauses:?}");
    outbox.tell("0");
    assert_eq!(outbox.receipt(&id)["how"], "delivered");
}

#[test]
fn the_time_from_an_end_to_the_sink_is_short() {
    let outbox = Outbox::new(&[]);
    let mut took: Vec<_> = (0..scaled(50, 10))
        .map(|n| {
            let clock = outbox.world.scratch(format!("clock{n}"));
            let id = outbox.launch(&[], "exit-with", &["0", "--clock", &text(&clock)]);
            outbox.receipt(&id);
            let ended: u128 = lines(&clock)[0].parse().unwrap();
            let call = &outbox.calls_of(&id)[0];
            Duration::from_nanos(u64::try_from(call.at.saturating_sub(ended)).unwrap())
        })
        .collect();
    took.sort();
    let (median, most) = (took[took.len() / 2], took[took.len() - 1]);
    eprintln!("from the end of a job to its sink: median {median:?}, at most {most:?}");
    assert!(median < Duration::from_millis(scaled(500, 5000)), "{median:?}");
}
