//! Watching a store as a port: a monitor sleeps until something changes.

use super::disk::Watch;
use super::record::StoreError;

/// Watches the parts of a store in which work appears.
///
/// A watch reports only what happens after it was made, so make it first and look at the store second.
pub trait StoreWatch: Send + Sync {
    /// Watches for jobs that are made, and that move out of the way.
    ///
    /// # Errors
    ///
    /// When the system has no more watches to give.
    fn watch_jobs(&self) -> Result<Box<dyn Watch>, StoreError>;

    /// Watches for requests to the host, and for processes that wake it.
    ///
    /// # Errors
    ///
    /// When the system has no more watches to give.
    fn watch_host(&self) -> Result<Box<dyn Watch>, StoreError>;
}
