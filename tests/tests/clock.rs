//! A wall clock that jumps: limits and retention count on clocks that nobody sets.
//!
//! The jump is made by libfaketime, under a real supervisor and while it runs.
// Not on Windows: nothing there shows a program another wall clock.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "the fixtures are ordinary programs")]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use hearback_tests::{World, bin, eventually, run};
use serde_json::json;

const YEAR_ON: &str = "+366d";
const YEAR_BACK: &str = "-366d";

/// A wall that can be moved for every program that is run behind it. Nothing but the wall is moved.
struct Wall {
    library: String,
    moved_by: PathBuf,
}

impl Wall {
    #[track_caller]
    fn new(world: &World) -> Wall {
        let told = Command::new("faketime").args(["-f", "+0", "printenv", "LD_PRELOAD"]).output();
        let told = told.expect("this test needs libfaketime: apt-get install faketime");
        let library = String::from_utf8(told.stdout).unwrap().trim().to_owned();
        let wall = Wall { library, moved_by: world.scratch("moved-by") };
        wall.move_by("+0");
        wall
    }

    fn move_by(&self, how_far: &str) {
        // Replaced and not rewritten, so that nobody reads half of it.
        let new = self.moved_by.with_extension("new");
        fs_err::write(&new, how_far).unwrap();
        fs_err::rename(new, &self.moved_by).unwrap();
    }

    /// hearback, seeing this wall.
    fn command(&self, world: &World, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = world.command(args);
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.moved_by);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    }
}

/// Moves the wall by a year in both directions, and each time waits until the job sees it.
fn jump(world: &World, wall: &Wall, id: &str) {
    let years = || {
        let printed = world.run(["logs", id]).ok();
        let mut years: Vec<i32> = printed.lines().filter_map(|line| line.parse().ok()).collect();
        years.dedup();
        years
    };
    let now = eventually("the year is told", || years().first().copied());
    for (how_far, year) in [(YEAR_ON, now + 1), (YEAR_BACK, now - 1), ("+0", now)] {
        wall.move_by(how_far);
        eventually("the wall has moved", || (years().last() == Some(&year)).then_some(()));
    }
}

/// Prints the year until there is a file; then it is silent.
const YEARS: &str = r#"until [ -e "$0" ]; do date +%Y; sleep 0.05; done; exec "$1" "$2""#;

#[test]
fn scenario_67_a_limit_minds_no_jump_of_the_wall_clock() {
    let world = World::new();
    let wall = Wall::new(&world);
    let began = Instant::now();
    let mut launch = wall.command(&world, ["launch", "--timeout", "5s", "--", "sh", "-c", YEARS]);
    launch.arg(world.scratch("never")).arg("true").arg("x");
    let id = run(launch).ok();
    jump(&world, &wall, &id);
    assert_eq!(world.show(&id)["state"], "running");
    assert_eq!(world.run(["wait", &id]).code, Some(124));
    let took = began.elapsed();
    assert!((5..20).contains(&took.as_secs()), "{took:?}");
    let job = world.show(&id);
    assert_eq!(job["outcome"]["kind"], "timed_out", "{job}");
    assert!((5_000..20_000).contains(&job["ran_ms"].as_u64().unwrap()), "{job}");
}

#[test]
fn scenario_111_an_idle_limit_minds_no_jump_of_the_wall_clock() {
    let world = World::new();
    let wall = Wall::new(&world);
    let silence = world.scratch("silence");
    let mut launch = wall.command(&world, ["launch", "--idle-timeout", "3s", "--timeout", "none", "--"]);
    launch.args(["sh", "-c", YEARS]).arg(&silence).arg(bin("hold")).arg(world.scratch("never"));
    let id = run(launch).ok();
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
    let wall = Wall::new(&world);
    let hearback = |how_far: &str, args: &[&str]| {
        wall.move_by(how_far);
        run(wall.command(&world, args)).ok()
    };
    let exit_with = bin("exit-with").display().to_string();
    // Settled before, during and after a jump in each direction.
    let mut ids = Vec::new();
    for how_far in ["+0", YEAR_ON, YEAR_BACK] {
        let id = hearback(how_far, &["launch", "--", &exit_with, "0"]);
        hearback(how_far, &["wait", &id]);
        eventually("it is settled", || (!world.home().join("jobs").join(&id).exists()).then_some(()));
        ids.push(id);
    }
    for how_far in ["+0", YEAR_ON, YEAR_BACK] {
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
