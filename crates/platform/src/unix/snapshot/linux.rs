//! The processes of this machine, as /proc shows them at one moment.

use std::io;

use super::Process;
use crate::SUPERVISE_COMMAND;
use crate::mark::{JOB_MARK, SUPERVISOR_MARK};

/// What hearback reads of a process's stat file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// Clock ticks between boot and start.
    pub(crate) started: u64,
    state: u8,
    flags: u64,
}

/// Set in the kernel's flags of a process from the beginning of its end. Its locks are let go some time after that,
/// and only then does it become a zombie: whoever is woken by such a lock would still find it running.
const PF_EXITING: u64 = 0x4;

impl Stat {
    /// Reads one process; nothing when there is none.
    pub(crate) fn read(pid: u32) -> io::Result<Option<Self>> {
        match std::fs::File::open(format!("/proc/{pid}/stat")).and_then(read_all) {
            Ok(bytes) => Self::parse(pid, &bytes)
                .map(Some)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the stat file makes no sense")),
            Err(error) if is_no_process(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn parse(pid: u32, bytes: &[u8]) -> Option<Self> {
        // The name in brackets may hold anything: brackets, line ends, half a character. The last bracket closes it.
        let closed = bytes.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&bytes[closed + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc(5) counts from 1 and two fields lie before the bracket: field n is at n - 3.
        let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
        let small = |n: usize| u32::try_from(number(n)?).ok();
        Some(Self {
            pid,
            parent: small(4)?,
            group: small(5)?,
            session: small(6)?,
            started: number(22)?,
            state: *fields.first()?.as_bytes().first()?,
            flags: number(9)?,
        })
    }

    /// A process that is ending, or has ended and only waits to be reaped, is none.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') || self.flags & PF_EXITING != 0
    }
}

/// A process that ends while it is read answers ESRCH instead of ENOENT.
fn is_no_process(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Every living process. One whose environment is none of our business has no marks.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that cannot be read is somebody else's, and must not keep the others from being found.
        let Some(stat) = Stat::read(pid).ok().flatten().filter(|stat| !stat.is_dead()) else { continue };
        let (job, supervises) = marks(pid);
        // Anybody can set a variable; who is executed as a supervisor has the id on its command line, too.
        let supervises = supervises.filter(|id| is_supervisor_of(pid, id));
        found.push(Process { stat, job, supervises });
    }
    Ok(found)
}

fn marks(pid: u32) -> (Option<String>, Option<String>) {
    let Ok(environment) = std::fs::File::open(format!("/proc/{pid}/environ")).and_then(read_all) else {
        return (None, None);
    };
    let value = |name: &str| {
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    };
    (value(JOB_MARK), value(SUPERVISOR_MARK))
}

fn is_supervisor_of(pid: u32, id: &str) -> bool {
    let command = std::fs::File::open(format!("/proc/{pid}/cmdline")).and_then(read_all).unwrap_or_default();
    let mut arguments = command.split(|byte| *byte == 0).skip(1);
    arguments.next() == Some(SUPERVISE_COMMAND.as_bytes()) && arguments.next() == Some(id.as_bytes())
}

fn read_all(mut file: std::fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_does_not_hide_the_fields() {
        let text = b"7 (a) S 9 (b\n\xd0) R 1 2 3 4 5 64 7 8 9 10 11 12 13 14 15 16 17 18 4242 20\n";
        let stat = Stat::parse(7, text).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session, stat.started), (1, 2, 3, 4242));
        assert!(!stat.is_dead());
        let ending = b"7 (x) R 1 2 3 4 5 4194564 7 8 9 10 11 12 13 14 15 16 17 18 4242 20\n";
        assert!(Stat::parse(7, ending).unwrap().is_dead(), "it holds no lock any more");
        assert!(Stat::parse(7, b"7 (x) R 1").is_none());
    }
}
