//! A process table in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::fold::Here;
use crate::port::process::{
    BoundedRun, BoundedRunReport, DetachedRequest, LaunchSignal, Presence, ProcessControl, ProcessIdentity,
    SupervisorLink, SupervisorReply, SupervisorRequest, SweepReport,
};
use crate::{BootId, CommandLine, Exit, JobId, OsText, StartError};

/// Processes by pid, and a note of every sweep and of every program that was detached. Clones share one table.
#[derive(Debug, Clone, Default)]
pub struct FakeProcesses {
    alive: Arc<Mutex<BTreeMap<u32, ProcessIdentity>>>,
    stopped: Arc<Mutex<BTreeSet<u32>>>,
    sweeps: Arc<Mutex<Vec<JobId>>>,
    heard: Arc<Mutex<Vec<SupervisorReply>>>,
    told: Arc<Mutex<Vec<LaunchSignal>>>,
    handed_over: Arc<Mutex<Vec<CommandLine>>>,
    detached: Arc<Mutex<Vec<DetachedRequest>>>,
}

impl FakeProcesses {
    /// Lets a process live.
    pub fn spawn(&self, who: ProcessIdentity) {
        self.alive.lock().unwrap().insert(who.pid, who);
    }

    /// Lets a process stand still.
    pub fn stop(&self, pid: u32) {
        self.stopped.lock().unwrap().insert(pid);
    }

    /// Sets what the next supervisor is heard to say.
    pub fn next_supervisor_says(&self, heard: SupervisorReply) {
        self.heard.lock().unwrap().insert(0, heard);
    }

    /// The marks that were swept, in order.
    pub fn sweeps(&self) -> Vec<JobId> {
        self.sweeps.lock().unwrap().clone()
    }

    /// The programs that were started detached, in order.
    pub fn detached(&self) -> Vec<DetachedRequest> {
        self.detached.lock().unwrap().clone()
    }

    /// The commands that launchers handed to their supervisors.
    pub fn handed_over(&self) -> Vec<CommandLine> {
        self.handed_over.lock().unwrap().clone()
    }

    /// The words that launchers told their supervisors.
    pub fn told(&self) -> Vec<LaunchSignal> {
        self.told.lock().unwrap().clone()
    }
}

/// A wire to a supervisor that does not exist.
#[derive(Debug)]
pub struct FakeLink {
    told: Arc<Mutex<Vec<LaunchSignal>>>,
    handed_over: Arc<Mutex<Vec<CommandLine>>>,
    heard: SupervisorReply,
}

impl SupervisorLink for FakeLink {
    fn hand_over(&mut self, command: &CommandLine, _within: Duration) -> io::Result<()> {
        self.handed_over.lock().unwrap().push(command.clone());
        Ok(())
    }
    fn tell(&mut self, word: LaunchSignal) -> io::Result<()> {
        self.told.lock().unwrap().push(word);
        Ok(())
    }
    fn hear(&mut self, _within: Duration) -> SupervisorReply {
        self.heard.clone()
    }
}

impl ProcessControl for FakeProcesses {
    fn here(&self) -> Here {
        Here { boot: Some(BootId::new("boot-1")), machine: None }
    }
    fn path_text(&self, path: &Path) -> OsText {
        match path.to_str() {
            Some(text) => text.into(),
            None => OsText::Bytes { bytes: path.as_os_str().as_encoded_bytes().to_vec() },
        }
    }
    fn me(&self) -> io::Result<ProcessIdentity> {
        Ok(super::sample::process(1))
    }
    fn identify(&self, pid: u32) -> io::Result<Option<ProcessIdentity>> {
        if pid == 1 {
            return self.me().map(Some);
        }
        Ok(self.alive.lock().unwrap().get(&pid).cloned())
    }
    fn presence(&self, who: &ProcessIdentity) -> Presence {
        match self.identify(who.pid) {
            Ok(Some(found)) if found == *who => Presence::Same,
            Ok(_) => Presence::Gone,
            Err(_) => Presence::Unproved,
        }
    }
    fn lives_on(&self, who: &ProcessIdentity) -> bool {
        self.presence(who) == Presence::Same
    }

    fn await_end(&self, who: &ProcessIdentity, _within: Duration) -> bool {
        self.presence(who) == Presence::Gone
    }

    fn is_stopped(&self, who: &ProcessIdentity) -> bool {
        self.presence(who) == Presence::Same && self.stopped.lock().unwrap().contains(&who.pid)
    }
    fn spawn_supervisor(&self, _request: &SupervisorRequest) -> io::Result<Box<dyn SupervisorLink>> {
        let heard = self.heard.lock().unwrap().pop().unwrap_or(SupervisorReply::Gone);
        let (told, handed_over) = (Arc::clone(&self.told), Arc::clone(&self.handed_over));
        Ok(Box::new(FakeLink { told, handed_over, heard }))
    }
    fn spawn_detached(&self, request: &DetachedRequest) -> io::Result<()> {
        if request.program.as_os_str().is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.detached.lock().unwrap().push(request.clone());
        Ok(())
    }
    fn run_bounded(&self, _errand: &BoundedRun) -> Result<BoundedRunReport, StartError> {
        let exit = Some(Exit::Exited { code: 0 });
        Ok(BoundedRunReport { exit, survivors: Vec::new(), stdout: Vec::new(), stderr: Vec::new() })
    }

    fn ring(&self, _bell: &Path) -> io::Result<bool> {
        Ok(true)
    }
    fn end_unbegun(&self) -> io::Result<usize> {
        Ok(0)
    }
    fn end_by_force(&self, who: &ProcessIdentity) -> io::Result<()> {
        if self.presence(who) == Presence::Same {
            self.alive.lock().unwrap().remove(&who.pid);
        }
        Ok(())
    }
    fn sweep_marked(&self, mark: &JobId, _grace: Duration, _within: Duration) -> io::Result<SweepReport> {
        self.sweeps.lock().unwrap().push(mark.clone());
        Ok(SweepReport::default())
    }
}
