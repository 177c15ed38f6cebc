//! What hearback says about itself: `-v`, `HEARBACK_LOG`, `supervisor.log` and `monitor.log`.

use std::process::Stdio;

use fs_err as fs;
use hearback_core::port::disk::{Disk, LockMode, Wait};
use hearback_platform::Native;
use hearback_tests::{KillOnDrop, Outbox, World, alive, bin, eventually, lines, run};

/// What must never be in a log.
const SECRET: &str = "hunter2-in-plain-sight";

fn supervisor_log(world: &World, id: &str) -> Vec<String> {
    let path = world.job_dir(id).join("supervisor.log");
    if path.exists() { lines(path) } else { Vec::new() }
}

/// A line of a log: when, how bad, where from.
fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let time = words.next().is_some_and(|time| time.len() == 24 && time.ends_with('Z'));
    let level = words.next().is_some_and(|word| ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].contains(&word));
    time && level && words.next().is_some_and(|target| target.starts_with("hearback"))
}

#[test]
fn verbose_commands_say_what_they_do_before_or_after_the_subcommand() {
    let world = World::new();
    let program = bin("exit-with").into_os_string().into_string().unwrap();
    for args in [["-v", "launch", "--", &program, "0"], ["launch", "-v", "--", &program, "0"]] {
        let ran = world.run(args);
        let id = ran.ok();
        ran.says(&format!("info: job recorded job={id}"))
            .says(&format!("info: target started job={id} pid="));
        assert!(!ran.stderr.contains("debug:"), "{ran}");
    }
    let ran = world.run(["launch", "-vv", "--", &program, "0"]);
    ran.says("debug: starting the supervisor").ok();
    let quiet = world.run(["launch", "--", &program, "0"]);
    assert!(!quiet.stderr.contains("info:"), "{quiet}");
}

#[test]
fn the_variable_sets_the_level_of_a_command_and_what_is_no_filter_is_only_reported() {
    let world = World::new();
    let list = |filter: &str, more: &[&str]| {
        let mut command = world.command([&["launch"], more, &["--"]].concat());
        command.arg(bin("exit-with")).arg("0").env("HEARBACK_LOG", filter);
        run(command)
    };
    list("info", &[]).says("info: job recorded").ok();
    list("hearback_platform=debug", &[]).says("debug: supervisor spawned").ok();
    let off = list("off", &[]);
    assert_eq!((off.code, off.stderr.as_str()), (Some(0), ""));
    list("off", &["-v"]).says("info: job recorded").ok();
    let wrong = list("loud", &[]);
    wrong.says("warning: HEARBACK_LOG is ignored: `loud` is no log filter").ok();
    assert!(!wrong.stderr.contains("info:"), "{wrong}");
}

#[test]
fn a_supervisor_logs_what_it_is_asked_to_and_never_a_secret() {
    let world = World::new();
    let mut command = world.command(["launch", "--wait", "--env", &format!("TOKEN={SECRET}"), "--"]);
    command.arg(bin("exit-with")).args(["3", "--print", SECRET]);
    command.env("HEARBACK_LOG", "trace").env("ANOTHER_TOKEN", SECRET);
    let ran = run(command);
    ran.exits(3);
    assert!(!ran.stderr.contains(SECRET), "{ran}");
    let id = ran.stderr.split("job=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    // The folder may be on its way to history at this moment.
    let log =
        eventually("the log is found", || Some(supervisor_log(&world, id)).filter(|log| !log.is_empty()));
    assert!(log.iter().all(|line| is_line(line) && !line.contains(SECRET)), "{log:#?}");
    for said in ["target started", "target exited", "end recorded"] {
        assert!(log.iter().any(|line| line.contains(said) && line.contains(id)), "{said}: {log:#?}");
    }
    // A start that fails has an error that quotes the command.
    let mut command = world.command(["-vvv", "launch", "--", &format!("/missing/{SECRET}")]);
    command.env("HEARBACK_LOG", "trace");
    let ran = run(command);
    ran.exits(127).says("error:");
    let events = ran.stderr.lines().filter(|line| !line.starts_with("error:") && !line.contains("cause:"));
    assert!(events.clone().count() > 0 && events.clone().all(|line| !line.contains(SECRET)), "{ran}");
}

#[test]
fn a_supervisor_without_trouble_leaves_no_log_and_one_that_gives_up_says_so() {
    let outbox = Outbox::with("attempts = 2", "", &["0", "7:no luck"]);
    let fine = outbox.launch(&[], "exit-with", &["0"]);
    outbox.until(&fine, &["delivered"]);
    assert_eq!(supervisor_log(&outbox.world, &fine), [""; 0]);

    let outbox = Outbox::with("attempts = 2", "", &["7:no luck"]);
    let stuck = outbox.launch(&[], "exit-with", &["0"]);
    outbox.until(&stuck, &["dead_letter"]);
    let log = supervisor_log(&outbox.world, &stuck);
    assert!(log.iter().all(|line| is_line(line)), "{log:#?}");
    let tried = |line: &&String| line.contains(" WARN ") && line.contains("trying again");
    let given_up = |line: &&String| line.contains("ERROR") && line.contains("not delivered, given up");
    assert_eq!((log.iter().filter(tried).count(), log.iter().filter(given_up).count()), (1, 1), "{log:#?}");
    assert!(log[0].contains("sink=fixture") && log[0].contains("no luck"), "{log:#?}");
}

/// A job whose supervisor died while it ran: its follow-up is due, and no process delivers it.
fn forsaken(outbox: &Outbox) -> String {
    let id = outbox.launch(&[], "hold", &[&outbox.gate("never")]);
    let supervisor = outbox.world.supervisor(&id);
    outbox.world.end_supervisor(&id);
    eventually("the supervisor is gone", || (!alive(supervisor)).then_some(()));
    id
}

#[test]
fn a_monitor_says_what_it_found_and_delivered() {
    let outbox = Outbox::new(&["0"]);
    let id = forsaken(&outbox);
    // So that the monitor leaves it to no process of its own.
    let lock = outbox.world.home().join("monitor").join("deliver.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let of_job = outbox.world.job_dir(&id).join("deliver.lock");
    let held =
        [lock, of_job].map(|lock| Native::default().lock(&lock, LockMode::Exclusive, Wait::Try).unwrap());
    let ran = outbox.world.run(["monitor", "run", "--once", "-v"]);
    ran.ok();
    let said = ran.stderr;
    let delivered = format!("info: delivered job={id} session=s attempt=1 sink=fixture");
    assert!(said.contains(&delivered), "one look finds the loss and delivers it: {said}");
    drop(held);
    assert!(said.contains(&format!("warning: job recorded as lost job={id}")), "{said}");
    let log = lines(outbox.world.home().join("monitor").join("monitor.log"));
    assert!(log.iter().all(|line| is_line(line)), "{log:#?}");
    assert!(log.iter().any(|line| line.contains("delivered job=")), "{log:#?}");
}

#[test]
fn a_monitor_prints_for_a_journal_and_is_silent_in_a_pipe() {
    for (args, is_told) in [(&["monitor", "run", "--service"][..], true), (&["monitor", "run"], false)] {
        let outbox = Outbox::new(&["0"]);
        let printed = outbox.world.scratch("printed");
        let mut command = outbox.world.command(args);
        command.stdout(Stdio::null()).stderr(fs::File::create(&printed).unwrap().into_parts().0);
        let _monitor = KillOnDrop(command.spawn().unwrap());
        let log = outbox.world.home().join("monitor").join("monitor.log");
        let logs = |text: &str| log.exists() && lines(&log).iter().any(|line| line.contains(text));
        eventually("the monitor is the host", || logs("is the host").then_some(()));
        let id = forsaken(&outbox);
        outbox.until(&id, &["delivered"]);
        eventually("the monitor logs it", || logs(&format!("delivered job={id}")).then_some(()));
        let printed = lines(&printed);
        let told = printed.iter().any(|line| line.starts_with(&format!("info: delivered job={id}")));
        assert_eq!((told, printed.is_empty()), (is_told, !is_told), "{printed:#?}");
        outbox.world.run(["monitor", "stop", "--timeout", "0s"]).ok();
    }
}
