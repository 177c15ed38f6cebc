//! Becoming the supervisor of a job.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hearback_core::JobId;
use hearback_core::port::executor::Executors;
use hearback_core::port::process::{LaunchAnswer, LauncherLink};
use hearback_monitor::Ports;
use hearback_monitor::supervise::Supervisor;
use hearback_platform::{Names, Native, StdioWire};
use hearback_store::Store;

use crate::sessions::MESSENGER_COMMAND;
use crate::sinks::{self, SINK_COMMAND};
use crate::{Hearback, Options, follow_ups, rehearsal};

static WOULD_ANSWER: AtomicBool = AtomicBool::new(false);

/// Supervises one job and ends this process, if that is what it was started for; otherwise does nothing. The parts
/// of [`Hearback::doctor`](crate::Hearback::doctor)'s trials are played here as well.
///
/// Call it first thing in `main` of a program that embeds hearback and launches jobs: the supervisor is that same
/// program, executed again.
pub fn supervise_if_asked() {
    supervise_if_asked_with(|options| options);
}

/// The same for a program that opens its store with options of its own: settings or sinks that are made in code. The
/// supervisor is another process, so it asks `complete` for them when it has something to deliver.
///
/// `complete` is given options that name the right store. It is called only in a process that was started to supervise
/// a job or to hand over messages.
pub fn supervise_if_asked_with(complete: impl FnOnce(Options) -> Options) {
    WOULD_ANSWER.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == Names::HEARBACK.supervise_command => {}
        Some(first) if first == SINK_COMMAND => {
            std::process::exit(sinks::run_builtin(&arguments.collect::<Vec<_>>()))
        }
        Some(first) if first == MESSENGER_COMMAND => std::process::exit(see_messages_through(complete)),
        Some(first) if first == rehearsal::COMMAND => std::process::exit(rehearsal::play(arguments)),
        _ => return,
    }
    let id = arguments.next().and_then(|id| JobId::parse(id.to_str()?).ok());
    // Nobody watches a supervisor's terminal: whoever started it by hand sees only this code.
    let Some(id) = id else { std::process::exit(2) };
    std::process::exit(supervise(id, complete));
}

/// The program that becomes a supervisor: the one that was chosen, else this one.
pub(crate) fn program(chosen: Option<&Path>) -> io::Result<PathBuf> {
    match chosen {
        Some(program) => Ok(program.to_owned()),
        // Executed again, a program that does not know the command would be started a second time instead.
        None if !WOULD_ANSWER.load(Ordering::Relaxed) => Err(io::Error::other(
            "this program would not supervise: call `hearback::supervise_if_asked` first thing in `main`",
        )),
        None => hearback_platform::own_program(),
    }
}

fn supervise(id: JobId, complete: impl FnOnce(Options) -> Options) -> i32 {
    // A failure is recorded, not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let native = Native::default();
    // The launcher made the store our working directory, so that no variable can lead us elsewhere.
    let mut wire = StdioWire::default();
    let store = match Store::open(native, Path::new(".")) {
        Ok(store) => store,
        Err(error) => {
            wire.answer(&LaunchAnswer::Refused { message: error.to_string() });
            return 125;
        }
    };
    let home = store.home().to_owned();
    let ports = Ports::new(store, native, native, Executors::local(native));
    // Whoever finds the job over was started to see its follow-up through.
    if !is_over(&ports, &id) {
        let meanwhile = |id: &JobId| {
            if let Ok(program) = program(None) {
                let _ = follow_ups::spawn_deliverer(&*ports.processes, program, home.clone(), id);
            }
        };
        Supervisor::new(&ports, &native, &mut wire, &meanwhile, id.clone()).run();
    }
    drop(ports);
    // Only now, because most of what it takes to deliver is never needed while a job runs.
    if let Ok(hearback) = Hearback::open(complete(Options::default().home(home)).unrestricted()) {
        let _ = hearback.see_through(&id);
    }
    0
}

/// Sees the messages of the session through that the environment names.
fn see_messages_through(complete: impl FnOnce(Options) -> Options) -> i32 {
    // The store is our working directory, as a supervisor's is.
    let opened =
        std::env::current_dir().ok().map(|home| complete(Options::default().home(home)).unrestricted());
    let hearback = opened.and_then(|options| Hearback::open(options).ok());
    match (hearback, crate::current_session()) {
        (Some(hearback), Ok(Some(session))) => i32::from(hearback.see_messages_through(&session).is_err()),
        _ => 2,
    }
}

fn is_over(ports: &Ports, id: &JobId) -> bool {
    ports.store.observe(id).ok().flatten().is_some_and(|seen| !seen.facts.end.is_absent())
}
