//! `tree --depth D --breadth B --witness FILE [--detach setsid|group|double-fork|breakaway|none] [--ignore-term]`: a
//! tree of processes that tries to escape.
//!
//! Each process above depth 0 starts `B` children of one less depth. A child first escapes in the wanted way:
//! into its own session, into its own process group, or by a process in between that exits, which makes it an
//! orphan. Then it appends `<pid> <depth>` to the witness and sleeps for 120 s. The first process does not
//! escape. With `--ignore-term` SIGTERM stays blocked in all of them. On Windows a session of its own means no
//! console, `breakaway` asks to leave the Job Object and stays if it may not, and the request is an event of the
//! console, which is received and ignored; a process without a console receives none.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::ffi::OsString;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use hearback_tests::witness;

const LIFETIME: Duration = Duration::from_secs(120);

/// How a child leaves its parent's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detach {
    None,
    Setsid,
    Group,
    DoubleFork,
    Breakaway,
}

#[derive(Debug)]
struct Tree {
    depth: u32,
    breadth: u32,
    witness: OsString,
    detach: Detach,
    ignore_term: bool,
    /// The process in between, which this one has to outlive before it is in place.
    orphan_of: Option<u32>,
}

#[expect(clippy::zombie_processes, reason = "the process in between is there to leave an orphan")]
fn main() {
    let mut args = env::args_os().skip(1).peekable();
    let role = args.next_if(|arg| arg == "__child" || arg == "__between");
    let tree = Tree::parse(args);
    if tree.ignore_term {
        ignore_term();
    }
    match role {
        Some(role) if role == "__between" => {
            let between = process::id().to_string();
            tree.start(&["__child", "--orphan-of", &between], tree.depth);
            return;
        }
        Some(_) => tree.escape(),
        None => {}
    }
    witness(&tree.witness, format_args!("{} {}", process::id(), tree.depth));
    tree.start_children();

    let end = Instant::now() + LIFETIME;
    while Instant::now() < end {
        thread::sleep(Duration::from_secs(1));
    }
}

impl Tree {
    fn parse(mut args: impl Iterator<Item = OsString>) -> Tree {
        let (mut depth, mut breadth, mut witness) = (None, None, None);
        let (mut detach, mut ignore_term, mut orphan_of) = (Detach::None, false, None);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| usage("an option lacks its value"));
            match arg.to_str() {
                Some("--depth") => depth = value().to_str().and_then(|number| number.parse().ok()),
                Some("--breadth") => breadth = value().to_str().and_then(|number| number.parse().ok()),
                Some("--witness") => witness = Some(value()),
                Some("--detach") => detach = Detach::parse(&value()),
                Some("--ignore-term") => ignore_term = true,
                Some("--orphan-of") => orphan_of = value().to_str().and_then(|number| number.parse().ok()),
                _ => usage("an argument is not known"),
            }
        }
        let (Some(depth), Some(breadth), Some(witness)) = (depth, breadth, witness) else {
            usage("--depth, --breadth and --witness are needed")
        };
        Tree { depth, breadth, witness, detach, ignore_term, orphan_of }
    }

    fn start_children(&self) {
        let Some(depth) = self.depth.checked_sub(1) else { return };
        let role = if self.detach == Detach::DoubleFork { "__between" } else { "__child" };
        for mut child in (0..self.breadth).map(|_| self.start(&[role], depth)) {
            if self.detach == Detach::DoubleFork {
                child.wait().expect("only this process waits for the child");
            }
        }
    }

    fn start(&self, role: &[&str], depth: u32) -> process::Child {
        let program = env::current_exe().expect("a program knows its own path");
        let mut command = Command::new(program);
        command.args(role).args(["--depth", &depth.to_string(), "--breadth", &self.breadth.to_string()]);
        command.args(["--detach", self.detach.name()]).arg("--witness").arg(&self.witness);
        if self.ignore_term {
            command.arg("--ignore-term");
        }
        #[cfg(windows)]
        {
            use std::os::windows::process::CommandExt;
            command.creation_flags(self.detach.creation_flags());
            if self.detach == Detach::Breakaway {
                match command.spawn() {
                    Err(refused) if refused.kind() == std::io::ErrorKind::PermissionDenied => {
                        command.creation_flags(0);
                    }
                    left => return left.expect("a child can be started"),
                }
            }
        }
        command.spawn().expect("a child can be started")
    }

    #[cfg(unix)]
    fn escape(&self) {
        use nix::unistd::{Pid, setpgid, setsid};
        match self.detach {
            Detach::Setsid => drop(setsid().expect("a new child leads no group")),
            Detach::Group => {
                setpgid(Pid::from_raw(0), Pid::from_raw(0)).expect("a new child leads no session")
            }
            Detach::DoubleFork => {
                while self.orphan_of == Some(std::os::unix::process::parent_id()) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Detach::None | Detach::Breakaway => {}
        }
    }

    #[cfg(not(unix))]
    fn escape(&self) {
        while self.orphan_of.is_some_and(hearback_tests::alive) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Detach {
    const ALL: [Detach; 5] =
        [Detach::None, Detach::Setsid, Detach::Group, Detach::DoubleFork, Detach::Breakaway];

    fn parse(name: &OsString) -> Detach {
        let known = Detach::ALL.into_iter().find(|detach| name == detach.name());
        known.unwrap_or_else(|| usage("--detach is setsid, group, double-fork, breakaway or none"))
    }

    #[cfg(windows)]
    fn creation_flags(self) -> u32 {
        match self {
            Detach::None | Detach::DoubleFork => 0,
            Detach::Setsid => hearback_tests::DETACHED_PROCESS,
            Detach::Group => hearback_tests::CREATE_NEW_PROCESS_GROUP,
            Detach::Breakaway => hearback_tests::CREATE_BREAKAWAY_FROM_JOB,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Detach::None => "none",
            Detach::Setsid => "setsid",
            Detach::Group => "group",
            Detach::DoubleFork => "double-fork",
            Detach::Breakaway => "breakaway",
        }
    }
}

// Blocked rather than ignored, because a disposition cannot be set without unsafe code. The sender sees no
// difference.
#[cfg(unix)]
fn ignore_term() {
    use nix::sys::signal::{SigSet, Signal};
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.thread_block().expect("SIGTERM can be blocked");
}

// Received, and ignored.
#[cfg(windows)]
fn ignore_term() {
    std::mem::forget(hearback_platform::StopWatch::new().expect("listening needs no rights"));
}

fn usage(problem: &str) -> ! {
    eprintln!("tree: {problem}");
    process::exit(2)
}
