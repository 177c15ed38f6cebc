//! Writing to the input of a job, and ending it.

use std::io::{self, Read};
use std::time::Duration;

use hearback_core::port::disk::{Lock, LockMode, Wait};
use hearback_core::port::process::InputPipe;
use hearback_core::port::record::{JobLock, StoreError};
use hearback_core::{JobId, JobState, Outcome};
use tracing::debug;

use crate::Ports;

/// How much is read from the source at a time.
const CHUNK: usize = 64 * 1024;
/// How often a writer with a deadline tries to get its turn.
const TRY_EVERY: Duration = Duration::from_millis(10);

/// How to write to the input of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputOptions {
    /// Whether the input ends behind what is written.
    pub end: bool,
    /// How long to wait while the job reads nothing; by default for as long as it takes.
    pub within: Option<Duration>,
}

impl InputOptions {
    /// Ends the input behind what is written.
    #[must_use]
    pub fn end(mut self, end: bool) -> Self {
        self.end = end;
        self
    }

    /// Gives up when the job has read nothing for this long.
    #[must_use]
    pub fn within(mut self, within: Option<Duration>) -> Self {
        self.within = within;
        self
    }
}

/// Why not everything was written.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct InputError {
    /// The job.
    pub id: JobId,
    /// How many bytes the job can still read: they were handed over before.
    pub bytes: u64,
    /// Why no more were.
    #[source]
    pub why: NoInput,
}

/// Why a job gets no input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoInput {
    /// There is no such job.
    #[error("the job is gone")]
    Gone,
    /// It was launched without an input that can be written.
    #[error("the job takes no input: it was launched without `--stdin`")]
    NotTaken,
    /// It belongs to another machine, another store or a newer hearback.
    #[error("the job cannot be reached from here")]
    Elsewhere,
    /// It does not run yet.
    #[error("the job has not started")]
    NotStarted,
    /// The job has ended.
    #[error("the job has ended: {0}")]
    JobEnded(Outcome),
    /// Its input was ended before.
    #[error("the input of the job has ended")]
    InputEnded,
    /// The job has closed its input.
    #[error("the job reads no more input")]
    Unread,
    /// It has read nothing for as long as the caller wanted to wait, or another process wrote to it all that time.
    #[error("the job did not read its input in time")]
    TimedOut,
    /// What was to be written cannot be read.
    #[error("what was to be written cannot be read")]
    Source(#[source] io::Error),
    /// The system refused.
    #[error("the input of the job cannot be written")]
    Io(#[source] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes everything from `source` to the input of a job, and returns how many bytes that were.
///
/// It waits while the job does not read. What several processes write is not mixed: the second one waits for the first.
///
/// # Errors
///
/// When the job takes no input, or no more of it. What was written before that is not taken back.
pub fn write(
    ports: &Ports,
    id: &JobId,
    source: &mut dyn Read,
    options: InputOptions,
) -> Result<u64, InputError> {
    let mut bytes = 0;
    let written = write_counted(ports, id, source, options, &mut bytes);
    written.map(|()| bytes).map_err(|why| InputError { id: id.clone(), bytes, why })
}

fn write_counted(
    ports: &Ports,
    id: &JobId,
    source: &mut dyn Read,
    options: InputOptions,
    bytes: &mut u64,
) -> Result<(), NoInput> {
    check(ports, id)?;
    let _lock = turn(ports, id, options.within)?;
    let mut pipe = match ports.processes.open_input(&ports.store.input_path(id)) {
        Ok(pipe) => pipe,
        // The process that ended the input may have died before it rang the bell.
        Err(error) if error.kind() == io::ErrorKind::NotFound && options.end && is_empty(source)? => {
            return ring(ports, id);
        }
        Err(error) => return Err(refused(ports, id, error)),
    };
    copy(&mut *pipe, source, options.within, bytes).map_err(|why| match why {
        NoInput::Io(error) => refused(ports, id, error),
        why => why,
    })?;
    // Closed first: the end comes behind everything that was written.
    drop(pipe);
    if options.end {
        ports.store.end_input(id)?;
        ring(ports, id)?;
    }
    Ok(())
}

/// Has the supervisor look whether the input has ended.
fn ring(ports: &Ports, id: &JobId) -> Result<(), NoInput> {
    let heard = ports.processes.ring(&ports.store.bell_path(id)).map_err(NoInput::Io)?;
    debug!(job = %id, heard, "input ended");
    Ok(())
}

fn is_empty(source: &mut dyn Read) -> Result<bool, NoInput> {
    Ok(source.read(&mut [0]).map_err(NoInput::Source)? == 0)
}

fn copy(
    pipe: &mut dyn InputPipe,
    source: &mut dyn Read,
    within: Option<Duration>,
    bytes: &mut u64,
) -> Result<(), NoInput> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(NoInput::Source(error)),
        };
        let mut left = &buffer[..read];
        while !left.is_empty() {
            let written = pipe.write(left, within).map_err(NoInput::Io)?;
            *bytes += written as u64;
            left = &left[written..];
        }
    }
}

/// Whether the job takes input at all, and runs.
fn check(ports: &Ports, id: &JobId) -> Result<(), NoInput> {
    let seen = ports.store.observe(id)?.ok_or(NoInput::Gone)?;
    let Some(spec) = seen.facts.spec.present() else { return Err(NoInput::Gone) };
    if !spec.takes_input {
        return Err(NoInput::NotTaken);
    }
    if ports.hands_off(&seen).is_some() {
        return Err(NoInput::Elsewhere);
    }
    match seen.fold().state {
        JobState::Ended { outcome, .. } => Err(NoInput::JobEnded(outcome)),
        _ if seen.facts.target.is_absent() => Err(NoInput::NotStarted),
        _ => Ok(()),
    }
}

/// Takes the lock of the input, when the writers before this one have left.
fn turn(ports: &Ports, id: &JobId, within: Option<Duration>) -> Result<Option<Lock>, NoInput> {
    let lock = |wait| ports.store.lock(id, JobLock::Input, LockMode::Exclusive, wait);
    let Some(within) = within else { return Ok(lock(Wait::Block)?) };
    let deadline = ports.clock.awake().saturating_add(within);
    loop {
        match lock(Wait::Try)? {
            Some(lock) => return Ok(Some(lock)),
            None if ports.clock.awake() >= deadline => return Err(NoInput::TimedOut),
            None => std::thread::sleep(TRY_EVERY),
        }
    }
}

/// Why the input of a job could not be opened or written. The job may have ended meanwhile.
fn refused(ports: &Ports, id: &JobId, error: io::Error) -> NoInput {
    let why = match error.kind() {
        io::ErrorKind::NotFound => NoInput::InputEnded,
        io::ErrorKind::BrokenPipe => NoInput::Unread,
        io::ErrorKind::TimedOut => return NoInput::TimedOut,
        _ => NoInput::Io(error),
    };
    match check(ports, id) {
        Err(ended @ NoInput::JobEnded(_)) => ended,
        _ => why,
    }
}
