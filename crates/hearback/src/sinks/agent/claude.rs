//! The socket on which an open session of Claude Code takes messages from other programs. A session without one may
//! have hearback's hook instead.
//!
//! Each open session has a file with its process and its socket. Neither way gives a receipt, so the session's
//! transcript is read: a message that was taken, or queued until the current turn ends, stands there.

use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use hearback_core::agents::LaunchingAgent;
use hearback_core::port::clock::Clock;
use hearback_core::port::process::ProcessControl;
use hearback_core::port::sink::{SinkError, SinkReply};
use hearback_core::{CloudEvent, Exit, OsText, Session, SinkPayload, json};
use hearback_platform::Native;
use serde::Deserialize;
use serde_json::json;

use super::{Knock, Visit, claude_hook, directory_of};
use crate::sinks::builtin::{BuiltIn, Undelivered, input};
use crate::sinks::hand_over::{answer, line};

/// How long connecting, sending and hanging up may take, each.
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// How long the message may take to its transcript.
const SHOWN_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The exit code of the process that finds no open session.
const NOT_OPEN: u32 = 66;

/// What hearback does as this sink: it looks at files of the agent and talks to its socket, and may have to wait for
/// both.
pub(in crate::sinks) const BUILT_IN: BuiltIn = BuiltIn { name: "claude-socket", run };

pub(super) fn knock(visit: &Visit<'_>) -> Result<Knock, SinkError> {
    let report =
        visit.hand_over.run_built_in(BUILT_IN.name, vec![OsText::Text(visit.session.to_string())])?;
    if matches!(report.exit, Some(Exit::Exited { code: NOT_OPEN })) {
        return Ok(Knock::Closed { reason: "the session is not open".into() });
    }
    // More than an exit code can say.
    let reply = json::from_slice::<SinkReply>(&report.stdout).ok();
    reply.map_or_else(|| answer(&report), Ok).map(Knock::Answered)
}

/// A file about an open session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSession {
    pub(super) pid: u32,
    session_id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    proc_start: Option<String>,
    #[serde(default)]
    messaging_socket_path: Option<PathBuf>,
}

/// Whether an open session takes messages: through its socket, or through hearback's hook. One that is not open is
/// resumed.
pub(super) fn hears(session: &Session, by: &LaunchingAgent) -> bool {
    let Some(config) = config_directory() else { return true };
    let open = OpenSession::find(&config, session.as_str());
    open.is_none_or(|open| !open.needs_hook() || claude_hook::is_set_up(&config, directory_of(by).as_deref()))
}

impl OpenSession {
    /// The session of this name, if it is open.
    pub(super) fn find(config: &Path, session: &str) -> Option<Self> {
        let files = fs_err::read_dir(config.join("sessions")).ok()?.flatten().map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        files
            .filter_map(|path| json::from_slice::<Self>(&fs_err::read(path).ok()?).ok())
            .find(|open| open.session_id == session && open.is_open())
    }

    /// Whether only a hook reaches it: it is open in a terminal and has no socket.
    pub(super) fn needs_hook(&self) -> bool {
        self.kind == "interactive" && self.messaging_socket_path.is_none()
    }

    /// Whether its process still lives: a file outlives a process that was killed.
    fn is_open(&self) -> bool {
        let native = Native::default();
        let lives = native.identify(self.pid).is_ok_and(|found| found.is_some());
        // Where both count alike when a process was started, another process with that pid is known.
        let started = self.proc_start.as_deref().and_then(|text| text.parse::<u64>().ok());
        lives && started.zip(native.start_ticks(self.pid)).is_none_or(|(then, now)| then == now)
    }
}

fn run(words: &[OsString]) -> Result<(), Undelivered> {
    let [session] = words else { return Err("one session is needed".to_owned().into()) };
    let session = session.to_string_lossy();
    let event: CloudEvent<SinkPayload> = json::from_slice(&input()?).map_err(|error| error.to_string())?;
    let config = config_directory().ok_or_else(|| "the home directory is unknown".to_owned())?;
    let Some(open) = OpenSession::find(&config, &session) else {
        return Err(Undelivered {
            code: NOT_OPEN,
            reason: "the session is not open".into(),
            retry_after: None,
        });
    };
    let process = || Native::default().identify(open.pid).ok().flatten();
    if open.kind != "interactive" {
        // A turn without a terminal ends by itself.
        let reason = format!("Claude Code (pid {}) is in a turn of the session", open.pid);
        return reply(&SinkReply::Busy { reason, process: process(), retry_after_ms: None });
    }
    let transcript = Transcript::find(&config, &session);
    let text = event.data.text();
    match &open.messaging_socket_path {
        Some(socket) => {
            let message = json!({
                "type": "user", "session_id": session, "message": {"role": "user", "content": text},
            });
            let message = line(&message).map_err(|error| error.to_string())?;
            Native::default().send_to_socket(socket, &message, SEND_WITHIN)?;
        }
        None if claude_hook::tell(&config, &session, text, SEND_WITHIN).is_ok() => {}
        // The hook begins to wait when a turn ends.
        None if open.status == "busy" && claude_hook::is_set_up(&config, open.cwd.as_deref()) => {
            let reason = format!("Claude Code (pid {}) is in a turn of the session", open.pid);
            return reply(&SinkReply::Busy { reason, process: process(), retry_after_ms: None });
        }
        None => {
            let reason = format!(
                "the session is open in Claude Code (pid {}), which takes no messages there",
                open.pid
            );
            return reply(&SinkReply::Unreachable { reason, process: process() });
        }
    }
    match transcript.shows(sign(&event.data)) {
        true => Ok(()),
        false => Err(format!("the session did not show the message within {SHOWN_WITHIN:?}").into()),
    }
}

/// Part of the text by which it is known in the transcript.
fn sign(payload: &SinkPayload) -> &str {
    match payload.deliveries().first() {
        Some(delivery) => delivery.job.id.as_str(),
        None => payload.text().lines().find(|line| !line.trim().is_empty()).unwrap_or_default(),
    }
}

fn reply(reply: &SinkReply) -> Result<(), Undelivered> {
    let line = line(reply).map_err(|error| error.to_string())?;
    Ok(std::io::stdout().write_all(&line)?)
}

pub(super) fn config_directory() -> Option<PathBuf> {
    let set = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    set.or_else(|| Some(std::env::home_dir()?.join(".claude")))
}

/// The file in which a session keeps its conversation, from where it ended before the message was sent.
struct Transcript {
    config: PathBuf,
    name: String,
    /// Where to look from. A session that has no transcript yet has one soon.
    from: u64,
}

impl Transcript {
    fn find(config: &Path, session: &str) -> Self {
        let mut found = Self { config: config.to_owned(), name: format!("{session}.jsonl"), from: 0 };
        found.from = found.path().and_then(|path| fs_err::metadata(path).ok()).map_or(0, |about| about.len());
        found
    }

    fn path(&self) -> Option<PathBuf> {
        let projects = fs_err::read_dir(self.config.join("projects")).ok()?.flatten();
        projects.map(|project| project.path().join(&self.name)).find(|path| path.is_file())
    }

    /// Waits until this text is part of it.
    fn shows(&self, text: &str) -> bool {
        let written = serde_json::to_string(text).unwrap_or_default();
        let part = written.trim_matches('"');
        let clock = Native::default();
        let deadline = clock.awake() + SHOWN_WITHIN;
        loop {
            if self.rest().is_some_and(|rest| rest.contains(part)) {
                return true;
            }
            if clock.awake() >= deadline {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn rest(&self) -> Option<String> {
        let mut file = fs_err::File::open(self.path()?).ok()?;
        file.seek(SeekFrom::Start(self.from)).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}
