//! What `launch` promises when it returns: the job runs, detached and clean, or it is said why not.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hearback_tests::{
    KillOnDrop, Snapshot, World, alive, args, bin, eventually, is_real_windows, killat, lines, run, scaled,
    skipped,
};
use serde_json::Value;

/// A fact of a job as it stands on disk.
#[track_caller]
fn fact(world: &World, id: &str, name: &str) -> Value {
    let path = world.job_dir(id).join(name);
    serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
}

/// The pid that a fixture wrote down when it started.
#[track_caller]
fn started(witness: &Path) -> u32 {
    let line = eventually("the fixture has started", || lines(witness).into_iter().next());
    line.strip_prefix("start ").unwrap().parse().unwrap()
}

/// The output of a job, once it has ended.
#[track_caller]
fn printed(world: &World, id: &str) -> Vec<u8> {
    world.run(["wait", id]);
    let logs = world.command(["logs", id]).output().unwrap();
    assert!(logs.status.success(), "{logs:?}");
    logs.stdout
}

#[track_caller]
fn printed_lines(world: &World, id: &str) -> Vec<String> {
    String::from_utf8(printed(world, id)).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn scenario_62_when_launch_returns_the_job_runs_and_is_recorded() {
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let id = world.launch(args!["--", bin("hold"), go, "--code", "5", "--witness", witness]);

    let job = world.show(&id);
    assert_eq!(job["id"], id.as_str());
    assert_eq!(job["state"], "running");
    assert!(job["launched_at"].is_string() && job["started_at"].is_string(), "{job}");
    for absent in ["ended_at", "outcome", "ran_ms", "usage", "survivors", "notes"] {
        assert_eq!(job.get(absent), None, "{absent} in {job}");
    }
    assert_eq!(job["pid"], started(&witness));
    let log = Path::new(job["output"]["path"].as_str().unwrap()).to_owned();
    assert_eq!((job["output"]["bytes"].as_u64(), job["output"]["dropped"].as_u64()), (Some(0), Some(0)));
    assert!(log.is_file() && log == world.home().join("logs").join(format!("{id}.log")), "{}", log.display());

    let spec = fact(&world, &id, "spec.json");
    assert_eq!((&spec["id"], &spec["format"]), (&job["id"], &job["format"]));
    assert_eq!(spec["command"], job["command"]["argv"]);
    assert_eq!(spec["command"][0], bin("hold").to_str().unwrap());
    assert!(!world.job_dir(&id).join("end.json").exists());

    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(5));
    assert_eq!(world.show(&id)["outcome"], serde_json::json!({"kind": "exited", "code": 5}));
}

#[test]
fn a_job_that_is_bound_to_the_host_says_so_to_every_reader() {
    let world = World::new();
    let go = world.scratch("go");
    let bound = world.launch(args!["--bound", "--", bin("hold"), go]);
    let free = world.launch(args!["--", bin("hold"), go]);
    assert_eq!(fact(&world, &bound, "spec.json")["bound"], true);
    assert_eq!(world.show(&bound)["bound"], true);
    assert!(world.run(["show", &bound]).ok().contains("ends with  the monitor"));
    for value in [fact(&world, &free, "spec.json"), world.show(&free).into_json()] {
        assert!(value.get("bound").is_none(), "absent means no: {value}");
    }
    fs_err::write(go, "").unwrap();
    for id in [&bound, &free] {
        assert_eq!(world.run(["wait", id]).code, Some(0));
    }
    assert_eq!(world.show(&bound)["bound"], true, "after the end as well");
}

#[test]
fn scenario_62_what_cannot_be_recorded_is_not_run() {
    let world = World::new();
    let witness = world.scratch("witness");
    fs_err::create_dir(world.home()).unwrap();
    fs_err::write(world.home().join("jobs"), "in the way").unwrap();
    let ran = world.run(args!["launch", "--", bin("exit-with"), "0", "--witness", witness]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{ran:?}");
    assert!(ran.stderr.contains("the store cannot be opened") && ran.stderr.contains("\ntip: "), "{ran:?}");
    assert!(lines(&witness).is_empty());
    assert_eq!(fs_err::read(world.home().join("jobs")).unwrap(), b"in the way");
}

#[test]
fn a_command_that_cannot_be_started_is_recorded_as_ended() {
    let world = World::new();
    let text = world.scratch("text");
    fs_err::write(&text, "no program\n").unwrap();
    let missing = world.scratch("missing");
    let tip_shell = "--shell 'TEXT'";
    let mut cases = vec![
        (args!["--", "no-such-program-here", "x"].to_vec(), 127, "not_found", "was not found", tip_shell),
        (args!["--", missing].to_vec(), 127, "not_found", "was not found", tip_shell),
        (args!["--", ""].to_vec(), 127, "not_found", "the name of the program is empty", tip_shell),
        (
            args!["--key", "a", "-C", missing, "--", bin("exit-with"), "0"].to_vec(),
            125,
            "bad_directory",
            "missing",
            "--cwd",
        ),
        (
            args!["--key", "b", "-C", text, "--", bin("exit-with"), "0"].to_vec(),
            125,
            "bad_directory",
            "text",
            "--cwd",
        ),
    ];
    if cfg!(unix) {
        let tip = "make it executable";
        let (folder, file) = (world.scratch(""), text.clone());
        cases.push((args!["--", file].to_vec(), 126, "not_executable", "is not an executable file", tip));
        cases.push((args!["--", folder].to_vec(), 126, "not_executable", "is not an executable file", tip));
    }
    for (command, code, kind, reason, tip) in cases {
        let launch = [args!["launch", "--session", "owner"].to_vec(), command].concat();
        let ran = world.run(&launch);
        assert_eq!(ran.code, Some(code), "{launch:?}: {ran:?}");
        let id = ran.stdout.trim();
        assert!(ran.stderr.starts_with(&format!("error: job `{id}` could not be started\n")), "{ran:?}");
        assert!(ran.stderr.contains(reason), "{reason}: {ran:?}");
        let told = ran.stderr.lines().last().unwrap();
        assert!(told.starts_with("tip: ") && told.contains(tip), "{ran:?}");

        let job = world.show(id);
        assert_eq!(job["state"], "failed");
        assert_eq!(job["outcome"]["kind"], "failed_to_start", "{job}");
        assert_eq!(job["outcome"]["error"]["kind"], kind, "{job}");
        assert!(job["outcome"]["error"]["message"].as_str().unwrap().contains(reason), "{job}");
        assert_eq!(job["follow_up"]["state"], "read", "the caller knows already: {job}");
        assert!((job.get("pid"), job.get("started_at")) == (None, None), "{job}");
        // Nothing is pending, so it is settled at once.
        assert!(world.job_dir(id).starts_with(world.home().join("history")));
        assert_eq!(world.run(["wait", id]).code, Some(code));
    }
    let listed = world.json(["list", "--session", "owner", "--json"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), if cfg!(unix) { 7 } else { 5 });
}

#[test]
fn a_directory_that_is_not_there_is_wrong_usage_and_nothing_is_launched() {
    let world = World::new();
    let (text, missing) = (world.scratch("text"), world.scratch("missing"));
    fs_err::write(&text, "").unwrap();
    for wrong in [&missing, &text, &text.join("below")] {
        let ran = world.run(args!["launch", "--cwd", wrong, "--", bin("exit-with"), "0"]);
        let name = wrong.to_str().unwrap();
        ran.refuses(2)
            .says(&format!("error: `{name}` is not a directory"))
            .says("\ntip: choose another directory");
    }
    assert_eq!(world.json(["list", "--json"])["jobs"], serde_json::json!([]));
    // A launch that is repeated returns its job, wherever its directory is by now.
    fs_err::create_dir(&missing).unwrap();
    let launch = args!["--key", "k", "--cwd", missing, "--", bin("exit-with"), "0"];
    let id = world.launch(&launch);
    world.run(["wait", &id]).ok();
    fs_err::remove_dir(&missing).unwrap();
    assert_eq!(world.launch(&launch), id);
}

#[test]
fn the_environment_is_the_callers_with_what_was_asked_for() {
    let world = World::new();
    let mut command =
        world.command(args!["launch", "-e", "NEW=1=2", "--unset", "GONE", "--env", "CHANGED=new"]);
    command.args(["-e", "EMPTY=", "--"]).arg(bin("show-env"));
    command.args(["HEARBACK_JOB", "HEARBACK_SUPERVISOR", "KEPT", "GONE", "CHANGED", "NEW", "EMPTY"]);
    command.env("KEPT", "as it was").env("GONE", "x").env("CHANGED", "old");
    // As seen from inside a job, or from what another supervisor started.
    command.env("HEARBACK_JOB", "0000000000000000").env("HEARBACK_SUPERVISOR", "0000000000000001");
    let id = run(command).ok();
    let mut seen = printed_lines(&world, &id);
    seen.pop();
    let job = format!("HEARBACK_JOB={id}");
    let expected = [
        &job,
        "HEARBACK_SUPERVISOR unset",
        "KEPT=as it was",
        "GONE unset",
        "CHANGED=new",
        "NEW=1=2",
        "EMPTY=",
    ];
    assert_eq!(seen, expected);
    // Values are secrets: they travel by inheritance and are stored nowhere.
    for value in [&b"1=2"[..], b"as it was"] {
        let store = Snapshot::of(world.home());
        let holding = store.holding(value);
        assert!(matches!(holding[..], [only] if only.ends_with("output.log")), "{holding:?}");
    }
    let refused = world.run(args!["launch", "-e", "=x", "--", bin("exit-with"), "0"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
}

#[test]
fn the_directory_is_the_callers_or_the_one_named_from_there() {
    let world = World::new();
    let here = world.scratch("here");
    let below = here.join("be low");
    fs_err::create_dir_all(&below).unwrap();
    for (asked, expected) in [(None, &here), (Some(Path::new("be low")), &below), (Some(&below), &below)] {
        let mut command = world.command(["launch"]);
        command.current_dir(&here).args(asked.map(|asked| args!["-C", asked]).into_iter().flatten());
        let id = run_with(command, args!["--", bin("show-env")]);
        assert_eq!(printed_lines(&world, &id), [format!("cwd={}", expected.display())], "{asked:?}");
    }
}

fn run_with(mut command: Command, args: impl IntoIterator<Item = OsString>) -> String {
    command.args(args);
    run(command).ok()
}

#[test]
fn launches_under_one_key_are_one_job() {
    let world = World::new();
    let (go, witness) = (world.scratch("go"), world.scratch("witness"));
    let launch = args!["launch", "--key", "k", "--", bin("hold"), go, "--witness", witness];
    let spawn = || world.command(&launch).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..16).map(|_| spawn()).collect();
    let ended: Vec<Output> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let id = String::from_utf8(ended[0].stdout.clone()).unwrap();
    for output in &ended {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), id);
    }
    let id = id.trim();
    started(&witness);
    assert_eq!(lines(&witness).len(), 1);
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"].as_array().unwrap().len(), 1);
    // Not even a folder is left of those that came second.
    assert_eq!(fs_err::read_dir(world.home().join("jobs")).unwrap().count(), 1);

    fs_err::write(&go, "").unwrap();
    world.run(["wait", id]).ok();
    assert_eq!(world.run(&launch).ok(), id, "it is the same job when it has ended");
    assert_eq!(lines(&witness).len(), 1);
}

#[test]
fn another_command_under_a_taken_key_is_refused_by_name() {
    let world = World::new();
    let launch = |key: &[&str], code: &str, folder: &str| {
        let mut command = world.command(["launch"]);
        command.args(key).args(["-C", folder, "--"]).arg(bin("exit-with")).arg(code);
        run(command)
    };
    let here = world.scratch("");
    let here = here.to_str().unwrap();
    let id = launch(&["--key", "k"], "0", here).ok();
    for other in [launch(&["--key", "k"], "1", here), launch(&["--key", "k"], "0", "..")] {
        assert_eq!((other.code, other.stdout.as_str()), (Some(2), ""), "{other:?}");
        assert!(other.stderr.contains(&format!("key `k` already names job `{id}`")), "{other:?}");
        assert!(other.stderr.contains("\ntip: "), "{other:?}");
    }
    // A key belongs to a session.
    assert_ne!(launch(&["--key", "k", "--session", "s"], "1", here).ok(), id);
}

/// The job runs on, and in the end its code arrives.
#[track_caller]
fn runs_on(world: &World, id: &str, go: &Path, code: i32) {
    assert_eq!(world.show(id)["state"], "running");
    fs_err::write(go, "").unwrap();
    assert_eq!(world.run(["wait", id]).code, Some(code));
}

#[test]
fn what_a_job_leaves_behind_is_ended_with_it() {
    let world = World::new();
    let witness = world.scratch("witness");
    let hold =
        args!["--", bin("act"), "spawn", bin("hold"), world.scratch("never"), "--witness", witness, ";"];
    let id = world.launch(hold.into_iter().chain(args!["until", "1", witness, "exit", "3"]));
    assert_eq!(world.run(["wait", &id]).code, Some(3));
    assert!(!alive(started(&witness)));
    nothing_is_left(&world, &id, 3);
}

#[test]
fn what_a_job_leaves_behind_is_killed_when_it_ignores_termination() {
    let world = World::new();
    let witness = world.scratch("witness");
    let tree = args![bin("tree"), "--depth", "1", "--breadth", "2", "--detach", "setsid", "--ignore-term"];
    let act =
        args!["--", bin("act"), "detach"].into_iter().chain(tree).chain(args!["--witness", witness, ";"]);
    let id = world.launch(act.chain(args!["until", "3", witness, "exit", "3"]));
    eventually("the tree has grown", || (lines(&witness).len() == 3).then_some(()));
    let grown = Instant::now();
    assert_eq!(world.run(["wait", &id]).code, Some(3));
    // They are terminated first, and have the whole grace: five seconds, less what passed before we looked.
    let waited = grown.elapsed();
    assert!(waited > Duration::from_secs(scaled(4, 2)) && waited < Duration::from_secs(20), "{waited:?}");
    for line in lines(&witness) {
        assert!(!alive(line.split(' ').next().unwrap().parse().unwrap()), "{line}");
    }
    nothing_is_left(&world, &id, 3);
}

#[track_caller]
fn nothing_is_left(world: &World, id: &str, code: u32) {
    let job = world.show(id);
    assert_eq!(job["outcome"], serde_json::json!({"kind": "exited", "code": code}));
    assert_eq!(job.get("survivors"), None, "{job}");
    #[cfg(any(target_os = "linux", windows))]
    assert_eq!(hearback_tests::carrying(&format!("HEARBACK_JOB={id}")), [0; 0]);
}

/// A job that launches another, whose id goes to a file.
fn nested(go: &Path, told: &Path) -> impl Iterator<Item = OsString> {
    let launch = args!["--", bin("act"), "run", told, bin("hearback"), "launch", "--"];
    launch.into_iter().chain(args![bin("hold"), go, "--code", "4", ";"])
}

#[test]
fn a_job_launched_from_inside_a_job_outlives_it() {
    let world = World::new();
    let (go, inner) = (world.scratch("go"), world.scratch("inner"));
    let outer = world.launch(nested(&go, &inner));
    assert_eq!(world.run(["wait", &outer]).code, Some(0));
    runs_on(&world, &lines(&inner)[0], &go, 4);
}

#[test]
fn a_job_launched_from_inside_a_job_outlives_the_death_of_its_supervisor() {
    let world = World::new();
    let (go, inner, witness) = (world.scratch("go"), world.scratch("inner"), world.scratch("witness"));
    let then = args!["witness", witness, "hold", world.scratch("never")];
    let outer = world.launch(nested(&go, &inner).chain(then));
    let left = started(&witness);
    hearback_tests::kill_hard(world.supervisor(&outer));
    assert_eq!(world.run(["wait", &outer]).code, Some(125));
    world.run(["reconcile"]).ok();
    let lost = world.show(&outer);
    assert_eq!(lost["outcome"], serde_json::json!({"kind": "lost", "reason": "supervisor_died"}));
    assert!(!alive(left), "the rest of the outer job is ended");
    runs_on(&world, &lines(&inner)[0], &go, 4);
}

#[test]
fn a_long_argument_arrives_whole() {
    let world = World::new();
    // Windows takes 32 Ki for a whole command line.
    let size = if cfg!(windows) { 30 * 1000 } else { 100 * 1024 };
    let long = "x".repeat(size);
    let id = world.launch(args!["--", bin("show-env"), "--args", long, ""]);
    assert_eq!(printed_lines(&world, &id)[1..], ["78".repeat(size), String::new()]);
    assert_eq!(world.show(&id)["command"]["argv"][2], long);
}

#[test]
fn text_that_is_not_utf_8_is_refused_and_not_mangled() {
    let world = World::new();
    let text = world.scratch("text");
    fs_err::write(&text, b"echo caf\xe9\n").unwrap();
    let mut command = world.command(["launch", "--shell", "-"]);
    command.stdin(fs_err::File::open(&text).unwrap().into_parts().0);
    let ran = run(command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{ran:?}");
    assert!(ran.stderr.contains("standard input cannot be read") && ran.stderr.contains("UTF-8"), "{ran:?}");
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"], serde_json::json!([]));
}

#[test]
fn text_and_a_program_are_not_taken_together_and_neither_is_nothing() {
    let world = World::new();
    let none: [&OsStr; 0] = [];
    for args in [
        &["--shell", "exit 0", "--", "true"][..],
        &["--shell"],
        &["--"],
        &[],
        &["--shell-program", "sh", "--", "true"],
    ] {
        let ran = world.run(["launch"].iter().chain(args));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {ran:?}");
    }
    assert_eq!(world.run(none).code, Some(2));
}

#[test]
fn a_shell_that_was_chosen_runs_the_text_and_one_that_is_not_there_is_named() {
    let world = World::new();
    let known = if cfg!(windows) { "cmd" } else { "sh" };
    let ran = world.run(["launch", "--wait", "--shell-program", known, "--shell", "exit 3"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ran = world.run(["launch", "--shell-program", "no-such-shell", "--shell", "exit 0"]);
    assert_eq!(ran.code, Some(127), "{ran:?}");
    assert!(ran.stderr.contains("`no-such-shell`"), "{ran:?}");
    let job = world.show(ran.stdout.trim());
    assert_eq!(job["command"], serde_json::json!({"shell": "exit 0", "program": "no-such-shell"}));
}

#[test]
fn a_caller_gets_back_every_descriptor_it_had_open() {
    let world = World::new();
    let (go, told) = (world.scratch("go"), world.scratch("told"));
    let (reader, writer) = io::pipe().unwrap();
    let mut caller = with_more_descriptors(&world, bin("act"));
    caller.arg("run").arg(&told).arg(bin("hearback")).args(["launch", "--"]);
    caller.arg(bin("hold")).arg(&go).args(["--code", "4", ";"]).stdin(writer);
    // Until no process holds its output any more, the job's included. It is not the output of the launch,
    // and has been inherited by it all the same.
    run(caller).ok();
    end_of_file(reader).recv_timeout(Duration::from_secs(20)).expect("no process holds the pipe");
    runs_on(&world, &lines(&told)[0], &go, 4);
}

/// A program that has its standard input open two more times, as 7 and 9. On Windows a child inherits what its parent
/// inherited, whatever becomes of its standard streams.
fn with_more_descriptors(world: &World, program: PathBuf) -> Command {
    let mut command = Command::new(if cfg!(unix) { "sh".into() } else { program.clone() });
    world.settle(&mut command);
    if cfg!(unix) {
        command.args(["-c", r#"exec 7<&0 9<&0; exec "$0" "$@""#]).arg(program);
    }
    command
}

/// Says when every process that could write into a pipe has closed it.
fn end_of_file(mut reader: io::PipeReader) -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        reader.read_to_end(&mut Vec::new()).unwrap();
        sender.send(())
    });
    receiver
}

#[test]
fn a_pipe_that_a_launch_is_part_of_ends_while_the_job_runs() {
    let world = World::new();
    let go = world.scratch("go");
    let (reader, writer) = io::pipe().unwrap();
    let mut launch = world.command(args!["launch", "--", bin("hold"), go, "--code", "4"]);
    launch.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut launcher = KillOnDrop(launch.spawn().unwrap());
    // It has our ends of the pipe.
    drop(launch);
    let mut copy = Command::new(bin("act"));
    world.settle(&mut copy);
    copy.arg("copy").stdin(reader);
    let id = run(copy).ok();
    assert!(launcher.0.wait().unwrap().success());
    runs_on(&world, &id, &go, 4);
}

#[test]
fn a_job_outlives_a_script_that_is_killed_with_everything_in_its_group() {
    let world = World::new();
    let (go, told, witness) = (world.scratch("go"), world.scratch("told"), world.scratch("witness"));
    let mut script = in_a_group(&world, bin("act"));
    script.arg("run").arg(&told).arg(bin("hearback")).args(["launch", "--"]);
    script.arg(bin("hold")).arg(&go).args(["--code", "4", ";"]);
    script.arg("spawn").arg(bin("hold")).arg(world.scratch("never")).arg("--witness").arg(&witness).arg(";");
    script.arg("hold").arg(world.scratch("never"));
    let mut script = KillOnDrop(script.spawn().unwrap());
    let other = started(&witness);
    kill_group(&mut script.0);
    script.0.wait().unwrap();
    eventually("everybody in the group is gone", || (!alive(other)).then_some(()));
    runs_on(&world, &lines(&told)[0], &go, 4);
}

/// A program whose children can be killed together with it: in a process group, or in a Job Object that may be left.
fn in_a_group(world: &World, program: PathBuf) -> Command {
    let mut command = Command::new(if cfg!(unix) { program.clone() } else { bin("confine") });
    world.settle(&mut command);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(windows)]
    command.arg("--lets-go").arg(program);
    command
}

fn kill_group(leader: &mut std::process::Child) {
    #[cfg(unix)]
    {
        use nix::sys::signal::{Signal, killpg};
        killpg(nix::unistd::Pid::from_raw(leader.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    }
    // The Job Object ends with the process that made it, and every process in it ends with the Job Object.
    #[cfg(windows)]
    leader.kill().unwrap();
}

#[test]
fn a_job_is_launched_from_a_directory_that_is_gone_into_one_that_is_named() {
    #[cfg(windows)]
    if !hearback_tests::outside::is_there("a directory that is removed while a process works in it") {
        return;
    }
    let world = World::new();
    let [gone, go, told, witness] = ["gone", "go", "told", "witness"].map(|name| world.scratch(name));
    fs_err::create_dir(&gone).unwrap();
    let mut script = Command::new(bin("act"));
    world.settle(&mut script);
    script.current_dir(&gone).arg("witness").arg(&witness).arg("hold").arg(&go);
    script.arg("run").arg(&told).arg(bin("hearback")).arg("launch").arg("-C").arg(world.scratch(""));
    script.arg("--").arg(bin("show-env")).arg(";");
    let mut script = KillOnDrop(script.spawn().unwrap());
    started(&witness);
    #[cfg(unix)]
    fs_err::remove_dir(&gone).unwrap();
    #[cfg(windows)]
    hearback_tests::outside::run("rmdir", &[&hearback_tests::outside::unix(&gone)]).ok();
    fs_err::write(&go, "").unwrap();
    assert!(script.0.wait().unwrap().success());
    let expected = world.scratch("").components().as_path().to_owned();
    assert_eq!(printed_lines(&world, &lines(&told)[0]), [format!("cwd={}", expected.display())]);
}

/// Words with whatever could be lost or changed on the way, text and no text.
fn odd_words() -> Vec<OsString> {
    args![
        "",
        " ",
        "a b",
        "\"",
        "\"quoted\"",
        "a\"b",
        "\\",
        "C:\\dir\\",
        "C:\\my dir\\",
        "a\\\"b",
        "\\\\\"",
        "a\nb\tc\x7f\x1b[31m",
        "grüße 日本 🦀",
        "%PATH%",
        "^&|<>()!",
        "'single'",
        "--",
        "-x",
        no_text(),
    ]
    .to_vec()
}

/// What the system takes for a name or an argument and is no text: bytes that are not UTF-8, or half of a pair.
fn no_text() -> OsString {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStringExt::from_vec(b"caf\xe9 \xff\xfe".to_vec());
    #[cfg(windows)]
    return std::os::windows::ffi::OsStringExt::from_wide(&[0x61, 0xd800, 0x62]);
}

/// How JSON shows what may be no text.
fn shown(text: &OsStr) -> Value {
    if let Some(text) = text.to_str() {
        return text.into();
    }
    #[cfg(unix)]
    return serde_json::json!({ "bytes": text.as_encoded_bytes() });
    #[cfg(windows)]
    return serde_json::json!({
        "wide": std::os::windows::ffi::OsStrExt::encode_wide(text).collect::<Vec<_>>()
    });
}

#[test]
fn arguments_and_values_that_are_no_text_arrive_as_they_are() {
    let world = World::new();
    let (odd, mut value) = (odd_words(), OsString::from("ODD="));
    value.push(no_text());
    let words = args!["-e", value, "--", bin("show-env"), "ODD", "--args"];
    let id = world.launch(words.into_iter().chain(odd.iter().cloned()));
    let hex = |word: &OsString| {
        word.as_encoded_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let printed = printed(&world, &id);
    let mut seen = printed.split(|byte| *byte == b'\n');
    assert_eq!(seen.next(), Some(value.as_encoded_bytes()));
    let seen: Vec<_> = seen.skip(1).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
    assert_eq!(seen[..odd.len()], odd.iter().map(hex).collect::<Vec<_>>());

    let expected: Vec<Value> = odd.iter().map(|word| shown(word)).collect();
    assert_eq!(world.show(&id)["command"]["argv"].as_array().unwrap()[3..], expected);
    assert_eq!(fact(&world, &id, "spec.json")["command"].as_array().unwrap()[3..], expected);
}

#[test]
fn a_directory_whose_name_is_no_text_is_where_the_job_runs() {
    let world = World::new();
    let odd = world.scratch(no_text());
    if let Err(error) = std::fs::create_dir(&odd) {
        assert!(cfg!(not(target_os = "linux")) && !is_real_windows(), "{error}");
        return skipped("no name can be given here that is not text");
    }
    let mut inherited = world.command(args!["launch", "--", bin("show-env")]);
    inherited.current_dir(&odd);
    let mut named = world.command(args!["launch", "-C", odd.file_name().unwrap(), "--", bin("show-env")]);
    named.current_dir(world.scratch(""));
    for command in [inherited, named] {
        let id = run(command).ok();
        let expected = [b"cwd=", odd.as_os_str().as_encoded_bytes(), b"\n"].concat();
        assert_eq!(String::from_utf8_lossy(&printed(&world, &id)), String::from_utf8_lossy(&expected));
        assert_eq!(world.show(&id)["cwd"], shown(odd.as_os_str()));
        assert_eq!(fact(&world, &id, "spec.json")["cwd"], shown(odd.as_os_str()));
    }
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn a_target_is_alone_in_its_session_and_its_supervisor_in_another() {
    let world = World::new();
    #[cfg(target_os = "linux")]
    {
        let (go, witness) = (world.scratch("go"), world.scratch("witness"));
        let id = world.launch(args!["--", bin("hold"), go, "--witness", witness]);
        let target = started(&witness);
        assert_eq!(stat(target), Stat { group: target, session: target, terminal: 0 });
        let (supervisor, here) = (stat(world.supervisor(&id)), stat(std::process::id()));
        assert_eq!(supervisor.terminal, 0);
        for (ours, theirs) in [(supervisor.session, target), (supervisor.session, here.session)] {
            assert_ne!(ours, theirs);
        }
        assert_ne!(supervisor.group, target);
        fs_err::write(&go, "").unwrap();
    }
    // A target is terminated over the console of its supervisor, which has no other processes on it.
    #[cfg(windows)]
    {
        let id = world.launch(args!["--", bin("show-env"), "--console"]);
        let told = printed_lines(&world, &id);
        let mut seen: Vec<u32> = told[1].split(' ').skip(1).map(|pid| pid.parse().unwrap()).collect();
        let target = fact(&world, &id, "target.json")["handle"]["pid"].as_u64().unwrap();
        let mut expected = [target.try_into().unwrap(), world.supervisor(&id)];
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected, "{told:?}");
    }
}

/// Where a process belongs.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    group: u32,
    session: u32,
    terminal: u32,
}

#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Stat {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name before it stands in parentheses and may contain any of them itself.
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    let field = |n: usize| rest.split(' ').nth(n).unwrap().parse().unwrap();
    Stat { group: field(2), session: field(3), terminal: field(4) }
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn a_target_has_three_descriptors_and_nothing_to_read() {
    use std::io::Write;

    let world = World::new();
    let (told, (reader, mut writer)) = (world.scratch("told"), io::pipe().unwrap());
    let mut caller = with_more_descriptors(&world, bin("act"));
    caller.arg("run").arg(&told).arg(bin("hearback")).args(["launch", "--"]);
    caller.arg(bin("show-env")).args(["--input", "--fds", ";"]).stdin(reader);
    writer.write_all(b"typed\n").unwrap();
    drop(writer);
    run(caller).ok();
    let seen = printed_lines(&world, &lines(&told)[0]);
    let [_, read, streams @ ..] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(read, "input: 0 bytes");
    // Windows does not number what is open. What a caller had open is not among it, or it would not get it back.
    if cfg!(target_os = "linux") {
        let [stdin, stdout, stderr] = streams else { panic!("{seen:?}") };
        assert_eq!(stdin, "fd 0 -> /dev/null");
        let pipe = stdout.strip_prefix("fd 1 -> ").unwrap();
        assert!(pipe.starts_with("pipe:"), "{seen:?}");
        assert_eq!(stderr, &format!("fd 2 -> {pipe}"), "both streams are one, as they were printed");
    } else {
        assert_eq!(streams, ["stderr is stdout"], "both streams are one, as they were printed");
    }
}

#[test]
#[cfg(any(all(target_os = "linux", target_env = "gnu"), windows))]
fn a_target_obeys_signals_that_its_launcher_ignored_or_blocked() {
    let world = World::new();
    #[cfg(target_os = "linux")]
    for id in linux::launched_deaf(&world) {
        let seen = printed_lines(&world, &id);
        let mask = |name: &str| {
            let hex = seen.iter().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(hex.unwrap_or_else(|| panic!("{seen:?}")).trim(), 16).unwrap()
        };
        assert_eq!(mask("SigBlk:"), 0, "{seen:?}");
        // The fixture's own runtime ignores SIGPIPE, and whatever glibc has started ignores 32 and 33, which
        // are its own and cannot be reset.
        assert_eq!(mask("SigIgn:") & !0x1_8000_1000, 0, "{seen:?}");
    }
    #[cfg(windows)]
    {
        // The leader of a group ignores Ctrl-C, and so does every process that it starts, targets among them, each of
        // which leads one. Ctrl-Break, which terminates them, cannot be ignored for another process.
        let witness = world.scratch("witness");
        let hold = args!["launch", "--grace", scaled("10s", "1s"), "--", bin("hold"), world.scratch("never")];
        let mut launch = world.command(hold.into_iter().chain(args!["--witness", witness]));
        std::os::windows::process::CommandExt::creation_flags(
            &mut launch,
            hearback_tests::CREATE_NEW_PROCESS_GROUP,
        );
        let id = run(launch).ok();
        started(&witness);
        let began = Instant::now();
        world.run(["kill", &id]).ok();
        assert_eq!(world.show(&id)["outcome"]["exit"], hearback_tests::exit_terminated());
        assert!(!is_real_windows() || began.elapsed() < Duration::from_secs(10), "it was not killed");
    }
}

/// Everything below a folder, by name.
fn folders(folder: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(folders(&path));
        }
        names.push(path.into_os_string());
    }
    names.sort();
    names
}

#[test]
fn scenario_62_a_limit_that_keeps_it_from_being_recorded_leaves_nothing() {
    let world = World::new();
    #[cfg(unix)]
    {
        world.run(["reconcile"]).ok();
        // Of no bytes, so that the launcher cannot write the spec; and of too few for the room that the supervisor
        // sets aside for the end.
        for blocks in ["0", "4"] {
            cannot_be_recorded(&world, |launch| {
                let mut command = std::process::Command::new("sh");
                world.settle(&mut command);
                command.args(["-c", r#"trap '' XFSZ; ulimit -f "$1"; shift; exec "$@""#, "sh", blocks]);
                command.arg(bin("hearback")).args(launch);
                run(command)
            });
        }
    }
    // No process has a limit on its files there, but a disk can have one.
    #[cfg(windows)]
    hearback_tests::with_private_mounts(|| {
        fs_err::create_dir(world.home()).unwrap();
        let disk = hearback_tests::Mount::new("tmpfs", "size=1m,mode=700", world.home());
        world.run(["reconcile"]).ok();
        // Of what is there, only this takes a block. None is left for the spec, or one, which is too few for that and
        // the room that the supervisor sets aside for the end.
        fs_err::write(world.home().join("block"), "x").unwrap();
        for blocks in [1, 2] {
            disk.change(&format!("size={}k", 4 * blocks));
            cannot_be_recorded(&world, |launch| world.run(launch));
        }
    });
}

/// Launches where there is too little room, and finds that nothing was run and nothing is left.
#[track_caller]
fn cannot_be_recorded(world: &World, hearback: impl FnOnce(&[OsString]) -> hearback_tests::Ran) {
    let witness = world.scratch("witness");
    let before = folders(world.home());
    let ran = hearback(&args!["launch", "--", bin("exit-with"), "0", "--witness", witness]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{ran:?}");
    assert!(ran.stderr.contains("could not be recorded, so nothing was run"), "{ran:?}");
    world.empty_trash(world.home());
    assert_eq!(folders(world.home()), before);
    assert!(lines(&witness).is_empty());
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn scenario_62_on_a_full_disk_nothing_is_run_and_nothing_is_left() {
    hearback_tests::with_private_mounts(|| {
        let world = World::new();
        let (disk, witness) = (world.scratch("disk"), world.scratch("witness"));
        fs_err::create_dir(&disk).unwrap();
        let _mount = hearback_tests::Mount::new("tmpfs", "size=64k,mode=0700", &disk);
        let hearback = |args: &[OsString]| {
            let mut command = world.command(args);
            command.env("HEARBACK_HOME", disk.join("home"));
            run(command)
        };
        hearback(&args!["reconcile"]).ok();
        let before = folders(&disk.join("home"));
        // Fails when the disk is full, and leaves it so.
        let filled = fs_err::write(disk.join("filling"), vec![0; 128 * 1024]);
        assert_eq!(filled.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
        let launch = args!["launch", "--", bin("exit-with"), "0", "--witness", witness];
        let ran = hearback(&launch);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{ran:?}");
        assert!(ran.stderr.contains("\ntip: make room"), "{ran:?}");
        assert!(lines(&witness).is_empty());
        world.empty_trash(&disk.join("home"));
        assert_eq!(folders(&disk.join("home")), before);
        fs_err::remove_file(disk.join("filling")).unwrap();
        let id = hearback(&launch).ok();
        hearback(&args!["wait", id]).ok();
        assert_eq!(lines(&witness).len(), 2);
    });
}

/// Where processes have a mask for what they make.
#[cfg(unix)]
mod unix {
    use super::*;

    use std::os::unix::fs::PermissionsExt;

    /// `sh` with a script in which `$HEARBACK` is hearback, `$HOLD` the fixture, and `$1` and so on are `args`.
    fn sh(world: &World, script: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new("sh");
        world.settle(&mut command);
        command.args(["-c", script, "sh"]).args(args);
        command.env("HEARBACK", bin("hearback")).env("HOLD", bin("hold"));
        command
    }

    // Not on Windows: nothing takes rights away from what a program makes; a folder's rights are inherited.
    #[test]
    fn the_mask_for_new_files_is_the_callers_and_the_record_is_private_all_the_same() {
        let world = World::new();
        let witness = world.scratch("witness");
        let script = r#"umask 027; exec "$HEARBACK" launch -- "$1" 0 --witness "$2""#;
        let id = run(sh(&world, script, args![bin("exit-with"), witness])).ok();
        world.run(["wait", &id]).ok();
        let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&witness), 0o640);
        assert_eq!(mode(world.home()), 0o700);
        assert_eq!(mode(&world.job_dir(&id)), 0o700);
        assert_eq!(mode(&world.job_dir(&id).join("spec.json")), 0o600);
    }
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn a_job_outlives_the_terminal_it_was_launched_from() {
    let world = World::new();
    let (go, told, witness) = (world.scratch("go"), world.scratch("told"), world.scratch("witness"));
    let mut command = std::process::Command::new(bin("act"));
    world.settle(&mut command);
    command.args(args!["run", told, bin("hearback"), "launch", "--", bin("hold"), go, "--code", "5", ";"]);
    command.args(args!["witness", witness, "hold", world.scratch("never")]);
    let terminal = hearback_tests::Terminal::run(&command);
    let foreground = started(&witness);
    let id = lines(&told).remove(0);
    let job: u32 = world.show(&id)["pid"].as_u64().unwrap().try_into().unwrap();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        assert_ne!(stat(foreground).terminal, 0);
        assert_eq!(stat(job).terminal, 0);
    }

    terminal.close();
    eventually("what was in the foreground is gone", || (!alive(foreground)).then_some(()));
    assert!(alive(job));
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(5));
}

/// Where `/proc` tells what a process was given.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux {
    use super::*;

    use nix::fcntl::OFlag;
    use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
    use nix::sys::signal::SigSet;
    use nix::sys::stat::Mode;
    use nix::sys::wait::{WaitStatus, waitpid};
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    /// Jobs that show their signals, launched by a process that ignores many and by one that blocks all.
    pub(super) fn launched_deaf(world: &World) -> [String; 2] {
        let launch = args![bin("hearback"), "launch", "--", bin("show-env"), "--signals"];
        let mut ignoring = Command::new("sh");
        world.settle(&mut ignoring);
        let script = r#"trap '' HUP INT QUIT TERM CHLD USR1; exec "$@""#;
        ignoring.args(["-c", script, "sh"]).args(&launch);
        [run(ignoring).ok(), blocking_all_signals(world, &launch)]
    }

    /// Runs a launch with every signal blocked, which the standard library would undo, and returns the job's id.
    fn blocking_all_signals(world: &World, launch: &[OsString]) -> String {
        let text = |text: &OsStr| CString::new(text.as_bytes()).unwrap();
        let told = world.scratch("told");
        let mut actions = PosixSpawnFileActions::init().unwrap();
        actions.add_open(1, &told, OFlag::O_WRONLY | OFlag::O_CREAT, Mode::S_IRWXU).unwrap();
        let mut attributes = PosixSpawnAttr::init().unwrap();
        attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK).unwrap();
        attributes.set_sigmask(&SigSet::all()).unwrap();
        let argv: Vec<_> = launch.iter().map(|arg| text(arg)).collect();
        let home = [OsStr::new("HEARBACK_HOME="), world.home().as_os_str()].map(OsStr::as_bytes).concat();
        let environment = [CString::new(home).unwrap(), CString::new("PATH=/usr/bin:/bin").unwrap()];
        let pid = posix_spawn(argv[0].as_c_str(), &actions, &attributes, &argv, &environment).unwrap();
        assert_eq!(waitpid(pid, None), Ok(WaitStatus::Exited(pid, 0)));
        lines(told).remove(0)
    }
}

fn keyed(key: &str, witness: &Path) -> [OsString; 8] {
    args!["launch", "--key", key, "--", bin("exit-with"), "0", "--witness", witness]
}

/// Kills a launch at one call after the other; each is then launched again under the same key, and `check` is given the
/// job as it ended and how often it was started.
fn killed_and_launched_again(how: &[&str], counted: &[&str], check: impl Fn(usize, &Value, usize) + Sync) {
    if !killat::is_there() {
        return;
    }
    let world = World::new();
    let last = killat::count(&world, counted, &keyed("count", &world.scratch("count")));
    // The last few are for counts that differ from run to run.
    killat::at_each(1..=last + 3, 100, |point| {
        let (key, witness) = (format!("k{point}"), world.scratch(format!("witness-{point}")));
        let launch = keyed(&key, &witness);
        let at = point.to_string();
        killat::run(&world, &[&["kill", &at], how].concat(), &launch);
        let id = world.run(&launch).ok();
        assert_eq!(world.run(&launch).ok(), id, "point {point}");
        world.run(["wait", &id]);
        let starts = lines(&witness).iter().filter(|line| line.starts_with("start")).count();
        check(point, &world.show(&id), starts);
    });
}

#[test]
fn a_launcher_killed_at_any_call_is_finished_under_its_key_and_runs_once() {
    killed_and_launched_again(&[], &[], |point, job, starts| {
        assert_eq!(job["outcome"]["code"], 0, "point {point}: {job}");
        assert_eq!(starts, 1, "point {point}: {job}");
    });
}

#[test]
fn a_launch_killed_whole_at_any_call_is_finished_under_its_key_or_known_to_be_lost() {
    killed_and_launched_again(&["--follow", "--whole"], &["--only", "all"], |point, job, starts| {
        match job["outcome"]["kind"].as_str() {
            Some("exited") => assert_eq!(starts, 1, "point {point}: {job}"),
            // It had begun: no process may begin it again.
            Some("lost") => {
                assert_eq!(job["outcome"]["reason"], "supervisor_died", "point {point}: {job}");
                assert!(starts <= 1, "point {point}: {job}");
            }
            other => panic!("point {point}: {other:?} in {job}"),
        }
    });
}

/// A launcher that is stopped, held by ptrace because only that stops it between two calls of one's choice.
// Not on Windows: ptrace.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod stopped_launcher {
    use hearback_tests::Outbox;
    use hearback_tests::killat::Held;

    use super::*;

    /// Far less than a launcher stays stopped here.
    const PROMPTLY: Duration = Duration::from_secs(15);

    fn is_locked(path: &Path) -> bool {
        fs_err::File::open(path).is_ok_and(|file| file.file().try_lock_shared().is_err())
    }

    #[test]
    fn scenario_128_a_stopped_launcher_holds_up_neither_the_follow_up_nor_the_next_launch() {
        let exits = bin("exit-with").display().to_string();
        let launch = ["launch", "--quiet", "--session", "s", "--key", "k", "--", &exits, "3"];
        let last = killat::count(&Outbox::new(&[]).world, &["--only", "launcher"], &launch);
        // From the end of the launcher back to where it still holds its lock: it waits for the answer, or has it.
        // The last few are for counts that differ from run to run.
        for call in (1..last - 8).rev() {
            let outbox = Outbox::new(&[]);
            let (world, since) = (&outbox.world, Instant::now());
            let _held = Held::new(world, &[&call.to_string()], &launch);
            let folder =
                fs_err::read_dir(world.home().join("jobs")).unwrap().next().map(|job| job.unwrap().path());
            if !folder.is_some_and(|folder| is_locked(&folder.join("launch.lock"))) {
                continue;
            }
            let id = world.only_job();
            assert_eq!(outbox.receipt(&id)["how"], "delivered", "the owner is told");
            assert_eq!(world.run(["wait", &id]).code, Some(3));
            let again = world.run(launch);
            assert_eq!(again.ok(), id);
            assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
            return;
        }
        panic!("it never holds its lock");
    }

    #[test]
    fn scenario_128_a_launcher_that_is_stopped_before_anything_runs_is_named() {
        let exits = bin("exit-with").display().to_string();
        let launch = ["launch", "--key", "k", "--", &exits, "3"];
        let world = World::new();
        world.run(["reconcile"]).ok();
        // In a store that is there, its flushes are those of the key and its folder, and then those of the spec.
        let mut held = Held::new(&world, &["3", "--flushes"], &launch);
        let (id, since) = (world.only_job(), Instant::now());
        let again = world.run(launch);
        assert_eq!(again.code, Some(125), "{again:?}");
        let named =
            format!("job `{id}`, which key `k` names, is still being launched by process {}", held.pid);
        assert!(again.stderr.contains(&named), "{named}: {again:?}");
        assert!(since.elapsed() < PROMPTLY, "{:?}", since.elapsed());
        held.let_go();
        eventually("it is launched and ends", || (world.run(["wait", &id]).code == Some(3)).then_some(()));
        assert_eq!(world.run(launch).ok(), id);
    }
}
