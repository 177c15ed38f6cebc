//! A wall clock that jumps: limits and retention count on clocks that cannot be set.
//!
//! The jump is made by a library that is preloaded, under a real supervisor and while it runs. Under Wine it is made to
//! the host.
#![cfg(any(target_os = "linux", windows))]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hearback_tests::{Ran, World, args, bin, eventually, scaled};
use serde_json::json;

/// So many seconds.
const YEAR_ON: &str = "31622400";
const YEAR_BACK: &str = "-31622400";
const NOT_AT_ALL: &str = "0";

/// A wall that can be moved for every program that is run behind it. Nothing but the wall is moved.
struct Wall {
    library: String,
    moved_by: PathBuf,
}

impl Wall {
    /// Nothing, with the reason printed, where no program can be shown another wall clock.
    #[track_caller]
    fn new(world: &World) -> Option<Wall> {
        #[cfg(windows)]
        if !hearback_tests::outside::is_there("a wall clock that moves for some programs alone") {
            return None;
        }
        let source = world.scratch("wall.c");
        fs_err::write(&source, include_str!("../../src/wall.c")).unwrap();
        let library = host_path(&world.scratch("wall.so"));
        on_host(world, "cc", &["-shared", "-fPIC", "-o", &library, &host_path(&source)]).ok();
        // Under Wine it is found through a link with a colon in its name, at which a list of libraries is split.
        let library = on_host(world, "realpath", &[&library]).ok();
        let wall = Wall { library, moved_by: world.scratch("moved-by") };
        wall.move_by(NOT_AT_ALL);
        Some(wall)
    }

    fn move_by(&self, how_far: &str) {
        // Replaced and not rewritten, so that no program reads half of it.
        let new = self.moved_by.with_extension("new");
        fs_err::write(&new, how_far).unwrap();
        fs_err::rename(new, &self.moved_by).unwrap();
    }

    /// Runs hearback, seeing this wall.
    #[track_caller]
    fn run(&self, world: &World, args: impl IntoIterator<Item = OsString>) -> Ran {
        let variables = [
            format!("LD_PRELOAD={}", self.library),
            format!("HEARBACK_TESTS_WALL={}", host_path(&self.moved_by)),
            format!("HEARBACK_HOME={}", world.home().display()),
        ];
        let wine = cfg!(windows).then(|| "wine".to_owned());
        let hearback = bin("hearback").display().to_string();
        let args = args.into_iter().map(|arg| arg.into_string().expect("words of this test are text"));
        let words: Vec<_> = variables.into_iter().chain(wine).chain([hearback]).chain(args).collect();
        on_host(world, "env", &words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn host_path(path: &Path) -> String {
    #[cfg(windows)]
    return hearback_tests::outside::unix(path);
    #[cfg(not(windows))]
    return path.display().to_string();
}

#[track_caller]
fn on_host(world: &World, program: &str, args: &[&str]) -> Ran {
    #[cfg(windows)]
    return {
        let _ = world;
        hearback_tests::outside::run(program, args)
    };
    #[cfg(not(windows))]
    return {
        let mut command = std::process::Command::new(program);
        world.settle(&mut command);
        command.args(args);
        hearback_tests::run(command)
    };
}

/// Moves the wall by a year in both directions, and each time waits until the job sees it.
fn jump(world: &World, wall: &Wall, id: &str) {
    let years = || {
        let printed = world.run(["logs", id]).ok();
        let mut years: Vec<i32> = printed.lines().filter_map(|line| line.parse().ok()).collect();
        years.dedup();
        years
    };
    let now = eventually("the year is printed", || years().first().copied());
    for (how_far, year) in [(YEAR_ON, now + 1), (YEAR_BACK, now - 1), (NOT_AT_ALL, now)] {
        wall.move_by(how_far);
        eventually("the wall has moved", || (years().last() == Some(&year)).then_some(()));
    }
}

/// A job that prints the years until there is a file, and then rests.
fn years(options: &[&str], silence: &Path) -> Vec<OsString> {
    let words = args![bin("act"), "years", silence, "rest"];
    [&["launch"], options, &["--grace", "500ms", "--"]]
        .concat()
        .iter()
        .map(OsString::from)
        .chain(words)
        .collect()
}

#[test]
fn scenario_67_a_limit_minds_no_jump_of_the_wall_clock() {
    let world = World::new();
    let Some(wall) = Wall::new(&world) else { return };
    let (began, silence) = (Instant::now(), world.scratch("silence"));
    let id = wall.run(&world, years(&["--timeout", scaled("5s", "12s")], &silence)).ok();
    jump(&world, &wall, &id);
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(silence, "").unwrap();
    assert_eq!(world.run(["wait", &id]).code, Some(124));
    let took = began.elapsed();
    let (least, most) = (scaled(5, 12), scaled(20, 60));
    assert!((least..most).contains(&took.as_secs()), "{took:?}");
    let job = world.show(&id);
    assert_eq!(job["outcome"]["kind"], "timed_out", "{job}");
    assert!((least * 1000..most * 1000).contains(&job["ran_ms"].as_u64().unwrap()), "{job}");
}

#[test]
fn scenario_111_an_idle_limit_minds_no_jump_of_the_wall_clock() {
    let world = World::new();
    let Some(wall) = Wall::new(&world) else { return };
    let silence = world.scratch("silence");
    let id = wall.run(&world, years(&["--idle-timeout", "3s", "--timeout", "none"], &silence)).ok();
    jump(&world, &wall, &id);
    assert_eq!(world.show(&id)["state"], "running");
    fs_err::write(silence, "").unwrap();
    wall.move_by(YEAR_ON);
    let began = Instant::now();
    assert_eq!(world.run(["wait", &id]).code, Some(124));
    assert!(began.elapsed() > Duration::from_millis(2500), "{:?}", began.elapsed());
    let job = world.show(&id);
    assert_eq!(job["outcome"]["kind"], "idle_timed_out", "{job}");
}

#[test]
fn scenario_42_a_jump_of_the_wall_clock_prunes_nothing() {
    let world = World::new();
    let Some(wall) = Wall::new(&world) else { return };
    let hearback = |how_far: &str, args: &[&str]| {
        wall.move_by(how_far);
        wall.run(&world, args.iter().map(OsString::from)).ok()
    };
    let exit_with = bin("exit-with").display().to_string();
    // Settled before, during and after a jump in each direction.
    let mut ids = Vec::new();
    for how_far in [NOT_AT_ALL, YEAR_ON, YEAR_BACK] {
        let id = hearback(how_far, &["launch", "--", &exit_with, "0"]);
        hearback(how_far, &["wait", &id]);
        eventually("it is settled", || (!world.home().join("jobs").join(&id).exists()).then_some(()));
        ids.push(id);
    }
    assert!(ids[2] < ids[0] && ids[0] < ids[1], "an id tells the time of its launch: {ids:?}");
    for how_far in [NOT_AT_ALL, YEAR_ON, YEAR_BACK] {
        assert_eq!(hearback(how_far, &["prune"]), "", "{how_far}");
        assert_eq!(hearback(how_far, &["prune", "--older-than", "1h"]), "", "{how_far}");
        hearback(how_far, &["reconcile"]);
        let listed = hearback(how_far, &["list", "--all", "--json"]);
        for id in &ids {
            assert!(listed.contains(id.as_str()), "{how_far}: {listed}");
        }
    }
    // Not because nothing ever is.
    let pruned = hearback(YEAR_BACK, &["prune", "--older-than", "0s"]);
    assert_eq!(pruned.lines().count(), ids.len(), "{pruned}");
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"], json!([]));
}
