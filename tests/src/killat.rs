//! hearback, killed at a chosen system call by the fixture `killat`, which under Wine runs on the host.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::{Chance, Ran, World, bin, is_wine, scaled};

/// Whether a process can be killed like this here. If not, says so.
pub fn is_there() -> bool {
    #[cfg(windows)]
    return crate::outside::is_there("a kill at a call of one's choice")
        && crate::outside::bin("killat").is_some();
    #[cfg(not(windows))]
    {
        if !cfg!(target_os = "linux") {
            crate::skipped("a kill at a call of one's choice takes ptrace");
        }
        cfg!(target_os = "linux")
    }
}

/// Runs `killat HOW -- hearback ARGS` in a world to its end.
///
/// Under Wine only what follows the first look at the store is counted, unless `--from` says otherwise, and of that
/// only what is written: the rest is how Wine loads a program, and what no other process can see.
///
/// # Panics
///
/// If it does not end, or where it is not there.
#[track_caller]
pub fn run(world: &World, how: &[&str], args: &[impl AsRef<OsStr>]) -> Ran {
    #[cfg(windows)]
    {
        use crate::outside;
        let text =
            |arg: &dyn AsRef<OsStr>| arg.as_ref().to_str().expect("arguments of tests are text").to_owned();
        let from = if how.contains(&"--from") { vec![] } else { vec!["--from".to_owned(), from(world, how)] };
        let mut words: Vec<String> = how.iter().map(|word| (*word).to_owned()).collect();
        words.extend(from);
        words.extend(["--writes", "--", "wine", &outside::unix(&bin("hearback"))].map(str::to_owned));
        words.extend(args.iter().map(|arg| text(arg)));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        outside::run_in(world, &outside::bin("killat").expect("asked for before"), &words)
    }
    #[cfg(not(windows))]
    {
        let mut command = std::process::Command::new(bin("killat"));
        world.settle(&mut command);
        command.args(how).arg("--").arg(bin("hearback")).args(args);
        crate::run(command)
    }
}

/// What a program of ours first names of its store, as the host spells it. A supervisor works in the store, and Wine
/// names that long before the program begins.
#[cfg(windows)]
fn from(world: &World, how: &[&str]) -> String {
    let root = world.home().parent().and_then(std::path::Path::file_name).expect("a world is in a folder");
    let begins_inside = how.iter().any(|word| ["--follow", "all", "__supervise"].contains(word));
    format!("{}/home{}", root.display(), if begins_inside { "/jobs" } else { "" })
}

/// Runs hearback to its end, and returns at how many calls it can be killed: its own, or with `--match` or
/// `--only all` those of other processes.
///
/// # Panics
///
/// If nothing was counted.
#[track_caller]
pub fn count(world: &World, how: &[&str], args: &[impl AsRef<OsStr>]) -> usize {
    let ran = run(world, &[&["count"], how].concat(), args);
    let wanted = if how.is_empty() || how == ["--only", "launcher"] { "syscalls " } else { "all " };
    let found = ran.stdout.lines().find_map(|line| line.strip_prefix(wanted)?.parse().ok());
    found.unwrap_or_else(|| panic!("no count in {ran:?}"))
}

/// At which of these calls to kill: at all of them with `HEARBACK_TEST_FULL`, else at about as many as are wanted.
/// Under Wine, where each takes seconds, it is a tenth of those, by chance.
pub fn points(calls: RangeInclusive<usize>, wanted: usize) -> Vec<usize> {
    let wanted = if crate::is_full() { usize::MAX } else { wanted.div_ceil(scaled(1, 10)) };
    let (stride, last) = (calls.clone().count().div_ceil(wanted), *calls.end());
    let mut points: Vec<_> = calls.step_by(stride).collect();
    if is_wine() && stride > 1 {
        let mut chance = Chance::new("calls");
        points.iter_mut().for_each(|point| *point = last.min(*point + chance.below(stride as u64) as usize));
    }
    points
}

/// Does something at each of these [`points`], four at a time. Returns how many they are.
///
/// # Panics
///
/// If anything is wrong at one of them.
pub fn at_each(calls: RangeInclusive<usize>, wanted: usize, kill: impl Fn(usize) + Sync) -> usize {
    let points = points(calls, wanted);
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            kill(*point);
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(worker))));
    points.len()
}

/// A process that is held at a system call until this is dropped. Then the call is made, and it runs on.
#[cfg(not(windows))]
#[derive(Debug)]
pub struct Held {
    killat: Option<crate::KillOnDrop>,
    /// The process.
    pub pid: u32,
}

#[cfg(not(windows))]
impl Held {
    /// Runs `killat stop HOW -- hearback ARGS` until a process is held.
    ///
    /// # Panics
    ///
    /// If none is.
    #[track_caller]
    pub fn new(world: &World, how: &[&str], args: &[&str]) -> Held {
        let (said, printed) = (world.scratch("killat.err"), world.scratch("killat.out"));
        let mut command = std::process::Command::new(bin("killat"));
        world.settle(&mut command);
        command.arg("stop").args(how).args(["--for", "120", "--"]).arg(bin("hearback")).args(args);
        command.stdin(std::process::Stdio::null());
        command.stderr(fs_err::File::create(&said).unwrap().into_parts().0);
        command.stdout(fs_err::File::create(&printed).unwrap().into_parts().0);
        let killat = crate::KillOnDrop(command.spawn().unwrap());
        let pid = crate::eventually("it is held", || {
            let said = fs_err::read_to_string(&said).unwrap();
            said.lines().find_map(|line| line.strip_prefix("stopped ")?.parse().ok())
        });
        Held { killat: Some(killat), pid }
    }

    /// Lets it run on.
    pub fn let_go(&mut self) {
        self.killat = None;
    }
}
