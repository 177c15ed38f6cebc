//! A launcher that is started to be struck: not tried here yet, because a job cannot be asked to end without a bell.

use std::io;
use std::time::Duration;

use hearback_core::finding::Tried;

use crate::probe::RehearsalRequest;

/// There is none.
pub(crate) enum Rehearsal {}

impl Rehearsal {
    pub(crate) fn begin(_request: &RehearsalRequest) -> Tried<Self> {
        Tried::untried("it is not tried on Windows yet")
    }

    pub(crate) fn hear(&mut self, _within: Duration) -> io::Result<String> {
        match *self {}
    }

    pub(crate) fn strike(&mut self, _within: Duration) -> io::Result<()> {
        match *self {}
    }
}
