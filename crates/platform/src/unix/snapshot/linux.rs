//! The processes of this machine, as /proc shows them at one moment.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io;

use super::{Seen, Stat};

/// What a process's stat file tells of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Life {
    state: u8,
    flags: u64,
    threads: u64,
}

/// Set in the kernel's flags of a process from the beginning of its end. Its locks are released some time after that,
/// and only then does it become a zombie: a process that is woken by such a lock would still find it running.
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
            life: Life {
                state: *fields.first()?.as_bytes().first()?,
                flags: number(9)?,
                threads: number(20)?,
            },
        })
    }

    /// By a signal; one that a debugger holds is none of those.
    pub(crate) fn is_stopped(&self) -> bool {
        self.life.state == b'T'
    }

    #[cfg(test)]
    pub(crate) fn ended(self) -> Self {
        Self { life: Life { state: b'Z', ..self.life }, ..self }
    }
}

impl Life {
    pub(super) fn is_dead(self) -> bool {
        // The state is that of the first thread, which may end while others run on.
        self.threads <= 1 && (matches!(self.state, b'Z' | b'X' | b'x') || self.flags & PF_EXITING != 0)
    }
}

/// A process that ends while it is read answers ESRCH instead of ENOENT.
fn is_no_process(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Pids that are given out while a look lasts are visited, too, but not more of them than this at a time.
const NEWCOMERS_MAX: usize = 4096;
/// How often to look for more of them.
const CHASES_MAX: u32 = 200;
/// A process that is just executing a program has no environment for a moment.
const BARE_MOMENTS: u32 = 5;

/// Shows every process to `visit` as soon as it is found, with those of the `variables` that it has; the dead, too,
/// until they are reaped. One whose environment is none of our business has none. A process may be shown twice; the
/// later look counts.
///
/// A listing alone would miss a process that is started meanwhile with a pid below the place that it has reached.
/// Pids are given out in turn, and the kernel tells the last: a process that was started during the look is visited
/// right after.
pub(crate) fn each(variables: &BTreeSet<&str>, mut visit: impl FnMut(Seen)) -> io::Result<()> {
    let mut visited_to = last_pid();
    for entry in fs_err::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that cannot be read belongs to another user, and must not keep the others from being found.
        if let Some(seen) = see(variables, pid, 1) {
            visit(seen);
        }
    }
    for _ in 0..CHASES_MAX {
        let (Some(from), Some(to)) = (visited_to, last_pid()) else { break };
        if from == to {
            break;
        }
        given_out(from, to).filter_map(|pid| see(variables, pid, BARE_MOMENTS)).for_each(&mut visit);
        visited_to = Some(to);
    }
    Ok(())
}

/// The pid that was given out last.
fn last_pid() -> Option<u32> {
    let text = std::fs::File::open("/proc/loadavg").and_then(read_all).ok()?;
    str::from_utf8(&text).ok()?.split_ascii_whitespace().last()?.parse().ok()
}

/// The pids after `from` up to `to`, beginning again where they end.
fn given_out(from: u32, to: u32) -> impl Iterator<Item = u32> {
    let end = if from < to { to } else { from.saturating_add(NEWCOMERS_MAX as u32) };
    let again = if from < to { 0 } else { to };
    (from + 1..=end).chain(2..=again).take(2 * NEWCOMERS_MAX)
}

/// One process, if there is one; one without any environment is read as often as `looks`.
fn see(variables: &BTreeSet<&str>, pid: u32, looks: u32) -> Option<Seen> {
    let unmarked = |stat| Some(Seen { stat, variables: Vec::new(), command: OnceCell::new() });
    let stat = Stat::read(pid).ok().flatten()?;
    if stat.is_dead() {
        return unmarked(stat);
    }
    let mut environment = environment(pid);
    for _ in 1..looks {
        if !environment.is_empty() {
            break;
        }
        std::thread::yield_now();
        environment = self::environment(pid);
    }
    if environment.is_empty() {
        // One that ended between the two looks has lost its environment, and would pass for a stranger that lives.
        let stat = Stat::read(pid).ok().flatten()?;
        if stat.is_dead() {
            return unmarked(stat);
        }
    }
    let entries = environment.split(|byte| *byte == 0);
    let found = entries.filter_map(|entry| variable(variables, entry)).collect();
    Some(Seen { stat, variables: found, command: OnceCell::new() })
}

/// Name and value, if this is one of the variables.
fn variable(variables: &BTreeSet<&str>, entry: &[u8]) -> Option<(String, Vec<u8>)> {
    let equals = entry.iter().position(|byte| *byte == b'=')?;
    let name = variables.get(str::from_utf8(&entry[..equals]).ok()?)?;
    Some(((*name).to_owned(), entry[equals + 1..].to_vec()))
}

fn environment(pid: u32) -> Vec<u8> {
    std::fs::File::open(format!("/proc/{pid}/environ")).and_then(read_all).unwrap_or_default()
}

/// What a process was executed as; nothing of one that is gone.
pub(super) fn command(pid: u32) -> Vec<u8> {
    std::fs::File::open(format!("/proc/{pid}/cmdline")).and_then(read_all).unwrap_or_default()
}

/// Whether it was executed as its mark says: as the supervisor of a job, by `supervise`, or as another detached
/// program.
pub(super) fn is_detached_as(command: &[u8], supervise: &str, mark: &[u8]) -> bool {
    let command = command.strip_suffix(&[0]).unwrap_or(command);
    let mut arguments = command.split(|byte| *byte == 0).skip(1);
    let supervises = arguments.next() == Some(supervise.as_bytes()) && arguments.next() == Some(mark);
    let written = command.iter().map(|byte| if *byte == 0 { b' ' } else { *byte });
    supervises || (!mark.is_empty() && written.eq(mark.iter().copied()))
}

/// Reads a file of /proc. Its size is not known before, and most fit into one page: two reads, where `read_to_end`
/// makes half a dozen and asks for the size.
fn read_all(mut file: std::fs::File) -> io::Result<Vec<u8>> {
    let (mut bytes, mut filled) = (vec![0; 4096], 0);
    loop {
        if filled == bytes.len() {
            bytes.resize(2 * filled, 0);
        }
        match io::Read::read(&mut file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_followed_beyond_their_end() {
        assert_eq!(given_out(7, 10).collect::<Vec<_>>(), [8, 9, 10]);
        let over: Vec<_> = given_out(32_760, 302).collect();
        assert!(over.contains(&32_767) && over.ends_with(&[300, 301, 302]), "{over:?}");
        assert!(given_out(7, u32::MAX).count() <= 2 * NEWCOMERS_MAX);
    }

    #[test]
    fn a_file_is_read_whole_however_long_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, 4095, 4096, 4097, 100_000] {
            let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect();
            fs_err::write(&path, &bytes).unwrap();
            assert!(read_all(std::fs::File::open(&path).unwrap()).unwrap() == bytes, "{length}");
        }
    }

    #[test]
    fn a_name_full_of_brackets_does_not_hide_the_fields() {
        let text = b"7 (a) S 9 (b\n\xd0) R 1 2 3 4 5 64 7 8 9 10 11 12 13 14 15 16 1 18 4242 20\n";
        let stat = Stat::parse(7, text).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session, stat.started), (1, 2, 3, 4242));
        assert!(!stat.is_dead());
        let ending = b"7 (x) R 1 2 3 4 5 4194564 7 8 9 10 11 12 13 14 15 16 1 18 4242 20\n";
        assert!(Stat::parse(7, ending).unwrap().is_dead(), "it holds no lock any more");
        let headless = b"7 (x) Z 1 2 3 4 5 4194564 7 8 9 10 11 12 13 14 15 16 2 18 4242 20\n";
        assert!(!Stat::parse(7, headless).unwrap().is_dead(), "only its first thread has ended");
        assert!(Stat::parse(7, b"7 (x) R 1").is_none());
    }
}
