//! A program that runs a command in the background and looks after it: `cargo run --example embed -- PROG ARG…`.
//!
//! It waits for a while and says how the command ended. If that takes too long it leaves: the job runs on, and
//! `hearback list` shows it.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

use hearback::{Hearback, Options};

const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    // First thing: the supervisor of a job is this same program, executed again.
    hearback::supervise_if_asked();

    let hearback = Hearback::open(Options::default())?;
    let request = hearback::argv(std::env::args_os().skip(1))?;
    let id = hearback.launch(&request)?.id().clone();
    writeln!(stdout(), "job {id} runs in the background")?;

    match hearback.wait_timeout(&id, PATIENCE)? {
        Some(job) => {
            let outcome =
                job.view.outcome.map_or_else(|| "unknown".to_owned(), |outcome| outcome.to_string());
            writeln!(stdout(), "{outcome}")?;
        }
        None => writeln!(stdout(), "it still runs; look for it with `hearback show {id}`")?,
    }
    Ok(())
}
