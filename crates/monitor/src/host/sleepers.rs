//! What threads of a monitor sleep for: ends of jobs, attempts of other processes, launches.

use std::collections::HashSet;

use hearback_core::JobId;

/// What threads sleep for, so that there is one for each.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// Jobs whose end, or whose attempt by another process, is awaited.
    jobs: HashSet<JobId>,
    /// Folders that are no jobs yet.
    launches: HashSet<JobId>,
}

impl Sleepers {
    /// Takes note that a job is awaited from now on; tells whether it was not yet.
    pub(super) fn begin(&mut self, id: &JobId) -> bool {
        self.jobs.insert(id.clone())
    }

    /// Takes note that a job is no longer awaited.
    pub(super) fn end(&mut self, id: &JobId) {
        self.jobs.remove(id);
    }

    /// Takes note of all folders that are no jobs yet; tells which of them are not awaited yet. A folder that stays
    /// as it is, because its launcher died, is awaited once.
    pub(super) fn launches(&mut self, blank: Vec<JobId>) -> Vec<JobId> {
        let fresh = blank.iter().filter(|id| !self.launches.contains(*id)).cloned().collect();
        self.launches = blank.into_iter().collect();
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::testing::sample;

    #[test]
    fn a_launch_is_awaited_once_for_as_long_as_its_folder_is_blank() {
        let mut sleepers = Sleepers::default();
        let [a, b] = [1, 2].map(sample::id);
        assert_eq!(sleepers.launches(vec![a.clone()]), std::slice::from_ref(&a));
        assert_eq!(sleepers.launches(vec![a.clone(), b.clone()]), [b]);
        assert_eq!(sleepers.launches(Vec::new()), []);
        assert_eq!(sleepers.launches(vec![a.clone()]), [a]);
    }
}
