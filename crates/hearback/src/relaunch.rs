//! Starting this program again: as the next monitor, or to deliver what no process delivers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hearback_core::port::process::{DetachedRequest, ProcessIdentity};
use hearback_core::port::relaunch::Relaunch;
use hearback_monitor::Ports;

use crate::follow_ups::spawn_deliverer;

/// Starts this program again for the same store.
#[derive(Debug)]
pub(crate) struct Relauncher {
    ports: Arc<Ports>,
    home: PathBuf,
    /// The program that becomes a supervisor, or a deliverer.
    supervisor: io::Result<PathBuf>,
}

impl Relauncher {
    pub(crate) fn new(ports: Arc<Ports>, home: PathBuf, supervisor: io::Result<PathBuf>) -> Self {
        Self { ports, home, supervisor }
    }
}

impl Relaunch for Relauncher {
    fn start_successor(&self, after: &ProcessIdentity) -> io::Result<()> {
        let after = format!("{}:{}", after.pid, after.started);
        let args = ["monitor", "run", "--after", &after].map(Into::into).to_vec();
        // The environment may name another store; this one is the working directory of the successor.
        let env = vec![(crate::home::HOME_VARIABLE.into(), Some(self.home.clone().into()))];
        let (program, home) = (hearback_platform::next_program()?, self.home.clone());
        self.ports.processes.spawn_detached(&DetachedRequest { program, args, home, env })
    }

    fn start_deliverer(&self) -> io::Result<()> {
        let program = self.supervisor.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
        spawn_deliverer(&*self.ports.processes, program.clone(), self.home.clone())
    }
}
