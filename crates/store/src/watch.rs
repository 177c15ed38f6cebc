//! [`Store`] as a [`StoreWatch`]: it hears of changes by events of its folders, and by looking where there are none.

mod events;
mod looks;

use std::io;
use std::time::Duration;

use hearback_core::JobId;
use hearback_core::port::disk::{Disk, Watch};
use hearback_core::port::record::StoreError;
use hearback_core::port::watch::{Changes, StoreChanges, StoreWatch};

use self::events::Events;
use self::looks::Looks;
use crate::Store;

impl<D: Disk + Clone + 'static> StoreWatch for Store<D> {
    fn watch_all(&self) -> Result<Box<dyn StoreChanges>, StoreError> {
        for folder in [self.layout.jobs(), self.layout.sessions(), self.layout.monitor()] {
            match self.make_folders(&folder) {
                // Reading needs no writable disk: what is there can be watched.
                Err(error) if error.is_unwritable() => {}
                made => made?,
            }
        }
        Ok(Box::new(AllChanges::new(self.clone())))
    }

    fn watch_host(&self) -> Result<Box<dyn Watch>, StoreError> {
        let folder = self.layout.monitor();
        self.make_folders(&folder)?;
        Ok(self.disk().watch(&folder)?)
    }
}

/// Hears of everything that happens in a store.
struct AllChanges<D> {
    store: Store<D>,
    source: Source,
    problem: Option<io::Error>,
}

/// How it hears.
enum Source {
    /// The system reports events.
    Events(Events),
    /// It reports none, or has none to give now.
    Looks(Looks),
}

impl<D: Disk> AllChanges<D> {
    fn new(store: Store<D>) -> Self {
        match Events::new(&store) {
            Ok(events) => Self { store, source: Source::Events(events), problem: None },
            Err(error) => {
                let is_for_ever = error.kind() == io::ErrorKind::Unsupported;
                let source = Source::Looks(Looks::new(&store, is_for_ever));
                Self { store, source, problem: (!is_for_ever).then_some(error) }
            }
        }
    }
}

impl<D: Disk> StoreChanges for AllChanges<D> {
    fn wait(&mut self, within: Duration) -> Changes {
        match &mut self.source {
            Source::Events(events) => match events.wait(&self.store, within) {
                Ok(changes) => return changes,
                Err(error) => {
                    self.problem = Some(error);
                    self.source = Source::Looks(Looks::new(&self.store, false));
                }
            },
            Source::Looks(looks) => {
                let changes = looks.wait(&self.store, within);
                if !looks.is_time_to_try_events() {
                    return changes;
                }
                match Events::new(&self.store) {
                    Ok(events) => self.source = Source::Events(events),
                    Err(_) => return changes,
                }
            }
        }
        // What happened between the two is not known.
        Changes::everything()
    }

    fn watch_output(&mut self, id: &JobId) {
        match &mut self.source {
            Source::Events(events) => events.add_output(&self.store, id),
            Source::Looks(looks) => looks.add_output(&self.store, id),
        }
    }

    fn problem(&mut self) -> Option<io::Error> {
        self.problem.take()
    }
}
