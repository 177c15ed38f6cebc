//! `killat`: runs a program under ptrace and kills it as it enters a chosen system call (Linux).
//!
//! ```text
//! killat count [--only launcher|all] [WHICH] [--for SECONDS] -- PROG ARG…
//! killat kill N [--follow] [--whole] [--wait-root] [WHICH] [--for SECONDS] -- PROG ARG…
//! killat stop N [--follow] [WHICH] [--for SECONDS] -- PROG ARG…
//! WHICH: [--match TEXT] [--from TEXT] [--writes | --flushes]
//! ```
//!
//! `count` prints `syscalls N`, the calls of the main thread of `PROG`, and unless `--only launcher` is given
//! also `all N`, those of all its threads and descendants too. The first is what `kill N` counts, the second
//! what `kill N --follow` counts; both start after the exec of `PROG`.
//!
//! `kill` sends SIGKILL at the entry of the N-th call, which is therefore not made, and says `killed PID`. It
//! kills the process that makes the call; `--whole` kills everything that is traced. The others run on,
//! untraced. If `PROG` has ended before, with `--follow` also all its descendants, it says `finished CODE`
//! (128 + n for signal n). With `--wait-root` it waits for `PROG` after a kill as well, and says both. All of
//! this goes to stderr.
//!
//! `stop` holds the process at the entry of the N-th call instead, says `stopped PID`, and stays. When `killat` is
//! killed, the call is made and everything runs on.
//!
//! `count --since TEXT` also says `exec N` for each program that is executed: how many calls there were since the last
//! one that was given a path with the text in it. Nothing is said before there was one.
//!
//! `--match TEXT` counts only in processes whose command line (joined by spaces) contains the text; it is
//! looked at when a process executes a program, so a forked child is not counted before it does. It includes
//! `--follow`.
//!
//! `--from TEXT` counts, in each process, from the first call on that is given a path with the text in it. `--writes`
//! counts only `write` and its like, `--flushes` only `fsync` and its like. `--from` and `--writes` are for Windows
//! programs under Wine: thousands of calls go by before one begins, and all that it does later and others can see, it
//! writes to a file or asks Wine's server for.
//!
//! Exits 0 when it killed or the program finished, 2 for wrong arguments, 3 when `--for` (default 30) is
//! over: then everything runs on, untraced; 4 when tracing failed.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn main() -> ExitCode {
    tracing::main()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() -> ExitCode {
    eprintln!("killat: only for Linux with glibc");
    ExitCode::from(2)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tracing {
    use std::collections::{HashMap, HashSet};
    use std::env;
    use std::error::Error;
    use std::ffi::OsString;
    use std::os::unix::fs::FileExt;
    use std::os::unix::process::CommandExt;
    use std::process::{self, Command, ExitCode};
    use std::thread;
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::libc;
    use nix::sys::ptrace::{self, Options};
    use nix::sys::signal::{Signal, kill, raise};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    const USAGE: u8 = 2;
    const OUT_OF_TIME: i32 = 3;
    const FAILED: u8 = 4;
    /// The calls by which a process writes.
    const WRITES: [libc::c_long; 4] =
        [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev, libc::SYS_sendmsg];
    /// The calls by which a process flushes a file or a folder.
    const FLUSHES: [libc::c_long; 2] = [libc::SYS_fsync, libc::SYS_fdatasync];
    /// As long as a path may be.
    const TEXT_MAX: usize = 4096;

    #[derive(Debug)]
    struct Plan {
        /// The call to kill or stop at; none to count only.
        kill_at: Option<u64>,
        stop: bool,
        follow: bool,
        whole: bool,
        wait_root: bool,
        matching: Option<String>,
        from: Option<String>,
        /// Only these calls are counted; all if none are named.
        only: &'static [libc::c_long],
        since: Option<String>,
        time: Duration,
        command: Vec<OsString>,
    }

    pub(super) fn main() -> ExitCode {
        let mut args: Vec<OsString> = env::args_os().skip(1).collect();
        if args.first().is_some_and(|arg| arg == "__stopped") {
            args.remove(0);
            return stop_and_exec(&args);
        }
        let plan = match Plan::parse(args) {
            Ok(plan) => plan,
            Err(problem) => {
                eprintln!("killat: {problem}");
                return ExitCode::from(USAGE);
            }
        };
        let time = plan.time;
        thread::spawn(move || {
            thread::sleep(time);
            eprintln!("killat: out of time");
            // The kernel detaches every tracee of a tracer that ends, and lets it run on.
            process::exit(OUT_OF_TIME)
        });
        match Tracer::start(plan).and_then(Tracer::run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("killat: {error}");
                ExitCode::from(FAILED)
            }
        }
    }

    /// The child's side: waits in a stop until it is traced, then becomes the program.
    fn stop_and_exec(command: &[OsString]) -> ExitCode {
        let _ = raise(Signal::SIGSTOP);
        let error = Command::new(&command[0]).args(&command[1..]).exec();
        eprintln!("killat: cannot execute {}: {error}", command[0].display());
        ExitCode::from(127)
    }

    impl Plan {
        fn parse(args: Vec<OsString>) -> Result<Plan, String> {
            let mut args = args.into_iter();
            let mut text = || args.next().map(|arg| arg.to_string_lossy().into_owned());
            let mode = text();
            let kill_at = match mode.as_deref() {
                Some("count") => None,
                Some("kill" | "stop") => {
                    let number = text().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                    Some(number.ok_or("kill and stop need the number of a call, from 1")?)
                }
                _ => return Err("count, kill or stop is missing".to_owned()),
            };
            let mut plan = Plan {
                kill_at,
                stop: mode.as_deref() == Some("stop"),
                follow: kill_at.is_none(),
                whole: false,
                wait_root: false,
                matching: None,
                from: None,
                only: &[],
                since: None,
                time: Duration::from_secs(30),
                command: Vec::new(),
            };
            loop {
                match text().as_deref() {
                    Some("--only") if kill_at.is_none() => match text().as_deref() {
                        Some("launcher") => plan.follow = false,
                        Some("all") => plan.follow = true,
                        _ => return Err("--only is launcher or all".to_owned()),
                    },
                    Some("--follow") if kill_at.is_some() => plan.follow = true,
                    Some("--whole") if kill_at.is_some() => plan.whole = true,
                    Some("--wait-root") if kill_at.is_some() => plan.wait_root = true,
                    Some("--match") => plan.matching = Some(text().ok_or("--match needs a text")?),
                    Some("--from") => plan.from = Some(text().ok_or("--from needs a text")?),
                    Some("--writes") => plan.only = &WRITES,
                    Some("--flushes") => plan.only = &FLUSHES,
                    Some("--since") if kill_at.is_none() => {
                        plan.since = Some(text().ok_or("--since needs a text")?);
                    }
                    Some("--for") => {
                        let seconds = text().and_then(|seconds| seconds.parse().ok());
                        plan.time = Duration::from_secs(seconds.ok_or("--for needs whole seconds")?);
                    }
                    Some("--") => break,
                    other => return Err(format!("`{}` is not expected here", other.unwrap_or("the end"))),
                }
            }
            plan.follow |= plan.matching.is_some();
            plan.command = args.collect();
            if plan.command.is_empty() { Err("PROG is missing".to_owned()) } else { Ok(plan) }
        }
    }

    /// A thread that is traced.
    #[derive(Debug, Clone, Copy)]
    struct Tracee {
        process: Pid,
        counted: bool,
        /// Rests in a group-stop until SIGCONT comes.
        parked: bool,
    }

    #[derive(Debug)]
    struct Tracer {
        plan: Plan,
        root: Pid,
        root_code: Option<i32>,
        tracees: HashMap<Pid, Tracee>,
        /// The processes that have come to where counting starts.
        begun: HashSet<Pid>,
        calls_of_root: u64,
        calls: u64,
        /// How many calls there were when the last one was given the text of `--since`.
        since: Option<u64>,
    }

    impl Tracer {
        fn start(plan: Plan) -> Result<Tracer, Box<dyn Error>> {
            let mut child = Command::new(env::current_exe()?).arg("__stopped").args(&plan.command).spawn()?;
            let root = Pid::from_raw(child.id().try_into()?);
            let mut options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC;
            if plan.follow {
                options |=
                    Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK | Options::PTRACE_O_TRACECLONE;
            }
            let seized = match waitpid(root, Some(WaitPidFlag::WUNTRACED))? {
                WaitStatus::Stopped(..) => {
                    ptrace::seize(root, options).and_then(|()| kill(root, Signal::SIGCONT))
                }
                _ => Err(Errno::ECHILD),
            };
            if let Err(error) = seized {
                let _ = child.kill();
                return Err(format!("cannot trace the program: {error}").into());
            }
            let tracee = Tracee { process: root, counted: false, parked: false };
            let tracees = HashMap::from([(root, tracee)]);
            let begun = HashSet::new();
            Ok(Tracer {
                plan,
                root,
                root_code: None,
                tracees,
                begun,
                calls_of_root: 0,
                calls: 0,
                since: None,
            })
        }

        fn run(mut self) -> Result<(), Box<dyn Error>> {
            while let Some(status) = self.wait()? {
                match status {
                    WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                        // Its descendants are not ours, and may go on for as long as they like.
                        if self.root_code.is_some() && !self.plan.follow {
                            break;
                        }
                    }
                    WaitStatus::PtraceSyscall(tid) => {
                        let tracee = *self.tracee(tid);
                        if tracee.counted && enters_call(tid) && self.is_wanted(tid, tracee.process) {
                            self.calls += 1;
                            self.calls_of_root += u64::from(tid == self.root);
                            if self.plan.kill_at == Some(self.calls) && !self.plan.stop {
                                return self.kill(tracee.process);
                            }
                            if self.plan.kill_at == Some(self.calls) {
                                eprintln!("stopped {}", tracee.process);
                                continue;
                            }
                            self.say_since(tid);
                        }
                        self.resume(tid, None);
                    }
                    WaitStatus::PtraceEvent(tid, _, libc::PTRACE_EVENT_EXEC) => {
                        self.note_exec(tid);
                        self.resume(tid, None);
                    }
                    WaitStatus::PtraceEvent(tid, signal, libc::PTRACE_EVENT_STOP) if stops(signal) => {
                        self.tracee(tid).parked = true;
                    }
                    // A new thread or process, or the news of one.
                    WaitStatus::PtraceEvent(tid, ..) => self.resume(tid, None),
                    WaitStatus::Stopped(tid, signal) => {
                        if signal == Signal::SIGCONT {
                            let process = self.tracee(tid).process;
                            self.unpark(process);
                        }
                        self.resume(tid, Some(signal));
                    }
                    WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
                }
            }
            if self.plan.kill_at.is_none() {
                println!("syscalls {}", self.calls_of_root);
                if self.plan.follow {
                    println!("all {}", self.calls);
                }
            }
            self.say_finished();
            Ok(())
        }

        /// Kills, lets all others go, and returns when what was killed is gone.
        fn kill(mut self, process: Pid) -> Result<(), Box<dyn Error>> {
            kill(process, Signal::SIGKILL)?;
            let everybody: Vec<(Pid, Tracee)> =
                self.tracees.iter().map(|(tid, tracee)| (*tid, *tracee)).collect();
            for (tid, tracee) in everybody {
                if self.plan.whole {
                    // Gone already is as good.
                    let _ = kill(tracee.process, Signal::SIGKILL);
                } else if tracee.parked {
                    self.release(tid, None, process);
                }
            }
            let mut gone = false;
            loop {
                // A whole tree is gone when there is no process to wait for.
                if gone && !self.plan.whole && (!self.plan.wait_root || self.root_code.is_some()) {
                    break;
                }
                let Some(status) = self.wait()? else { break };
                match status {
                    WaitStatus::Exited(tid, _) | WaitStatus::Signaled(tid, ..) => gone |= tid == process,
                    WaitStatus::Stopped(tid, signal) => self.release(tid, Some(signal), process),
                    WaitStatus::PtraceSyscall(tid) | WaitStatus::PtraceEvent(tid, ..) => {
                        self.release(tid, None, process);
                    }
                    WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
                }
            }
            eprintln!("killed {process}");
            if self.plan.wait_root {
                self.say_finished();
            }
            Ok(())
        }

        /// After the kill: detaches a stopped tracee; or kills it too, if it was born too late to be known.
        fn release(&mut self, tid: Pid, signal: Option<Signal>, killed: Pid) {
            let tracee = *self.tracee(tid);
            if self.plan.whole {
                let _ = kill(tracee.process, Signal::SIGKILL);
            } else if tracee.process != killed {
                // Another process may have killed it meanwhile.
                let _ = ptrace::detach(tid, signal);
                self.tracees.remove(&tid);
            }
        }

        /// The next thing that happened to a tracee; none when all have ended.
        fn wait(&mut self) -> Result<Option<WaitStatus>, Box<dyn Error>> {
            let status = loop {
                let mut flags = WaitPidFlag::__WALL;
                // PTRACE_LISTEN, which would tell us about SIGCONT, has no safe wrapper: look for it instead.
                if self.tracees.values().any(|tracee| tracee.parked) {
                    flags |= WaitPidFlag::WNOHANG;
                    self.unpark_continued();
                }
                match waitpid(None, Some(flags)) {
                    Ok(WaitStatus::StillAlive) => thread::sleep(Duration::from_millis(1)),
                    Ok(status) => break status,
                    Err(Errno::EINTR) => {}
                    Err(Errno::ECHILD) => return Ok(None),
                    // The status is consumed, and does not say whose it was.
                    Err(Errno::EINVAL) => {
                        return Err("a tracee got a real-time signal, which cannot be passed on".into());
                    }
                    Err(error) => return Err(error.into()),
                }
            };
            let (ended, code) = match status {
                WaitStatus::Exited(tid, code) => (tid, code),
                WaitStatus::Signaled(tid, signal, _) => (tid, 128 + signal as i32),
                _ => return Ok(Some(status)),
            };
            self.tracees.remove(&ended);
            if ended == self.root {
                self.root_code = Some(code);
            }
            Ok(Some(status))
        }

        /// What is known of a tracee. One not seen before was just attached by the kernel.
        fn tracee(&mut self, tid: Pid) -> &mut Tracee {
            if !self.tracees.contains_key(&tid) {
                let process = process_of(tid);
                let thread_of = self.tracees.get(&process);
                let counted = self.plan.matching.is_none() || thread_of.is_some_and(|leader| leader.counted);
                self.tracees.insert(tid, Tracee { process, counted, parked: false });
            }
            self.tracees.get_mut(&tid).expect("it was just inserted")
        }

        /// Whether the call that a tracee is about to make is one of those that are counted.
        fn is_wanted(&mut self, tid: Pid, process: Pid) -> bool {
            let begun = self.plan.from.is_none() || self.begun.contains(&process);
            if begun && self.plan.only.is_empty() {
                return true;
            }
            let Some(call) = Call::of(tid) else { return false };
            if !begun && !self.plan.from.as_ref().is_some_and(|text| call.is_given(tid, text)) {
                return false;
            }
            self.begun.insert(process);
            self.plan.only.is_empty() || self.plan.only.contains(&call.number)
        }

        /// Says how far it is from the text of `--since` to a program that is executed.
        fn say_since(&mut self, tid: Pid) {
            let Some((text, call)) = self.plan.since.as_ref().and_then(|text| Some((text, Call::of(tid)?)))
            else {
                return;
            };
            match self.since {
                Some(since) if call.number == libc::SYS_execve => println!("exec {}", self.calls - since),
                _ if call.is_given(tid, text) => self.since = Some(self.calls),
                _ => {}
            }
        }

        fn note_exec(&mut self, tid: Pid) {
            // A thread that executes takes over the id of its process; its own is gone without a word.
            if let Ok(former) = ptrace::getevent(tid)
                && former != libc::c_long::from(tid.as_raw())
            {
                self.tracees.retain(|known, _| libc::c_long::from(known.as_raw()) != former);
            }
            let matches = match &self.plan.matching {
                Some(text) => command_line(tid).contains(text),
                None => true,
            };
            self.tracee(tid).counted = matches;
            // Another program, which has yet to begin.
            self.begun.remove(&tid);
        }

        fn resume(&mut self, tid: Pid, signal: Option<Signal>) {
            let resumed = if self.tracee(tid).counted {
                ptrace::syscall(tid, signal)
            } else {
                ptrace::cont(tid, signal)
            };
            // It can only be gone: another process may kill a tracee at any time, and then its end is reported.
            debug_assert!(matches!(resumed, Ok(()) | Err(Errno::ESRCH)), "{resumed:?}");
        }

        fn unpark_continued(&mut self) {
            let parked = self.tracees.values().filter(|tracee| tracee.parked);
            let continued: Vec<Pid> =
                parked.map(|tracee| tracee.process).filter(|pid| is_continued(*pid)).collect();
            for process in continued {
                self.unpark(process);
            }
        }

        fn unpark(&mut self, process: Pid) {
            let mut resting = Vec::new();
            for (tid, tracee) in &mut self.tracees {
                if tracee.parked && tracee.process == process {
                    tracee.parked = false;
                    resting.push(*tid);
                }
            }
            for tid in resting {
                self.resume(tid, None);
            }
        }

        fn say_finished(&self) {
            if let Some(code) = self.root_code {
                eprintln!("finished {code}");
            }
        }
    }

    /// Whether a tracee in a system-call-stop is about to make the call, rather than back from it.
    fn enters_call(tid: Pid) -> bool {
        ptrace::syscall_info(tid).is_ok_and(|info| info.op == libc::PTRACE_SYSCALL_INFO_ENTRY)
    }

    /// A call that is about to be made.
    struct Call {
        number: libc::c_long,
        /// What paths and bytes are among, whichever call it is.
        first_two: [u64; 2],
    }

    impl Call {
        fn of(tid: Pid) -> Option<Call> {
            // The number, then the arguments, as proc(5) has it.
            let line = fs_err::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
            let mut words = line.split(' ');
            let number = words.next()?.parse().ok()?;
            let mut address = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
            Some(Call { number, first_two: [address()?, address()?] })
        }

        fn is_given(&self, tid: Pid, text: &str) -> bool {
            let Ok(memory) = fs_err::File::open(format!("/proc/{tid}/mem")) else { return false };
            self.first_two.iter().any(|at| {
                let mut found = [0; TEXT_MAX];
                // Less than all of it when the memory ends, nothing when this is no address.
                let length = memory.file().read_at(&mut found, *at).unwrap_or(0);
                let end = found[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
                String::from_utf8_lossy(&found[..end]).contains(text)
            })
        }
    }

    fn stops(signal: Signal) -> bool {
        matches!(signal, Signal::SIGSTOP | Signal::SIGTSTP | Signal::SIGTTIN | Signal::SIGTTOU)
    }

    fn process_of(tid: Pid) -> Pid {
        let process = status_field(tid, "Tgid:").and_then(|field| field.parse().ok());
        process.map_or(tid, Pid::from_raw)
    }

    /// Whether SIGCONT waits to be delivered. A tracee is sent it even if it blocks or ignores it.
    fn is_continued(process: Pid) -> bool {
        let pending = status_field(process, "ShdPnd:").and_then(|field| u64::from_str_radix(&field, 16).ok());
        pending.is_none_or(|pending| pending & (1 << (Signal::SIGCONT as u64 - 1)) != 0)
    }

    fn status_field(tid: Pid, name: &str) -> Option<String> {
        let status = fs_err::read_to_string(format!("/proc/{tid}/status")).ok()?;
        status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    }

    fn command_line(tid: Pid) -> String {
        let bytes = fs_err::read(format!("/proc/{tid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    }
}
