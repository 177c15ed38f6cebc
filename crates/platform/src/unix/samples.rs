//! Sampler: what a target uses, written into a small file while the supervisor is awake for its output anyway.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::File;
use hearback_core::{Sample, Samples};

use super::{clock, files, usage};

/// Takes samples of a target. One that cannot be taken or written is the last: the job goes on without them.
pub(crate) struct Sampler {
    target: u32,
    path: PathBuf,
    began: Duration,
    samples: Samples,
    /// Opened with the first sample, and kept open: closing it would wake those who watch the folder.
    file: Option<File>,
    has_failed: bool,
}

impl Sampler {
    pub(crate) fn new(target: u32, path: &Path) -> Self {
        let (samples, file) = (Samples::default(), None);
        Self { target, path: path.to_owned(), began: clock::awake(), samples, file, has_failed: false }
    }

    /// Takes a sample if one is due.
    pub(crate) fn look(&mut self) {
        if self.has_failed {
            return;
        }
        let at = clock::awake().saturating_sub(self.began);
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        if self.samples.is_due(at_ms) {
            self.has_failed = self.take(at_ms).is_none();
        }
    }

    fn take(&mut self, at_ms: u64) -> Option<()> {
        let used = usage::of_tree(self.target)?;
        self.samples.push(Sample { at_ms, used });
        if self.file.is_none() {
            self.file = Some(files::open_log(&self.path).ok()?);
        }
        let bytes = self.samples.to_bytes();
        let written = files::write_at(self.file.as_ref()?, &bytes, 0).ok()?;
        (written == bytes.len()).then_some(())
    }
}
