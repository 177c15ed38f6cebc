//! Jobs that are sums, in a store that is memory: `hearback-monitor` supervises, reconciles and prunes them.
//!
//! Store and executor are of this project; the processes, the clock and what surrounds a target are the machine's.
//! Every step asserts what it did, so that running this is a test.

mod memory;
mod sums;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use hearback_core::port::clock::Clock;
use hearback_core::port::executor::Executors;
use hearback_core::port::process::{LaunchAnswer, LaunchSignal, LauncherLink, ProcessControl};
use hearback_core::port::record::{FactStore, Housekeeping, JobFiles};
use hearback_core::testing::suite;
use hearback_core::{
    Begin, BegunBy, CommandLine, Durability, Fact, JobId, Limits, LostReason, Outcome, Place, Spec,
};
use hearback_monitor::Ports;
use hearback_monitor::prune::{self, Retention};
use hearback_monitor::reconcile::{self, Step};
use hearback_monitor::supervise::Supervisor;
use hearback_platform::{Names, Native};
use memory::Memory;
use sums::Sums;

/// Our own names: processes of hearback are none of ours, and ours are none of hearback's.
const NAMES: Names = Names {
    job: "REUSE_MONITOR_JOB",
    bounded_run: "REUSE_MONITOR_RUN",
    supervisor: "REUSE_MONITOR_SUPERVISOR",
    answer: "REUSE_MONITOR_ANSWER",
    owner: "REUSE_MONITOR_OWNER",
    supervise_command: "supervise",
};

struct World {
    store: Memory,
    sums: Sums,
    native: Native,
    ports: Ports,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("reuse-monitor-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    suite::jobs(&Memory::in_folder(&folder));

    let (store, sums, native) = (Memory::in_folder(&folder), Sums::default(), Native::with_names(NAMES));
    let ports = Ports::of_jobs(store.clone(), native, native, Executors::local(sums.clone()));
    let world = World { store, sums, native, ports };
    a_job_is_supervised(&world, &folder)?;
    a_limit_ends_a_job(&world)?;
    a_lost_job_is_reconciled(&world)?;
    settled_jobs_are_pruned(&world)?;
    std::fs::remove_dir_all(folder)?;
    println!("reuse-monitor: all as promised");
    Ok(())
}

/// Records a job, as a launcher would.
fn record(world: &World, words: &[&str], limits: Limits) -> Result<JobId, Box<dyn Error>> {
    let now = world.native.wall();
    let id = world.store.create(now)?;
    let command = CommandLine::Argv(words.iter().copied().map(Into::into).collect());
    let spec = Spec { limits, ..Spec::new(id.clone(), command, "/".into(), now) };
    let _ = world.store.publish(&id, &Fact::Spec(Box::new(spec)), Durability::Process)?;
    Ok(id)
}

/// A launcher in the same process: the job may start at once, and the answer is kept.
#[derive(Default)]
struct Launcher(Option<LaunchAnswer>);

impl LauncherLink for Launcher {
    fn word(&mut self) -> LaunchSignal {
        LaunchSignal::Durable
    }

    fn answer(&mut self, answer: &LaunchAnswer) {
        self.0 = Some(answer.clone());
    }
}

/// Supervises a job to its end, and returns the outcome that is recorded.
fn supervise(world: &World, id: &JobId) -> Result<Outcome, Box<dyn Error>> {
    let mut launcher = Launcher::default();
    let _ = Supervisor::new(&world.ports, &world.native, &mut launcher, &|_| (), id.clone()).run();
    assert!(matches!(launcher.0, Some(LaunchAnswer::Started { .. })), "{:?}", launcher.0);
    let seen = world.store.observe(id)?.ok_or("the job is gone")?;
    assert_eq!(seen.place, Place::History, "it has ended, and nothing is pending");
    Ok(seen.facts.end.present().ok_or("there is no end")?.outcome.clone())
}

fn a_job_is_supervised(world: &World, folder: &Path) -> Result<(), Box<dyn Error>> {
    let id = record(world, &["add", "19", "23"], Limits::default())?;
    assert_eq!(supervise(world, &id)?, Outcome::Exited { code: 42 });
    assert_eq!(std::fs::read_to_string(folder.join(id.as_str()))?, "42\n", "its output is kept");
    Ok(())
}

fn a_limit_ends_a_job(world: &World) -> Result<(), Box<dyn Error>> {
    let limits = Limits { timeout_ms: Some(50), ..Limits::default() };
    let id = record(world, &["count"], limits)?;
    assert!(matches!(supervise(world, &id)?, Outcome::TimedOut { limit_ms: 50, .. }));
    Ok(())
}

/// Begun, without an end, and its supervisor is not alive: the lock is free, and no process has its identity.
fn a_lost_job_is_reconciled(world: &World) -> Result<(), Box<dyn Error>> {
    let id = record(world, &["count"], Limits::default())?;
    let mut gone = world.native.me()?;
    gone.started += 1;
    let begin = Begin::new(BegunBy::Supervisor(gone), world.native.wall());
    let _ = world.store.publish(&id, &Fact::Begin(begin), Durability::Process)?;

    let report = reconcile::all(&world.ports)?;
    assert!(report.failed.is_empty(), "{report:?}");
    let steps: Vec<_> = report.steps.into_iter().map(|(_, step)| step).collect();
    assert_eq!(steps, [Step::Lose(LostReason::SupervisorDied), Step::Settle, Step::Archive]);
    assert_eq!(world.sums.swept(), [id.clone()], "what was left of it is ended first");
    let seen = world.store.observe(&id)?.ok_or("the job is gone")?;
    assert!(matches!(seen.facts.end.present().map(|end| &end.outcome), Some(Outcome::Lost { .. })));
    assert!(reconcile::all(&world.ports)?.steps.is_empty(), "a second time changes nothing");
    Ok(())
}

fn settled_jobs_are_pruned(world: &World) -> Result<(), Box<dyn Error>> {
    let open = record(world, &["add", "1", "1"], Limits::default())?;
    // Its launcher is at work.
    let _launching = world.store.hold_launch(&open);
    assert_eq!(world.store.past_jobs(usize::MAX)?.len(), 3);
    let mut keep_all = Retention::default();
    keep_all.max_age = Duration::from_secs(3600);
    assert!(prune::all(&world.ports, keep_all)?.pruned.is_empty());
    let mut keep_one = keep_all;
    keep_one.max_jobs = 1;
    assert_eq!(prune::all(&world.ports, keep_one)?.pruned.len(), 2);
    assert_eq!(world.store.past_jobs(usize::MAX)?.len(), 1);
    assert_eq!(world.store.open_jobs()?, [open], "what is open is never pruned");
    Ok(())
}
