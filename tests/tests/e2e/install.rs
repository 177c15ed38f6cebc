//! A monitor that a service manager keeps running: the files, the commands for the manager, and the removal.
//! The manager is a program of ours with its name, which records the commands that it gets.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use hearback_tests::{Ran, World, bin, copy_program, lines, run};
use serde_json::{Value, json};

/// A user of their own, with a service manager that records the commands that it gets.
struct User {
    world: World,
}

impl User {
    fn new() -> User {
        let user = User { world: World::new() };
        fs::create_dir_all(user.world.scratch("bin")).unwrap();
        for manager in ["systemctl", "launchctl", "schtasks"] {
            let named = user.world.scratch("bin").join(format!("{manager}{}", env::consts::EXE_SUFFIX));
            copy_program("record", named);
        }
        user
    }

    fn settle(&self, mut command: Command) -> Command {
        let (home, path) = (self.world.scratch("home"), env::var_os("PATH").unwrap_or_default());
        let path = env::join_paths([self.world.scratch("bin")].into_iter().chain(env::split_paths(&path)));
        command.env("PATH", path.unwrap()).env("RECORD", self.world.scratch("told"));
        command.env("HOME", &home).env("USERPROFILE", &home).env("LOCALAPPDATA", home.join("local"));
        command.env("USERNAME", "you").env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command
    }

    /// `monitor install` with these arguments.
    fn command(&self, args: &[&str]) -> Command {
        self.settle(self.world.command([&["monitor", "install"], args].concat()))
    }

    fn install(&self, args: &[&str]) -> Ran {
        run(self.command(args))
    }

    fn install_json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.install(&[args, &["--json"]].concat()).ok()).unwrap()
    }

    /// The commands that the manager got since the last look.
    fn told(&self) -> Vec<Value> {
        let told = self.world.scratch("told");
        let lines = lines(&told);
        let _ = fs::remove_file(told);
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn argvs(document: &Value) -> Vec<Value> {
    document["commands"].as_array().unwrap().iter().map(|command| command["argv"].clone()).collect()
}

fn file(document: &Value) -> PathBuf {
    document["file"].as_str().unwrap().into()
}

/// The text of a file, whatever a manager wants it to be encoded in.
fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    match bytes.strip_prefix(&[0xff, 0xfe]) {
        None => String::from_utf8(bytes).unwrap(),
        Some(rest) => {
            let units: Vec<_> =
                rest.chunks(2).map(|unit| u16::from_le_bytes(unit.try_into().unwrap())).collect();
            String::from_utf16(&units).unwrap()
        }
    }
}

#[test]
fn a_monitor_is_installed_once_and_taken_away_again() {
    let user = User::new();
    let shown = user.install_json(&["--print"]);
    assert_eq!((&shown["done"], user.told().len()), (&json!(false), 0));
    assert!(!file(&shown).exists(), "showing changes nothing");
    assert_eq!(user.install(&["--print"]).ok(), shown["text"].as_str().unwrap().trim_end());

    let installed = user.install_json(&["--yes"]);
    assert_eq!(installed["done"], true);
    assert_eq!(text(&file(&installed)), shown["text"].as_str().unwrap());
    assert!(text(&file(&installed)).contains("monitor run --service"));
    assert_eq!(user.told(), argvs(&shown), "what was shown is what is done");

    let before = fs::metadata(file(&installed)).unwrap().modified().unwrap();
    let again = user.install_json(&["--yes"]);
    assert_eq!(fs::metadata(file(&installed)).unwrap().modified().unwrap(), before, "it is as it should be");
    assert_eq!(user.told(), argvs(&again));
    let restarts = |orders: &[Value]| orders.iter().any(|order| order.to_string().contains("restart"));
    assert!(!restarts(&argvs(&again)), "nothing is new, and the monitor runs on: {again}");

    let removed = user.install_json(&["--remove", "--yes"]);
    assert!(!file(&installed).exists());
    assert_eq!(user.told(), argvs(&removed));
    let nothing = user.install(&["--remove", "--yes"]);
    assert_eq!((nothing.code, user.told().len()), (Some(0), 0));
    assert!(nothing.stderr.contains("nothing is installed"), "{}", nothing.stderr);
}

#[test]
fn each_store_has_a_monitor_of_its_own_and_the_usual_one_needs_no_variable() {
    let user = User::new();
    let own = user.install_json(&["--print"]);
    let home = user.world.home().to_str().unwrap();
    assert!(own["text"].as_str().unwrap().contains("HEARBACK_HOME"), "{own}");
    assert!(own["text"].as_str().unwrap().contains(home), "{own}");
    let mut respelled = user.command(&["--print", "--json"]);
    respelled.env("HEARBACK_HOME", user.world.home().join(".").join("..").join("home"));
    let respelled: Value = serde_json::from_str(&run(respelled).ok()).unwrap();
    assert_eq!(respelled["name"], own["name"], "it is the same store");
    let mut usual = user.command(&["--print", "--json"]);
    usual.env_remove("HEARBACK_HOME");
    let usual: Value = serde_json::from_str(&run(usual).ok()).unwrap();
    assert!(!usual["text"].as_str().unwrap().contains("HEARBACK_HOME"), "{usual}");
    assert_eq!(usual["name"], "hearback-monitor");
    assert_ne!(usual["name"], own["name"]);
}

#[test]
fn without_a_yes_nothing_is_done() {
    let user = User::new();
    let unasked = user.install(&[]);
    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    assert!(unasked.stderr.contains("monitor run --service"), "it is shown: {}", unasked.stderr);
    assert!(!file(&user.install_json(&["--print"])).exists());
    assert_eq!(user.told(), Vec::<Value>::new());
}

#[test]
fn what_the_manager_did_not_do_is_named_with_its_reason() {
    let user = User::new();
    let orders = argvs(&user.install_json(&["--print"]));
    let mut install = user.command(&["--yes"]);
    install.env("RECORD_CODE", "3");
    let refused = run(install);
    assert_eq!(refused.code, Some(125), "{refused:?}");
    assert!(refused.stderr.contains("has other plans"), "its own words: {}", refused.stderr);
    assert!(refused.stderr.contains("tip:") && refused.stderr.contains("by hand"), "{}", refused.stderr);
    assert!(file(&user.install_json(&["--print"])).exists(), "what is left to do is on the screen");
    assert_eq!(user.told(), orders, "one failure is no reason not to try the next");
}

#[test]
fn what_only_this_environment_says_is_named() {
    let user = User::new();
    fs::create_dir_all(user.world.home()).unwrap();
    let mut install = user.command(&["--yes"]);
    install.env("HEARBACK_DRAIN_TIMEOUT", "5s");
    let installed = run(install);
    installed.ok();
    assert!(installed.stderr.contains("will not see HEARBACK_DRAIN_TIMEOUT"), "{}", installed.stderr);
}

#[test]
fn the_program_is_named_by_the_path_that_an_update_keeps() {
    let user = User::new();
    let name = |name: &str| user.world.scratch(format!("{name}{}", env::consts::EXE_SUFFIX));
    let (link, elsewhere) = (name("bin/hearback"), name("hear"));
    let linked = link_to_program(&link).and_then(|()| link_to_program(&elsewhere));
    if cfg!(windows)
        && let Err(error) = &linked
    {
        return hearback_tests::skipped(format_args!("no link to a program can be made here: {error}"));
    }
    linked.unwrap();
    let by_link = |program: &Path| {
        let mut command = Command::new(program);
        user.world.settle(&mut command);
        command.args(["monitor", "install", "--print"]);
        run(user.settle(command)).ok()
    };
    assert!(by_link(&bin("hearback")).contains(link.to_str().unwrap()), "the same program is on the PATH");
    assert!(by_link(&elsewhere).contains(elsewhere.to_str().unwrap()), "as it was called");
}

/// On Windows this takes a privilege, or the developer mode; Wine says that it has made one, and has not.
fn link_to_program(link: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    std::os::unix::fs::symlink(bin("hearback"), link)?;
    #[cfg(windows)]
    std::os::windows::fs::symlink_file(bin("hearback"), link)?;
    fs::metadata(link).map(drop)
}

#[cfg(any(target_os = "linux", windows))]
#[test]
fn a_person_is_asked() {
    use hearback_tests::Terminal;
    let user = User::new();
    let file = file(&user.install_json(&["--print"]));
    let answered = |answer: &str| {
        let mut terminal = Terminal::run(&user.command(&[]));
        terminal.type_line(answer);
        terminal.finish()
    };
    let declined = answered("");
    assert_eq!((declined.code, file.exists()), (Some(1), false), "{declined:?}");
    assert!(declined.stdout.contains("nothing was changed"), "{declined:?}");
    let agreed = answered("y");
    assert_eq!((agreed.code, file.exists()), (Some(0), true), "{agreed:?}");
    assert!(agreed.stdout.contains("hearback monitor install --remove"), "{agreed:?}");
}
