//! What a target and the processes below it use, from /proc.

use hearback_core::TreeUsage;

/// A tree with more processes is not counted: that would cost more than the answer is worth.
const PROCESSES_MAX: usize = 256;
/// The same for the threads of one process, each of which may have children.
const THREADS_MAX: u64 = 256;

/// Of a process and those below it; none if it is gone, or has too many below it. Orphans, which are no longer below
/// it, do not count.
pub(crate) fn of_tree(pid: u32) -> Option<TreeUsage> {
    let (tick, page) = (rustix::param::clock_ticks_per_second(), rustix::param::page_size());
    let (mut ticks, mut pages) = (0, 0);
    let mut left = vec![pid];
    let mut seen = 0;
    while let Some(next) = left.pop() {
        seen += 1;
        if seen > PROCESSES_MAX {
            return None;
        }
        // One that has ended meanwhile is counted by its parent, unless that was read before.
        let Some(process) = Process::read(next) else { continue };
        ticks += process.ticks;
        pages += process.pages;
        left.extend(children(next, process.threads));
    }
    let used = TreeUsage {
        cpu_ms: ticks.saturating_mul(1000) / tick.max(1),
        memory_bytes: u64::try_from(page).ok()?.saturating_mul(pages),
    };
    (used.memory_bytes > 0).then_some(used)
}

struct Process {
    /// Of CPU time, with those of the children that it has waited for.
    ticks: u64,
    pages: u64,
    threads: u64,
}

impl Process {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The name in brackets may hold anything. proc(5) counts from 1, and two fields lie before the last bracket.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |n: usize| {
            fields.get(n - 3)?.parse::<i64>().ok().map(|number| u64::try_from(number).unwrap_or(0))
        };
        let ticks = number(14)? + number(15)? + number(16)? + number(17)?;
        Some(Self { ticks, pages: number(24)?, threads: number(20)? })
    }
}

/// The children of all threads of a process; none where the kernel does not list them.
fn children(pid: u32, threads: u64) -> Vec<u32> {
    let of_thread = |thread: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    };
    if threads <= 1 || threads > THREADS_MAX {
        return of_thread(&pid.to_string());
    }
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().into_string().ok()).flat_map(|task| of_thread(&task)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let stat = "7 (a) (b\n) R 1 2 3 4 5 64 7 8 9 10 100 20 3 4 15 16 5 18 4242 20 33\n";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.ticks, process.pages, process.threads), (127, 33, 5));
        assert!(Process::parse("7 (x) R 1").is_none());
    }

    #[test]
    fn this_process_uses_something_and_one_that_is_gone_has_no_use() {
        let used = of_tree(std::process::id()).unwrap();
        assert!(used.memory_bytes > 100_000, "{used:?}");
        assert_eq!(of_tree(u32::MAX), None);
    }
}
