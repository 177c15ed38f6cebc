//! The kernel's out-of-memory killer: which process it takes first, and whether it has killed one.

use std::io;
use std::path::{Path, PathBuf};

/// How much sooner than its supervisor a target is ended when memory runs out, of a thousand.
const SOONER: i32 = 300;
const SCORE: &std::ffi::CStr = c"/proc/self/oom_score_adj";

/// Lets the kernel prefer this process to its supervisor when memory runs out: without a supervisor no process would
/// record how the job ended. Async-signal-safe, for the forked child. Best effort.
pub(crate) fn go_first() {
    let mut text = [0_u8; 16];
    let Some(length) = with_score(libc::O_RDONLY, |file| {
        // SAFETY: the buffer is ours and as large as is said.
        unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) }
    }) else {
        return;
    };
    let (text, from) = print((parse(&text[..length]) + SOONER).min(1000));
    with_score(libc::O_WRONLY, |file| {
        // SAFETY: the bytes are ours and as many as is said.
        unsafe { libc::write(file, text[from..].as_ptr().cast(), text.len() - from) }
    });
}

/// A number as the kernel reads it, at the end of the bytes: to begin with a zero would make it an octal one.
fn print(number: i32) -> ([u8; 16], usize) {
    let mut text = [0; 16];
    let (mut left, mut from) = (number.unsigned_abs(), text.len());
    loop {
        from -= 1;
        text[from] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if number < 0 {
        from -= 1;
        text[from] = b'-';
    }
    (text, from)
}

/// A number as the kernel writes it, without allocating.
fn parse(text: &[u8]) -> i32 {
    let digits = text.iter().filter(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i32, |sum, digit| sum.saturating_mul(10) + i32::from(digit - b'0'));
    if text.first() == Some(&b'-') { -number } else { number }
}

fn with_score(how: libc::c_int, call: impl FnOnce(libc::c_int) -> isize) -> Option<usize> {
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(SCORE.as_ptr(), how | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let done = call(file);
    // SAFETY: the descriptor is ours, and is not used after this.
    unsafe { libc::close(file) };
    usize::try_from(done).ok()
}

/// How often processes of this process's cgroup, which its children share, were ended for lack of memory.
pub(crate) struct Counter {
    file: PathBuf,
    before: u64,
}

impl Counter {
    /// Nothing where the kernel does not count.
    pub(crate) fn new() -> Option<Self> {
        let groups = read("/proc/self/cgroup".as_ref()).ok()?;
        let (file, before) =
            files(&groups).find_map(|file| Some((count(&file)?, file))).map(|(n, f)| (f, n))?;
        Some(Self { file, before })
    }

    /// Whether the killer has killed a process since.
    pub(crate) fn has_risen(&self) -> bool {
        count(&self.file).is_some_and(|now| now > self.before)
    }
}

/// The files that may count, from those of the group itself up to the ones above it: with cgroups of version 2 memory
/// need not be counted at every level.
fn files(groups: &str) -> impl Iterator<Item = PathBuf> {
    let first = groups.lines().find_map(|line| Some((line.split_once(":memory:")?.1, 1)));
    let second = groups.lines().find_map(|line| Some((line.strip_prefix("0::")?, 2)));
    let group = first.or(second).map(|(path, version)| (path.trim_start_matches('/').to_owned(), version));
    group.into_iter().flat_map(|(path, version)| {
        let roots: &[&str] = match version {
            1 => &["/sys/fs/cgroup/memory"],
            _ => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
        };
        let name = if version == 1 { "memory.oom_control" } else { "memory.events" };
        let levels: Vec<PathBuf> = match version {
            1 => vec![PathBuf::from(&path)],
            _ => Path::new(&path).ancestors().map(Path::to_owned).collect(),
        };
        levels
            .into_iter()
            .flat_map(move |level| roots.iter().map(move |root| Path::new(root).join(&level).join(name)))
    })
}

fn count(file: &Path) -> Option<u64> {
    read(file).ok()?.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

fn read(file: &Path) -> io::Result<String> {
    fs_err::read_to_string(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_count_are_found_for_both_versions() {
        let show = |groups| files(groups).map(|file| file.display().to_string()).collect::<Vec<_>>();
        assert_eq!(show("4:memory:/a/b\n0::/\n"), ["/sys/fs/cgroup/memory/a/b/memory.oom_control"]);
        let above = show("0::/user/app\n");
        assert_eq!(above[0], "/sys/fs/cgroup/user/app/memory.events");
        assert!(above.contains(&"/sys/fs/cgroup/user/memory.events".to_owned()), "{above:?}");
        assert_eq!(show("2:cpu:/\n"), [""; 0]);
    }

    #[test]
    fn a_score_is_read_as_the_kernel_writes_it() {
        assert_eq!([&b"0\n"[..], b"300\n", b"-17\n", b""].map(parse), [0, 300, -17, 0]);
        for number in [0, 7, 300, 1000, -700, i32::MIN] {
            let (text, from) = print(number);
            assert_eq!(str::from_utf8(&text[from..]).unwrap(), number.to_string());
        }
    }
}
