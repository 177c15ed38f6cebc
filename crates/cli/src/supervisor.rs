//! Becoming the supervisor of a job.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hearback_core::JobId;
use hearback_core::port::process::{LaunchAnswer, LauncherLink};
use hearback_monitor::Ports;
use hearback_monitor::supervise::Supervisor;
use hearback_platform::{Native, SUPERVISE_COMMAND, StdioWire};
use hearback_store::Store;

static WOULD_ANSWER: AtomicBool = AtomicBool::new(false);

/// Supervises one job and ends this process, if that is what it was started for; otherwise does nothing.
///
/// Call it first thing in `main` of a program that embeds hearback and launches jobs: the supervisor is that same
/// program, executed again.
pub fn supervise_if_asked() {
    WOULD_ANSWER.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != SUPERVISE_COMMAND) {
        return;
    }
    let id = arguments.next().and_then(|id| JobId::parse(id.to_str()?).ok());
    // Nobody watches a supervisor's terminal: whoever started it by hand sees only this code.
    let Some(id) = id else { std::process::exit(2) };
    std::process::exit(supervise(id));
}

/// Whether this program, executed again, would supervise.
pub(crate) fn would_answer() -> bool {
    WOULD_ANSWER.load(Ordering::Relaxed)
}

fn supervise(id: JobId) -> i32 {
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
    let ports = Ports::new(store, native, native);
    Supervisor::new(&ports, &native, &mut wire, id).run();
    0
}
