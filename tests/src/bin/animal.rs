//! `animal KIND --witness FILE [--life-ms N]`: processes that are hard to get rid of (Linux, Windows).
//!
//! Most kinds are seven processes in three generations, each of which escapes or resists in the way of its kind and
//! then sleeps: `double-fork` (an orphan at once), `session` and `group` (one of its own; on Windows no console, and a
//! console group of its own), `closed` (no standard stream is open; on Windows they lead nowhere), `bare` (an empty
//! environment), `shells` (each generation is started by a shell that is started by a shell), `deaf` (SIGTERM is
//! blocked, Ctrl-Break is received and ignored) and `stopped` (by SIGSTOP; its threads are suspended). Windows has
//! `breakaway` (out of the Job Object if it may, and without a mark, like what Git Bash starts).
//!
//! The storms are processes that are never there when one looks: each starts its successor and ends. `storm` is some
//! chains of those in one group, `storm-sessions` gives each link a session of its own. `storm-growing` doubles
//! instead, for some generations, and is deaf.
//!
//! Each process appends `<pid> <start ticks>` to the witness as soon as it is what it should be. All of them are gone
//! after `N` milliseconds (default 60,000; storms 4,000) in any case, counted from the first.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::process::ExitCode;

#[cfg(any(target_os = "linux", windows))]
fn main() -> ExitCode {
    zoo::main()
}

#[cfg(not(any(target_os = "linux", windows)))]
fn main() -> ExitCode {
    eprintln!("animal: only for Linux and Windows");
    ExitCode::from(2)
}

#[cfg(any(target_os = "linux", windows))]
mod zoo {
    use std::ffi::OsString;
    use std::process::{self, Child, Command, ExitCode};
    use std::time::Duration;
    use std::{env, thread};

    use hearback_tests::{alive, start_ticks, witness};

    const GENERATIONS: u32 = 3;
    /// 255 processes, if it is left alone.
    const GENERATIONS_GROWING: u32 = 8;
    const GROWING: &str = "storm-growing";
    const CHILDREN: usize = 2;
    const CHAINS: usize = 4;

    struct Animal {
        kind: String,
        witness: OsString,
        /// Since 1970.
        until: Duration,
        generation: u32,
        /// The process in between, which this one has to outlive before it is in place.
        orphan_of: Option<u32>,
    }

    #[expect(clippy::zombie_processes, reason = "the process in between is there to leave an orphan")]
    pub(super) fn main() -> ExitCode {
        let animal = Animal::parse(env::args_os().skip(1));
        if animal.orphan_of == Some(0) {
            animal.start(animal.generation, process::id());
            return ExitCode::SUCCESS;
        }
        animal.escape();
        #[cfg(windows)]
        let _ears =
            animal.is_deaf().then(|| hearback_platform::StopWatch::new().expect("listening needs no rights"));
        let me = process::id();
        witness(&animal.witness, format_args!("{me} {}", start_ticks(me).expect("we are there")));
        if animal.kind.starts_with("storm") && animal.kind != GROWING {
            return animal.blow();
        }
        let children: Vec<Child> = animal.start_children();
        if animal.kind == "stopped" {
            hearback_tests::stop(me);
        }
        if animal.kind == "double-fork" {
            for mut between in children {
                between.wait().expect("only this process waits for the child");
            }
        }
        thread::sleep(animal.left());
        ExitCode::SUCCESS
    }

    impl Animal {
        fn parse(mut args: impl Iterator<Item = OsString>) -> Animal {
            let kind = args.next().and_then(|kind| kind.into_string().ok()).expect("KIND is needed");
            let (mut witness, mut life, mut until) = (None, None, None);
            let (mut generation, mut orphan_of) = (0, None);
            while let Some(arg) = args.next() {
                let value = args.next().expect("every option has a value");
                let number = || value.to_str().and_then(|text| text.parse().ok()).expect("a number");
                match arg.to_str() {
                    Some("--witness") => witness = Some(value),
                    Some("--life-ms") => life = Some(Duration::from_millis(number())),
                    Some("--until-ms") => until = Some(Duration::from_millis(number())),
                    Some("--generation") => generation = number() as u32,
                    Some("--orphan-of") => orphan_of = Some(number() as u32),
                    _ => panic!("an option is not known"),
                }
            }
            let life = life.unwrap_or(Duration::from_secs(if kind.starts_with("storm") { 4 } else { 60 }));
            Animal {
                kind,
                witness: witness.expect("--witness is needed"),
                until: until.unwrap_or_else(|| now() + life),
                generation,
                orphan_of,
            }
        }

        fn is_deaf(&self) -> bool {
            ["deaf", GROWING].contains(&&*self.kind)
        }

        fn left(&self) -> Duration {
            self.until.saturating_sub(now())
        }

        /// Becomes what this kind is. The first process stays where it was put.
        fn escape(&self) {
            #[cfg(target_os = "linux")]
            self.escape_as_unix_does();
            if let Some(between) = self.orphan_of.filter(|between| *between != 0) {
                while alive(between) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }

        #[cfg(target_os = "linux")]
        fn escape_as_unix_does(&self) {
            use nix::sys::signal::{SigSet, Signal};
            use nix::unistd::{Pid, setpgid, setsid};
            match self.kind.as_str() {
                _ if self.is_deaf() => {
                    // Blocked rather than ignored, because a disposition cannot be set without unsafe code.
                    SigSet::from(Signal::SIGTERM).thread_block().expect("it can be blocked");
                }
                "closed" => {
                    for stream in 0..3 {
                        // Whichever of them was not open is as good as closed.
                        let _ = nix::unistd::close(stream);
                    }
                }
                _ if self.generation == 0 => {}
                "session" | "storm-sessions" => drop(setsid().expect("a new child leads no group")),
                "group" | "bare" => setpgid(Pid::from_raw(0), Pid::from_raw(0)).expect("it leads no session"),
                _ => {}
            }
        }

        /// Has a child do at its start what a process of Windows cannot do later.
        #[cfg(windows)]
        fn help_to_escape(&self, command: &mut Command) {
            use hearback_tests::{CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS};
            use std::os::windows::process::CommandExt;
            match self.kind.as_str() {
                "session" | "storm-sessions" => drop(command.creation_flags(DETACHED_PROCESS)),
                "group" | "bare" => drop(command.creation_flags(CREATE_NEW_PROCESS_GROUP)),
                "breakaway" => drop(command.creation_flags(CREATE_BREAKAWAY_FROM_JOB)),
                "closed" => {
                    let null = std::process::Stdio::null;
                    command.stdin(null()).stdout(null()).stderr(null());
                }
                _ => {}
            }
        }

        fn start_children(&self) -> Vec<Child> {
            let next = self.generation + 1;
            let most = if self.kind == GROWING { GENERATIONS_GROWING } else { GENERATIONS };
            let wanted = if next < most { CHILDREN } else { 0 };
            (0..wanted).map(|_| self.start(next, 0)).collect()
        }

        fn start(&self, generation: u32, orphan_of: u32) -> Child {
            let program = env::current_exe().expect("a program knows its own path");
            let mut command = match self.kind.as_str() {
                "shells" => in_shells(&program),
                _ => Command::new(program),
            };
            command.arg(&self.kind).arg("--witness").arg(&self.witness);
            command.args(["--until-ms", &self.until.as_millis().to_string()]);
            command.args(["--generation", &generation.to_string()]);
            if self.kind == "double-fork" {
                command.args(["--orphan-of", &orphan_of.to_string()]);
            }
            if ["bare", "breakaway"].contains(&self.kind.as_str()) {
                command.env_clear();
            }
            #[cfg(windows)]
            self.help_to_escape(&mut command);
            match command.spawn() {
                // Not allowed to leave the Job Object, so it tries without.
                #[cfg(windows)]
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    std::os::windows::process::CommandExt::creation_flags(&mut command, 0);
                    command.spawn().expect("a child can be started")
                }
                child => child.expect("a child can be started"),
            }
        }

        /// The first starts the chains and stays; every other is followed by another, until the time has passed.
        #[expect(clippy::zombie_processes, reason = "the parent ends, so no process is left to wait")]
        fn blow(&self) -> ExitCode {
            if self.generation == 0 {
                let _chains: Vec<_> = (0..CHAINS).map(|_| self.start(1, 0)).collect();
                thread::sleep(self.left());
            } else if !self.left().is_zero() {
                self.start(self.generation + 1, 0);
            }
            ExitCode::SUCCESS
        }
    }

    /// Runs a program in a shell within a shell, each of which waits for what it started.
    fn in_shells(program: &std::path::Path) -> Command {
        let (shell, words): (_, &[&str]) = match cfg!(windows) {
            true => ("cmd", &["/d", "/c", "cmd", "/d", "/c"]),
            false => ("sh", &["-c", r#"sh -c '"$0" "$@" & wait' "$0" "$@" & wait"#]),
        };
        let mut command = Command::new(shell);
        command.args(words).arg(program);
        command
    }

    fn now() -> Duration {
        std::time::UNIX_EPOCH.elapsed().expect("it is later than 1970")
    }
}
