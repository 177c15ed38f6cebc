//! Housekeeping: bringing records up to date, and removing what was settled long ago.

use hearback_core::port::record::StoreError;
use hearback_monitor::{prune, reconcile};

use crate::Hearback;
use crate::permissions::{Capability, Guarded};

impl Hearback {
    /// Brings every open job up to date; in a dry run, only returns what would be done.
    ///
    /// # Errors
    ///
    /// When the open jobs cannot be listed.
    pub fn reconcile(&self, dry_run: bool) -> Result<reconcile::Report, StoreError> {
        if dry_run { reconcile::plan_all(&self.ports) } else { reconcile::all(&self.ports) }
    }

    /// Removes settled jobs after retention; in a dry run, only returns what would be removed.
    ///
    /// # Errors
    ///
    /// When history cannot be listed.
    pub fn prune(
        &self,
        retention: prune::Retention,
        dry_run: bool,
    ) -> Result<prune::Report, Guarded<StoreError>> {
        self.permissions().check(Capability::Prune)?;
        if dry_run {
            let pruned = prune::plan_all(&self.ports, retention).map_err(Guarded::Failed)?;
            return Ok(prune::Report { pruned, ..prune::Report::default() });
        }
        prune::all(&self.ports, retention).map_err(Guarded::Failed)
    }
}
