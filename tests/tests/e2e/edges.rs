//! Surprises: copies of a store, odd names, callers with odd habits.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use hearback_tests::{World, alive, args, bin, copy_program, lines, run};

/// Copies a store, without the bells of its supervisors.
fn copy(from: &Path, to: &Path) {
    fs_err::create_dir(to).unwrap();
    #[cfg(unix)]
    fs_err::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for entry in fs_err::read_dir(from).unwrap() {
        let (path, into) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &into);
        } else if path.is_file() {
            fs_err::copy(&path, &into).unwrap();
        }
    }
}

#[test]
fn looking_at_a_copy_of_a_store_disturbs_no_job_of_the_original() {
    let (world, other) = (World::new(), World::new());
    let go = world.scratch("go");
    let id = world.launch(["--".into(), bin("hold"), go.clone(), "--code".into(), "4".into()]);
    copy(world.home(), other.home());
    for look in [&["list"][..], &["show", &id], &["logs", &id], &["reconcile"], &["prune"]] {
        other.run(look).ok();
    }
    let copied = other.show(&id);
    assert_eq!(copied["state"], "running", "{copied}");
    assert!(copied["notes"][0].as_str().unwrap().contains("copy"), "{copied}");
    assert_eq!(other.run(["wait", &id]).code, Some(125), "it cannot be waited for here, and the wait ends");
    fs_err::write(&go, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(4));
}

#[test]
fn a_leftover_whose_name_is_cut_inside_a_character_is_ended_too() {
    let world = World::new();
    let (sleeper, witness) = (world.scratch("программа_сон"), world.scratch("witness"));
    let sleeper = sleeper.with_extension(std::env::consts::EXE_EXTENSION);
    copy_program("hold", &sleeper);
    let hold = args!["--", bin("act"), "detach", sleeper, world.scratch("never"), "--witness", witness, ";"];
    let id = world.launch(hold.into_iter().chain(args!["until", "1", witness, "exit", "3"]));
    assert_eq!(world.run(["wait", &id]).code, Some(3));
    let pid = lines(&witness)[0].strip_prefix("start ").unwrap().parse().unwrap();
    assert!(!alive(pid), "it outlived its job");
}

#[test]
fn a_process_that_pretends_to_be_a_supervisor_is_ended_with_its_job() {
    let world = World::new();
    let witness = world.scratch("witness");
    let pretend = args!["--", bin("act"), "env", "HEARBACK_SUPERVISOR=0123456789abcdef", "detach"];
    let hold = args![bin("hold"), world.scratch("never"), "--witness", witness, ";", "until", "1", witness];
    let id = world.launch(pretend.into_iter().chain(hold));
    world.run(["wait", &id]).ok();
    let pid = lines(&witness)[0].strip_prefix("start ").unwrap().parse().unwrap();
    assert!(!alive(pid), "it outlived its job");
}

#[test]
fn prune_removes_nothing_that_is_not_ours() {
    let world = World::new();
    world.run(["reconcile"]).ok();
    let photo = world.home().join("trash").join("photos").join("a.jpg");
    fs_err::create_dir(photo.parent().unwrap()).unwrap();
    fs_err::write(&photo, "x").unwrap();
    world.run(["prune"]).ok();
    assert!(photo.exists());

    // Elsewhere it takes a privilege to make a link.
    #[cfg(unix)]
    {
        let elsewhere = world.scratch("elsewhere");
        fs_err::create_dir(&elsewhere).unwrap();
        fs_err::write(elsewhere.join("0123456789abcdef.0123456789abcdef"), "x").unwrap();
        fs_err::remove_dir_all(world.home().join("trash")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, world.home().join("trash")).unwrap();
        let refused = world.run(["prune"]);
        assert_eq!(refused.code, Some(125), "{refused:?}");
        assert_eq!(fs_err::read_dir(&elsewhere).unwrap().count(), 1);
    }
}

/// A name that is no text.
fn not_text() -> OsString {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStringExt::from_vec(b"\xff".to_vec());
    #[cfg(windows)]
    return std::os::windows::ffi::OsStringExt::from_wide(&[0xd800]);
}

#[test]
fn an_invalid_session_shows_no_jobs_of_others() {
    let world = World::new();
    world.launch(["--session".into(), "a".into(), "--".into(), bin("exit-with"), "0".into()]);
    for bad in [not_text(), "s".repeat(3000).into()] {
        for args in [&["list", "--json"][..], &["launch", "--", "true"]] {
            let mut command = world.command(args);
            command.env("HEARBACK_SESSION", &bad);
            let ran = run(command);
            assert_eq!(ran.code, Some(2), "{ran:?}");
            let told = if args.contains(&"--json") { &ran.stdout } else { &ran.stderr };
            assert!(told.contains("HEARBACK_SESSION") && !ran.stdout.contains("jobs"), "{ran:?}");
        }
    }
}

// Not on Windows: no caller decides there how the end of a process is reported; every process with a handle sees it.
#[cfg(unix)]
#[test]
fn a_caller_that_does_not_wait_for_children_can_launch() {
    let world = World::new();
    // bash leaves it ignored for what it executes; not every shell does.
    let mut command = Command::new("bash");
    world.settle(&mut command);
    command.arg("-c").arg("trap '' CHLD; exec \"$@\"").arg("bash").arg(bin("hearback"));
    command.args(["launch", "--"]).arg(bin("exit-with")).arg("5");
    let id = run(command).ok();
    assert_eq!(world.run(["wait", &id]).code, Some(5));
}

#[test]
fn output_that_could_not_be_kept_is_reported_as_lost() {
    let world = World::new();
    let Some((mut launch, _room)) = with_little_room(&world) else { return };
    launch.args(["launch", "--"]).arg(bin("print")).args(["--bytes", "100000"]);
    let id = run(launch).ok();
    let told = world.run(["wait", &id]).ok();
    assert!(told.contains(" dropped"), "{told}");
    assert!(world.run(["show", &id]).ok().contains(" dropped"));
    let logs = world.run(["logs", &id]).ok();
    let end = &logs[logs.len().saturating_sub(200)..];
    assert!(end.ends_with(" bytes lost here, they could not be written]"), "{end}");
    let logs = world.json(["logs", &id, "--json"]);
    let job = world.show(&id);
    assert_eq!(logs["bytes"], 100_000);
    assert_eq!(logs["dropped"], job["output"]["dropped"]);
}

/// hearback where a log soon has no more room: files have at most 8 blocks of 512 bytes.
#[cfg(unix)]
fn with_little_room(world: &World) -> Option<(Command, ())> {
    let mut command = Command::new("sh");
    world.settle(&mut command);
    command.arg("-c").arg("ulimit -f 8; exec \"$@\"").arg("sh").arg(bin("hearback"));
    Some((command, ()))
}

/// Windows has no such limit, but a store can be on a small disk.
#[cfg(windows)]
fn with_little_room(world: &World) -> Option<(Command, hearback_tests::Mount)> {
    let mut room = None;
    hearback_tests::with_private_mounts(|| {
        fs_err::create_dir(world.home()).unwrap();
        room = Some(hearback_tests::Mount::new("tmpfs", "size=96k,mode=0700", world.home()));
    });
    Some((world.command([""; 0]), room?))
}

#[test]
fn a_relative_home_is_refused_because_it_names_another_store_in_each_directory() {
    let world = World::new();
    let here = world.home().parent().unwrap();
    let relative = world.home().file_name().unwrap();
    for words in [&["list"][..], &["launch", "--", "x"], &["settings"], &["monitor", "run", "--once"]] {
        let mut command = world.command(words);
        command.current_dir(here).env("HEARBACK_HOME", relative);
        let ran = run(command);
        assert_eq!(ran.code, Some(2), "{words:?}: {ran}");
        assert!(ran.stderr.contains("which is not an absolute path\ntip: "), "{words:?}: {ran}");
    }
    let mut doctor = world.command(["doctor"]);
    doctor.current_dir(here).env("HEARBACK_HOME", relative);
    let ran = run(doctor);
    assert!(ran.stdout.contains("HEARBACK_HOME has to be an absolute path"), "{ran}");
    assert!(!world.home().exists(), "nothing is made");
}
