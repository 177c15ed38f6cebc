//! A plugin of hearback's in an agent. It fetches the follow-ups of an open session by itself, so the sink leaves such
//! a session to it until the agent has ended.

use std::path::PathBuf;

use hearback_core::agents::{LaunchingAgent, PluginSign};
use hearback_core::port::sink::SinkReply;
use hearback_platform::Native;

use super::{Knock, Visit, directory_of};

pub(super) fn knock(visit: &Visit<'_>, sign: Option<&PluginSign>) -> Knock {
    let closed = |reason: String| Knock::Closed { reason };
    let Some((by, process)) = visit.launched_by.zip(visit.open_in()) else {
        return closed("the session is not open".into());
    };
    let (title, pid) = (visit.agent.title, process.pid);
    if !is_loaded(by, pid, sign) {
        return closed(format!("the session is open in {title} (pid {pid}) without hearback's plugin"));
    }
    let reason = format!("the session is open in {title} (pid {pid}), and its plugin hands it over there");
    Knock::Answered(SinkReply::Busy { reason, process: Some(process.clone()), retry_after_ms: None })
}

/// Whether the agent has loaded the plugin: its file is there, and the process was started with the option for it.
pub(super) fn is_loaded(by: &LaunchingAgent, pid: u32, sign: Option<&PluginSign>) -> bool {
    let Some(sign) = sign else { return true };
    let is_there = |root: Option<PathBuf>, below: &str| root.is_some_and(|root| root.join(below).is_file());
    Native::default().running(pid).arguments.iter().any(|word| word == sign.option)
        && (is_there(std::env::home_dir(), sign.in_home) || is_there(directory_of(by), sign.in_project))
}
