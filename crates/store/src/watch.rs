//! [`Store`] as a [`StoreWatch`]: it watches the folders in which new work appears.

use hearback_core::port::disk::{Disk, Watch};
use hearback_core::port::record::StoreError;
use hearback_core::port::watch::StoreWatch;

use crate::Store;

impl<D: Disk> StoreWatch for Store<D> {
    fn watch_jobs(&self) -> Result<Box<dyn Watch>, StoreError> {
        Ok(self.disk().watch(&self.layout.jobs())?)
    }

    fn watch_host(&self) -> Result<Box<dyn Watch>, StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        Ok(self.disk().watch(&folder)?)
    }
}
