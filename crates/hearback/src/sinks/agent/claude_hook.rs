//! The hook of hearback's in Claude Code, for an open session that has no messaging socket.
//!
//! Claude Code starts the hook in the background whenever a turn ends, and wakes the model with what it prints when it
//! exits with code 2. So the hook waits on a port of this machine until a sink has a text for its session. The port and
//! the word that opens it stand in a file that only its user can read.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::port::disk::{Disk, Flush, Publish};
use hearback_core::port::process::{Presence, ProcessControl, ProcessIdentity};
use hearback_platform::Native;
use serde::{Deserialize, Serialize};

use super::claude::{OpenSession, config_directory};
use crate::setup::CLAUDE_HOOK_ARGS;

/// The most that is read from a sink: far more than a text has.
const TEXT_MAX: u64 = 4 * 1024 * 1024;
/// The most that the file of a hook has.
const FILE_MAX: u64 = 4096;
/// How long a sink may take to say what it has.
const SAID_WITHIN: Duration = Duration::from_secs(5);
/// What the hook answers before it wakes the session.
const TAKEN: &str = "taken\n";
/// How long one wait for the end of the agent takes; then another begins.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// A call of the hook: one turn of a session has ended.
#[derive(Debug, Deserialize)]
pub struct ClaudeHook {
    session_id: String,
}

/// What a sink says to the hook.
#[derive(Serialize, Deserialize)]
struct Said {
    word: String,
    text: String,
}

/// Where a hook waits.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    process: ProcessIdentity,
    port: u16,
    word: String,
}

impl ClaudeHook {
    /// Reads what Claude Code tells its hooks.
    ///
    /// # Errors
    ///
    /// When the input is something else.
    pub fn read(input: impl Read) -> io::Result<Self> {
        Ok(serde_json::from_reader(input)?)
    }

    /// Waits for a text for the session, and returns it. Returns nothing if the session needs no hook, if another one
    /// waits already, or when the session is closed.
    ///
    /// # Errors
    ///
    /// When it cannot wait.
    pub fn wait(&self) -> io::Result<Option<String>> {
        let config = config_directory().ok_or_else(|| io::Error::other("the home directory is unknown"))?;
        let open = OpenSession::find(&config, &self.session_id).filter(OpenSession::needs_hook);
        let native = Native::default();
        let Some(agent) = open.and_then(|open| native.identify(open.pid).ok().flatten()) else {
            return Ok(None);
        };
        if Waiting::find(&config, &self.session_id).is_some() {
            return Ok(None);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let waiting = Waiting {
            process: native.me()?,
            port: listener.local_addr()?.port(),
            word: format!("{:016x}{:016x}", native.nonce(), native.nonce()),
        };
        let place = Waiting::path(&config, &self.session_id);
        waiting.write(&place)?;
        let gone = place.clone();
        std::thread::spawn(move || {
            while !native.await_end(&agent, LONG) {}
            let _ = fs_err::remove_file(gone);
            std::process::exit(0);
        });
        let text = waiting.hear(&listener);
        // Before the session is woken: its next turn starts a hook of its own.
        fs_err::remove_file(place)?;
        text.map(Some)
    }
}

/// Hands a text to the hook that waits in a session.
pub(super) fn tell(config: &Path, session: &str, text: &str, within: Duration) -> io::Result<()> {
    let waiting = Waiting::find(config, session).ok_or(io::ErrorKind::NotFound)?;
    let address = (Ipv4Addr::LOCALHOST, waiting.port).into();
    let mut stream = TcpStream::connect_timeout(&address, within)?;
    stream.set_write_timeout(Some(within))?;
    stream.set_read_timeout(Some(within))?;
    let mut said = serde_json::to_vec(&Said { word: waiting.word, text: text.to_owned() })?;
    said.push(b'\n');
    stream.write_all(&said)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer == TAKEN { Ok(()) } else { Err(io::Error::other("the hook has not taken it")) }
}

/// Whether the hook is set up, for the user or for the project in this directory.
pub(super) fn is_set_up(config: &Path, directory: Option<&Path>) -> bool {
    let files = [Some(config.join("settings.json")), directory.map(|it| it.join(".claude/settings.json"))];
    let has_it =
        |file: PathBuf| fs_err::read_to_string(file).is_ok_and(|text| text.contains(CLAUDE_HOOK_ARGS));
    files.into_iter().flatten().any(has_it)
}

impl Waiting {
    fn path(config: &Path, session: &str) -> PathBuf {
        // A session is a UUID; anything else must not lead elsewhere.
        let name: String = session.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        config.join("hearback").join(format!("{name}.json"))
    }

    /// The hook that waits in a session, if its process lives.
    fn find(config: &Path, session: &str) -> Option<Self> {
        let native = Native::default();
        let bytes = native.read(&Self::path(config, session), FILE_MAX).ok().flatten()?;
        let waiting: Self = serde_json::from_slice(&bytes).ok()?;
        (native.presence(&waiting.process) == Presence::Same).then_some(waiting)
    }

    /// Writes the file in place of one whose process is gone.
    fn write(&self, place: &Path) -> io::Result<()> {
        let native = Native::default();
        native.secure_home(place.parent().unwrap_or(place))?;
        native.remove(place)?;
        match native.publish_new(place, &serde_json::to_vec(self)?, Flush::No)? {
            Publish::New => Ok(()),
            Publish::Exists => Err(io::Error::other("another hook waits in this session")),
        }
    }

    /// Waits until a sink says the word and a text.
    fn hear(&self, listener: &TcpListener) -> io::Result<String> {
        loop {
            let (stream, _) = listener.accept()?;
            // A caller that breaks off, or does not know the word, has said nothing.
            match self.said(stream) {
                Ok(text) => return Ok(text),
                Err(error) => tracing::debug!(%error, "a call that says nothing"),
            }
        }
    }

    fn said(&self, stream: TcpStream) -> io::Result<String> {
        stream.set_read_timeout(Some(SAID_WITHIN))?;
        let mut line = Vec::new();
        BufReader::new((&stream).take(TEXT_MAX)).read_until(b'\n', &mut line)?;
        let said: Said = serde_json::from_slice(&line)?;
        if said.word != self.word {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        (&stream).write_all(TAKEN.as_bytes())?;
        Ok(said.text)
    }
}
