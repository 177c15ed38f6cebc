//! What surrounds a target, from before it starts: bell, stop requests, deadlines, the log.
//!
//! There is one wait for all of these. The [`Surroundings`] wait for their own sources and for those that the
//! [`Running`] target names, in one call of the operating system, so that an idle supervisor never wakes up and needs
//! no thread.

use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::executor::{RunEvent, Running};
use crate::{LogCap, Output};

/// Where the bell and the log of a job are.
#[derive(Debug, Clone, Copy)]
pub struct SurroundRequest<'a> {
    /// The bell, which is made here. Other processes ring it when they have published a request.
    pub bell: &'a Path,
    /// Where the output goes.
    pub log: &'a Path,
    /// Where the end of the output goes if the file system cannot free the middle of a file.
    pub log_tail: &'a Path,
    /// The most of the output that is kept.
    pub log_cap: Option<LogCap>,
}

/// Makes what surrounds a target.
pub trait Surround {
    /// Makes the bell, listens for stop requests, and opens the log.
    ///
    /// From here on a ring and a stop request are noticed, with a target or without. One supervisor at a time may do
    /// this for a job, and a process may have one of these at a time.
    fn surround(&self, request: &SurroundRequest<'_>) -> io::Result<Box<dyn Surroundings>>;
}

/// What happened around the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsideEvent {
    /// The system requests this process to stop, as it does when it shuts down.
    Stop,
    /// Another process rang the bell.
    Bell,
    /// The output exceeded the log cap. Reported once.
    OverCap,
}

/// Takes the output of a target. Every thread may write to it.
pub trait OutputLog: Send + Sync {
    /// Appends output, at most 64 KiB at a time.
    ///
    /// It never fails: a log that cannot be written loses output, never the job.
    fn keep(&self, bytes: &[u8]);
}

/// What surrounds a target. Its drop removes the bell, and from then on a stop request ends the process again.
pub trait Surroundings {
    /// The log, for the executor that starts the target.
    fn log(&self) -> Arc<dyn OutputLog>;

    /// When the target last had output, on the awake clock; when the log was opened, if there was none.
    fn last_output(&self) -> Duration;

    /// Completes the log as far as it was written, and returns what it holds. More may be written afterwards.
    fn finish_log(&mut self) -> Output;

    /// The next event that was not reported yet; never waits.
    fn take_event(&mut self) -> Option<OutsideEvent>;

    /// Sleeps until there may be an event, one of `sources` is ready, or `deadline`, on the awake clock, has passed.
    ///
    /// Returns the sources that are ready; none if the deadline had passed before the call.
    fn wait(&mut self, sources: &Sources<'_>, deadline: Option<Duration>) -> Option<Ready>;
}

/// Something that the operating system can wait for: the number of a descriptor on Unix, of a handle on Windows.
///
/// Only code of the platform reads the number. An executor makes sources from what it holds open.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    number: usize,
    owner: PhantomData<&'a ()>,
}

impl<'a> Source<'a> {
    /// Names what `owner` holds open for at least as long as it is borrowed.
    pub fn of<T: ?Sized>(_owner: &'a T, number: usize) -> Self {
        Self { number, owner: PhantomData }
    }

    /// The number, as the operating system knows it.
    pub fn number(self) -> usize {
        self.number
    }
}

/// What the supervisor waits for on behalf of a target.
#[derive(Debug, Clone, Default)]
pub struct Sources<'a> {
    /// Its sources, at most [`Ready::MAX`]. [`Ready`] names them by their place in this list.
    pub list: Vec<Source<'a>>,
    /// How soon the target has to be polled even if no source is ready; only for events that have no source.
    pub poll_within: Option<Duration>,
}

/// Which sources of a target are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready(u32);

impl Ready {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// The most sources that a target may have.
    pub const MAX: usize = 32;

    /// Adds the source at this place.
    #[must_use]
    pub fn with(self, place: usize) -> Self {
        Self(self.0 | u32::try_from(place).ok().and_then(|place| 1_u32.checked_shl(place)).unwrap_or(0))
    }

    /// Whether the source at this place is ready.
    pub fn contains(self, place: usize) -> bool {
        self != Self::NONE && Self::NONE.with(place).0 & self.0 != 0
    }
}

/// What happened next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// Something happened to the target.
    Target(RunEvent),
    /// Something happened around it.
    Outside(OutsideEvent),
    /// The deadline passed.
    Deadline,
}

/// Waits for the next event of a target and its surroundings, or of the surroundings alone while there is no target.
pub fn next_event(
    around: &mut dyn Surroundings,
    mut target: Option<&mut (dyn Running + 'static)>,
    deadline: Option<Duration>,
) -> Happened {
    let mut ready = Ready::NONE;
    loop {
        // An exit that was seen comes first: what comes after it did not cause it.
        if let Some(event) = target.as_mut().and_then(|target| target.poll(ready)) {
            return Happened::Target(event);
        }
        if let Some(event) = around.take_event() {
            return Happened::Outside(event);
        }
        let sources = target.as_ref().map(|target| target.sources()).unwrap_or_default();
        match around.wait(&sources, deadline) {
            Some(news) => ready = news,
            None => return Happened::Deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_names_sources_by_their_place() {
        let ready = Ready::NONE.with(0).with(31);
        assert_eq!([0, 1, 31, 32].map(|place| ready.contains(place)), [true, false, true, false]);
        assert_eq!(Ready::NONE.with(Ready::MAX), Ready::NONE);
        assert!(!Ready::NONE.contains(0));
    }
}
