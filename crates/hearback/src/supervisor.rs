//! Becoming the supervisor of a job.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use hearback_core::JobId;
use hearback_core::port::executor::Executors;
use hearback_core::port::process::{LaunchAnswer, LauncherLink};
use hearback_monitor::Ports;
use hearback_monitor::supervise::{Supervised, Supervisor};
use hearback_platform::{Names, Native, StdioWire};
use hearback_store::Store;
use tracing::{error, warn};

use crate::diagnostics::{self, LevelFilter, LogOutput};
use crate::follow_ups::DELIVERER_COMMAND;
use crate::sessions::MESSENGER_COMMAND;
use crate::sinks::{self, SINK_COMMAND};
use crate::{Hearback, Options, follow_ups, rehearsal};

static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// If this process was started to supervise a job, supervises it and exits; otherwise does nothing. The launcher and
/// the job of a trial by [`Hearback::doctor`](crate::Hearback::doctor) start here as well.
///
/// Call it first thing in `main` of a program that embeds hearback and launches jobs: the supervisor is that same
/// program, executed again.
pub fn supervise_if_asked() {
    supervise_if_asked_with(|options| options);
}

/// The same for a program that opens its store with options of its own: settings or sinks that are made in code. The
/// supervisor is another process, so it calls `complete` to get them when it has something to deliver.
///
/// `complete` gets options that name the right store. It is called only in a process that was started to supervise a
/// job or to deliver messages. Such a process has hearback's own subscriber of [`tracing`] events, which writes to the
/// log of the job: `complete` must not install another.
pub fn supervise_if_asked_with(complete: impl FnOnce(Options) -> Options) {
    CAN_SUPERVISE.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == Names::HEARBACK.supervise_command => {}
        Some(first) if first == SINK_COMMAND => {
            std::process::exit(sinks::run_builtin(&arguments.collect::<Vec<_>>()))
        }
        Some(first) if first == MESSENGER_COMMAND => std::process::exit(deliver_messages(complete)),
        Some(first) if first == DELIVERER_COMMAND => std::process::exit(deliver_forsaken(complete)),
        Some(first) if first == rehearsal::COMMAND => std::process::exit(rehearsal::run(arguments)),
        _ => return,
    }
    let id = arguments.next().and_then(|id| JobId::parse(id.to_str()?).ok());
    // A supervisor has no terminal. A person who started it by hand sees only this exit code.
    let Some(id) = id else { std::process::exit(2) };
    std::process::exit(supervise(id, complete));
}

/// The program that becomes a supervisor: `chosen`, else this one.
pub(crate) fn program(chosen: Option<&Path>) -> io::Result<PathBuf> {
    match chosen {
        Some(program) => Ok(program.to_owned()),
        // A program that does not call `supervise_if_asked` would start a second time instead.
        None if !CAN_SUPERVISE.load(Ordering::Relaxed) => Err(io::Error::other(
            "this program would not supervise: call `hearback::supervise_if_asked` first thing in `main`",
        )),
        None => hearback_platform::own_program(),
    }
}

fn supervise(id: JobId, complete: impl FnOnce(Options) -> Options) -> i32 {
    // A failure is recorded, not printed.
    std::panic::set_hook(Box::new(|_| {}));
    let native = Native::default();
    // The store is the working directory of a supervisor, so that no variable can name another one.
    let mut wire = StdioWire::default();
    let store = match Store::open(native, Path::new(".")) {
        Ok(store) => store,
        Err(error) => {
            wire.answer(&LaunchAnswer::Refused { message: error.to_string() });
            return 125;
        }
    };
    let home = store.home().to_owned();
    // The job's folder is the one place where a person looks for what its supervisor has to say.
    let log = |filter| LogOutput::to_supervisor_log(store.clone(), id.clone(), filter);
    diagnostics::install_own(LevelFilter::WARN, log);
    let ports = Ports::new(store, native, native, Executors::local(native));
    // If the job has ended, this process was started to deliver its follow-up.
    let is_deliverer = has_ended(&ports, &id);
    if !is_deliverer {
        let meanwhile = |id: &JobId| {
            let sent = program(None).and_then(|program| {
                follow_ups::spawn_deliverer_of(&*ports.processes, program, home.clone(), id)
            });
            if let Err(error) = sent {
                warn!(job = %id, %error, "deliverer not started");
            }
        };
        let left = Supervisor::new(&ports, &native, &mut wire, &meanwhile, id.clone()).run();
        // The launcher removes the folder now. A look at its locks could keep it from that.
        if left == Supervised::Nothing {
            return 0;
        }
    }
    drop(ports);
    // Only now: a supervisor whose job runs should not hold the memory that delivering needs.
    match Hearback::open(complete(Options::default().home(home)).unrestricted()) {
        Ok(hearback) => {
            if let Err(error) = hearback.deliver_until_settled(&id) {
                warn!(job = %id, %error, "follow-up not delivered");
            }
            // Last, because it may have to wait for the launcher.
            if !is_deliverer {
                hearback_monitor::supervise::retire(&hearback.ports, &id);
            }
        }
        Err(error) => error!(job = %id, %error, "store cannot be opened to deliver"),
    }
    0
}

/// Delivers the follow-ups that no other process delivers.
fn deliver_forsaken(complete: impl FnOnce(Options) -> Options) -> i32 {
    // The store is the working directory, as for a supervisor.
    let opened =
        std::env::current_dir().ok().map(|home| complete(Options::default().home(home)).unrestricted());
    let Some(hearback) = opened.and_then(|options| Hearback::open(options).ok()) else { return 2 };
    diagnostics::install_own(LevelFilter::WARN, |filter| LogOutput::monitor_log(&hearback, filter));
    match hearback.deliver_forsaken() {
        Ok(()) => 0,
        Err(error) => {
            warn!(%error, "follow-ups not delivered");
            125
        }
    }
}

/// Delivers the messages of the session that the environment names.
fn deliver_messages(complete: impl FnOnce(Options) -> Options) -> i32 {
    // The store is the working directory, as for a supervisor.
    let opened =
        std::env::current_dir().ok().map(|home| complete(Options::default().home(home)).unrestricted());
    let hearback = opened.and_then(|options| Hearback::open(options).ok());
    let (Some(hearback), Ok(Some(session))) = (hearback, crate::current_session()) else { return 2 };
    diagnostics::install_own(LevelFilter::WARN, |filter| LogOutput::monitor_log(&hearback, filter));
    match hearback.deliver_messages(&session) {
        Ok(()) => 0,
        Err(error) => {
            warn!(%session, %error, "messages not delivered");
            1
        }
    }
}

fn has_ended(ports: &Ports, id: &JobId) -> bool {
    ports.store.observe(id).ok().flatten().is_some_and(|seen| !seen.facts.end.is_absent())
}
