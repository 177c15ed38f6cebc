//! The names of all files and folders of a store. No other file knows them.

use std::path::{Path, PathBuf};

use hearback_core::port::disk::Disk;
use hearback_core::port::record::JobLock;
use hearback_core::port::session::SessionLock;
use hearback_core::{FactKind, JobId, Timestamp};

/// The folders and files of one store.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    home: PathBuf,
}

/// What a name in a job's folder stands for, where there can be several of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbered {
    Kill(u32),
    Lease(u32),
    LeaseResult(u32),
}

impl Layout {
    pub(crate) fn new(home: PathBuf) -> Self {
        Self { home }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The folders that every store has.
    pub(crate) fn folders(&self) -> [PathBuf; 4] {
        [self.jobs(), self.history(), self.keys(), self.trash()]
    }

    /// Settings.
    pub(crate) fn config(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    /// Open jobs.
    pub(crate) fn jobs(&self) -> PathBuf {
        self.home.join("jobs")
    }

    pub(crate) fn job(&self, id: &JobId) -> PathBuf {
        self.jobs().join(id.as_str())
    }

    /// Settled jobs, in one folder for each era.
    pub(crate) fn history(&self) -> PathBuf {
        self.home.join("history")
    }

    pub(crate) fn era(&self, era: &str) -> PathBuf {
        self.history().join(era)
    }

    pub(crate) fn past_job(&self, id: &JobId) -> PathBuf {
        self.era(id.era()).join(id.as_str())
    }

    /// Keys of repeatable launches.
    pub(crate) fn keys(&self) -> PathBuf {
        self.home.join("keys")
    }

    /// What is known of sessions besides their jobs.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// One folder for each session, named by a hash.
    pub(crate) fn session(&self, hash: &str) -> PathBuf {
        self.sessions().join(hash)
    }

    /// The monitor that serves the store.
    pub(crate) fn monitor(&self) -> PathBuf {
        self.home.join("monitor")
    }

    /// The index of events.
    pub(crate) fn events(&self) -> PathBuf {
        self.home.join("events")
    }

    /// The second names of logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.home.join("logs")
    }

    /// The name of a job's log that stays when the job moves.
    pub(crate) fn shared_log(&self, id: &JobId) -> PathBuf {
        self.logs().join(format!("{id}.log"))
    }

    /// What prune is removing.
    pub(crate) fn trash(&self) -> PathBuf {
        self.home.join("trash")
    }
}

pub(crate) fn fact(folder: &Path, kind: FactKind) -> PathBuf {
    folder.join(match kind {
        FactKind::Spec => "spec.json".to_owned(),
        FactKind::Begin => "begin.json".to_owned(),
        FactKind::Target => "target.json".to_owned(),
        FactKind::Kill(n) => format!("kill.{n}.json"),
        FactKind::End => "end.json".to_owned(),
        FactKind::Swept => "swept.json".to_owned(),
        FactKind::Answer => "answer.json".to_owned(),
        FactKind::Lease(n) => format!("lease.{n}"),
        FactKind::LeaseResult(n) => format!("result.{n}"),
        FactKind::Receipt => "receipt.json".to_owned(),
        FactKind::Settled => "settled.json".to_owned(),
    })
}

/// Recognises the facts of which there can be several.
pub(crate) fn numbered(name: &str) -> Option<Numbered> {
    if let Some(n) = name.strip_prefix("kill.").and_then(|rest| rest.strip_suffix(".json")) {
        return n.parse().ok().map(Numbered::Kill);
    }
    if let Some(n) = name.strip_prefix("lease.") {
        return n.parse().ok().map(Numbered::Lease);
    }
    name.strip_prefix("result.").and_then(|n| n.parse().ok()).map(Numbered::LeaseResult)
}

pub(crate) fn lock(folder: &Path, lock: JobLock) -> PathBuf {
    folder.join(match lock {
        JobLock::Launch => "launch.lock".to_owned(),
        JobLock::Alive => "alive.lock".to_owned(),
        JobLock::Keeper => "keeper.lock".to_owned(),
        JobLock::Reader => "reader.lock".to_owned(),
        JobLock::Lease(n) => format!("lease.{n}.lock"),
        JobLock::Deliverer => "deliver.lock".to_owned(),
        JobLock::Input => "input.lock".to_owned(),
    })
}

/// What a name in a job's folder tells a process that waits for the job to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A fact.
    Fact,
    /// A lock whose holder makes the job go on when it releases it.
    Lock(JobLock),
}

/// Recognises such a name. Others come and go without any news: logs, unfinished files, locks of readers.
pub(crate) fn sign(name: &str) -> Option<Sign> {
    let folder = Path::new("");
    if let Some(n) = name.strip_prefix("lease.").and_then(|rest| rest.strip_suffix(".lock")) {
        return n.parse().ok().map(|n| Sign::Lock(JobLock::Lease(n)));
    }
    for it in [JobLock::Launch, JobLock::Alive] {
        if lock(folder, it).as_os_str() == name {
            return Some(Sign::Lock(it));
        }
    }
    (numbered(name).is_some() || SINGLE.iter().any(|kind| fact(folder, *kind).as_os_str() == name))
        .then_some(Sign::Fact)
}

/// The facts of which a job has one.
const SINGLE: [FactKind; 7] = [
    FactKind::Spec,
    FactKind::Begin,
    FactKind::Target,
    FactKind::End,
    FactKind::Answer,
    FactKind::Receipt,
    FactKind::Settled,
];

/// The lock of those who add to the index of events.
pub(crate) fn events_lock(events: &Path) -> PathBuf {
    events.join("add.lock")
}

/// A part of the index of events.
pub(crate) fn events_part(events: &Path, part: &str) -> PathBuf {
    events.join(format!("{part}.log"))
}

/// Recognises such a name.
pub(crate) fn events_part_name(name: &str) -> Option<&str> {
    name.strip_suffix(".log")
}

/// The lock of the monitor that serves the store at `home`.
pub fn monitor_lock_path(home: &Path) -> PathBuf {
    run_lock(&Layout::new(home.to_owned()).monitor())
}

/// What a name stands for among the facts of turns, of messages, and of the host; each has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionFactKind {
    TurnBegin,
    Resumable,
    Interrupt,
    TurnEnd,
    Message,
    MessageResult(u32),
    MessageReceipt,
    HostBegin,
    Request,
    Taken,
    Done,
}

/// The messages of a session.
pub(crate) fn inbox(session: &Path) -> PathBuf {
    session.join("inbox")
}

/// A fact of a session's folder, of its inbox, or of the host's.
pub(crate) fn session_fact(folder: &Path, n: u32, kind: SessionFactKind) -> PathBuf {
    use SessionFactKind as Kind;
    folder.join(match kind {
        Kind::TurnBegin => format!("turn.{n}.begin"),
        Kind::Resumable => format!("turn.{n}.resumable"),
        Kind::Interrupt => format!("turn.{n}.interrupt"),
        Kind::TurnEnd => format!("turn.{n}.end"),
        Kind::Message => format!("message.{n}"),
        Kind::MessageResult(attempt) => format!("message.{n}.result.{attempt}"),
        Kind::MessageReceipt => format!("message.{n}.receipt"),
        Kind::HostBegin => format!("begin.{n}"),
        Kind::Request => format!("request.{n}"),
        Kind::Taken => format!("request.{n}.taken"),
        Kind::Done => format!("request.{n}.done"),
    })
}

/// Recognises a name that [`session_fact`] made.
pub(crate) fn parse_session_fact(name: &str) -> Option<(u32, SessionFactKind)> {
    use SessionFactKind as Kind;
    let (family, rest) = name.split_once('.')?;
    let (n, part) = rest.split_once('.').unwrap_or((rest, ""));
    let kind = match (family, part) {
        ("turn", "begin") => Kind::TurnBegin,
        ("turn", "resumable") => Kind::Resumable,
        ("turn", "interrupt") => Kind::Interrupt,
        ("turn", "end") => Kind::TurnEnd,
        ("message", "") => Kind::Message,
        ("message", "receipt") => Kind::MessageReceipt,
        ("message", part) => Kind::MessageResult(part.strip_prefix("result.")?.parse().ok()?),
        ("begin", "") => Kind::HostBegin,
        ("request", "") => Kind::Request,
        ("request", "taken") => Kind::Taken,
        ("request", "done") => Kind::Done,
        _ => return None,
    };
    Some((n.parse().ok()?, kind))
}

/// Recognises the lock of a session's turn.
pub(crate) fn is_turn_lock(name: &str) -> bool {
    session_lock(Path::new(""), SessionLock::Turn).as_os_str() == name
}

/// Recognises a name that tells something about the host: one of its facts, or its lock.
pub(crate) fn is_of_host(name: &str) -> bool {
    run_lock(Path::new("")).as_os_str() == name || parse_session_fact(name).is_some()
}

/// Recognises the folder of an era of history.
pub(crate) fn is_era(name: &str) -> bool {
    name.len() == 5 && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Recognises the folder of a session, which is named by a hash.
pub(crate) fn is_session(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A process writes to this file to wake the host.
pub(crate) fn wake(monitor: &Path) -> PathBuf {
    monitor.join("wake")
}

/// The log of the host.
pub(crate) fn monitor_log(monitor: &Path) -> PathBuf {
    monitor.join("monitor.log")
}

pub(crate) fn session_lock(session: &Path, lock: SessionLock) -> PathBuf {
    session.join(match lock {
        SessionLock::Turn => "turn.lock",
        SessionLock::Messenger => "messenger.lock",
    })
}

/// Held by the monitor that serves the store.
pub(crate) fn run_lock(monitor: &Path) -> PathBuf {
    monitor.join("run.lock")
}

/// Held by the process that delivers the follow-ups which no other process delivers.
pub(crate) fn deliverer_lock(monitor: &Path) -> PathBuf {
    monitor.join("deliver.lock")
}

/// The output of the target.
pub(crate) fn log(folder: &Path) -> PathBuf {
    folder.join("output.log")
}

/// The end of the output, if the file system cannot free the middle of a file.
pub(crate) fn log_tail(folder: &Path) -> PathBuf {
    folder.join("output.tail")
}

/// Samples of what the target used.
pub(crate) fn samples(folder: &Path) -> PathBuf {
    folder.join("samples")
}

/// The job whose log has this second name.
pub(crate) fn job_of_shared_log(name: &str) -> Option<JobId> {
    JobId::parse(name.strip_suffix(".log")?).ok()
}

/// The log of the supervisor.
pub(crate) fn supervisor_log(folder: &Path) -> PathBuf {
    folder.join("supervisor.log")
}

/// Where the older part of such a log is kept.
pub(crate) fn put_aside(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// The bell: other processes ring it to wake the supervisor.
pub(crate) fn bell(folder: &Path) -> PathBuf {
    folder.join("bell")
}

/// Where other processes hand input to a job.
pub(crate) fn input(folder: &Path) -> PathBuf {
    folder.join("input")
}

/// Room for the first kill request.
pub(crate) fn kill_reserve(folder: &Path) -> PathBuf {
    folder.join(KILL_RESERVE)
}

/// The same in the hands of one process.
pub(crate) fn kill_reserve_of(folder: &Path, nonce: u64) -> PathBuf {
    folder.join(format!("{KILL_RESERVE}.{nonce:016x}"))
}

const KILL_RESERVE: &str = "kill.reserve";

/// Made after an end was flushed, and not flushed itself: where it is, the end is durable.
pub(crate) fn end_durable(folder: &Path) -> PathBuf {
    folder.join("end.durable")
}

/// Reserved room for the end.
pub(crate) fn end_reserve(folder: &Path) -> PathBuf {
    folder.join("end.reserve")
}

/// The text of a shell command. Some shells run a file only if its name ends as they expect.
pub(crate) fn script(folder: &Path, extension: &str) -> PathBuf {
    folder.join("script").with_extension(extension)
}

/// The file into which a prompt job may write its answer.
pub(crate) fn answer(folder: &Path) -> PathBuf {
    folder.join("answer")
}

/// Recognises files that are of no use when a job is settled: the file of its answer, the text of its shell command,
/// the bell and the input of a supervisor that died, the mark of its end, and unfinished files of crashes.
pub(crate) fn is_spent(folder: &Path, name: &str) -> bool {
    let path = folder.join(name);
    unfinished_since(name).is_some()
        || name.starts_with(KILL_RESERVE)
        || path == answer(folder)
        || path == bell(folder)
        || path == input(folder)
        || path == end_durable(folder)
        || is_script(folder, name)
}

/// Recognises the text of a shell command, whatever its extension.
pub(crate) fn is_script(folder: &Path, name: &str) -> bool {
    folder.join(name).with_extension("") == script(folder, "")
}

/// The fact that a reader, named by a hash, has the answer of a job.
pub(crate) fn reader_note(folder: &Path, reader: &str) -> PathBuf {
    folder.join(format!("read.{reader}.json"))
}

/// Held by the process that gives the answer of a job to a reader.
pub(crate) fn reader_lock(folder: &Path, reader: &str) -> PathBuf {
    folder.join(format!("read.{reader}.lock"))
}

/// Recognises an unfinished file, and returns when it was begun, in milliseconds since 1970.
pub(crate) fn unfinished_since(name: &str) -> Option<i64> {
    name.strip_prefix("tmp.")?.split('.').next()?.parse().ok()
}

/// Whether there is a store at `home`, and not only a folder.
pub fn is_store(disk: &impl Disk, home: &Path) -> bool {
    Layout::new(home.to_owned()).folders().iter().all(|folder| disk.is_dir(folder).unwrap_or(false))
}

/// Where the settings of a store are, whether or not there is one.
pub fn config_path(home: &Path) -> PathBuf {
    Layout::new(home.to_owned()).config()
}

/// Where the service description of the monitor is kept if the service manager has no folder for it.
pub fn service_path(home: &Path, name: &str) -> PathBuf {
    home.join(name)
}

/// A name for a temporary folder of `doctor`. Tidy treats it as an unfinished file if it is left behind.
pub fn trial_folder_name(now: Timestamp, nonce: u64) -> String {
    format!("tmp.{}.doctor.{nonce:016x}", now.as_millis())
}

/// A name in the trash.
pub(crate) fn trash_name(id: &JobId, nonce: u64) -> String {
    format!("{id}.{nonce:016x}")
}

/// Recognises a name that [`trash_name`] made.
pub(crate) fn is_trash(name: &str) -> bool {
    name.split_once('.').is_some_and(|(id, nonce)| {
        JobId::parse(id).is_ok() && nonce.len() == 16 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
