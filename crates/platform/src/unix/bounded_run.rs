//! Running a program to its end: input goes in, output comes out, and it has a time limit.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use hearback_core::port::process::{BoundedRun, BoundedRunReport};
use hearback_core::{CommandLine, Exit, ProcessIdentity, StartError, StartErrorKind};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tracing::debug;

use super::{clock, descriptors, identity, signals, tree};
use crate::mark::Names;
use crate::program::{self, Invocation};

/// How the child says that a file of [`BoundedRun::unless`] exists: an error number is all that it can say.
const NOT_WANTED: i32 = libc::ECANCELED;
const CHUNK: usize = 16 * 1024;
/// A pipe that is ready has room for this.
const PIECE: usize = 4096;
/// How long a tree that is out of time may take to die.
const KILL_WITHIN: Duration = Duration::from_secs(2);

pub(crate) fn run(names: &Names, bounded_run: &BoundedRun) -> Result<BoundedRunReport, StartError> {
    let cwd = bounded_run.cwd.clone().unwrap_or_else(|| Path::new("/").to_owned());
    program::check_directory(&cwd)?;
    let invocation = program::resolve(&CommandLine::Argv(bounded_run.argv.clone()), &cwd, None)?;
    let cannot = |error: io::Error| StartError {
        kind: StartErrorKind::Other,
        message: match error.raw_os_error() {
            Some(NOT_WANTED) => {
                format!("`{}` was not run: it is not wanted any more", invocation.program.display())
            }
            _ => format!("cannot run `{}`: {error}", invocation.program.display()),
        },
    };
    // Before anything runs: a program that is started and then cannot be waited for would run unseen. A thread that
    // waits closes its end of a pipe, so that one poll hears of everything.
    let (over, closes) = io::pipe().map_err(cannot)?;
    let (started, starts) = channel::<Child>();
    let wait = move || {
        let status = starts.recv().map_err(io::Error::other)?.wait();
        drop(closes);
        status
    };
    let waiter = std::thread::Builder::new().spawn(wait).map_err(cannot)?;
    let mut child = spawn(names, bounded_run, &invocation, &cwd).map_err(cannot)?;
    let process = identity::identify_child(child.id()).ok();
    let input = InputWriter::new(child.stdin.take(), bounded_run);
    let mut output = OutputReader::new(&mut child, bounded_run.output_max, input);
    let deadline = clock::awake().saturating_add(bounded_run.within);
    // The thread sleeps until it gets this.
    let _ = started.send(child);
    let (exit, survivors) = match output.until(&over, deadline) {
        true => (waiter.join().ok().and_then(|status| exit_or_unknown(status).ok()), Vec::new()),
        // The thread is not waited for. It reaps the program when that ends, and a process that cannot be killed (of
        // another user, or stuck in the kernel) may take for ever.
        false => (None, end(names, bounded_run, process.as_ref())),
    };
    output.rest();
    Ok(BoundedRunReport { exit, survivors, stdout: output.out.kept, stderr: output.err.kept })
}

#[expect(clippy::disallowed_methods, reason = "the platform crate is where processes are started")]
fn spawn(names: &Names, bounded_run: &BoundedRun, what: &Invocation, cwd: &Path) -> io::Result<Child> {
    let mut command = Command::new(&what.program);
    command.arg0(&what.name).args(&what.arguments).current_dir(cwd);
    // What is woken belongs to no job, and what it launches is its own.
    command.env_remove(names.answer).env_remove(names.job).env_remove(names.supervisor);
    command.env(names.bounded_run, bounded_run.mark.as_str());
    for (name, value) in &bounded_run.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let us = std::process::id();
    let unless = bounded_run.unless.iter().map(|path| CString::new(path.as_os_str().as_bytes()));
    let unless = unless.collect::<Result<Vec<_>, _>>()?;
    // SAFETY: `prepare` makes async-signal-safe calls only, and so does a look at a name; neither allocates.
    unsafe {
        command.pre_exec(move || {
            prepare(us)?;
            // Last: from here it is one call to the program. A name that cannot be looked at keeps nothing back.
            match unless.iter().any(|name| rustix::fs::lstat(name.as_c_str()).is_ok()) {
                true => Err(io::Error::from_raw_os_error(NOT_WANTED)),
                false => Ok(()),
            }
        });
    }
    command.spawn()
}

/// How a program is called that is run in front of us: as it was named, which the system knows to find.
pub(crate) fn named_in_front(program: &OsStr) -> OsString {
    program.into()
}

/// Runs a program in front of us, with our streams and our terminal, until it ends.
pub(crate) fn run_in_front(mut command: Command) -> io::Result<Exit> {
    #[cfg(target_os = "linux")]
    {
        // The process that runs it is gone, and would have recorded the end of the turn.
        let follow = || Ok(nix::sys::prctl::set_pdeathsig(Some(nix::sys::signal::Signal::SIGTERM))?);
        // SAFETY: one call into the kernel.
        unsafe { command.pre_exec(follow) };
    }
    let _breaks = signals::BreaksAreForTheChild::new()?;
    exit_or_unknown(command.spawn()?.wait())
}

/// Runs in the forked child.
fn prepare(parent: u32) -> io::Result<()> {
    nix::unistd::setsid()?;
    signals::reset();
    descriptors::restore_limit();
    #[cfg(target_os = "linux")]
    {
        // The caller is gone, so no process would ever record the result; the run is repeated.
        nix::sys::prctl::set_pdeathsig(Some(nix::sys::signal::Signal::SIGKILL))?;
    }
    if nix::unistd::getppid().as_raw().unsigned_abs() != parent {
        return Err(io::ErrorKind::Interrupted.into());
    }
    Ok(())
}

/// The input of the program, until it is written.
struct InputWriter {
    stdin: Option<ChildStdin>,
    bytes: Vec<u8>,
    /// Whether the program may get it now.
    may_begin: bool,
}

impl InputWriter {
    fn new(stdin: Option<ChildStdin>, bounded_run: &BoundedRun) -> Self {
        // A pipe that cannot be set so is written in pieces that it has room for, and blocks for a moment at worst.
        let _ = stdin.as_ref().map(|stdin| fcntl(stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)));
        Self { stdin, bytes: bounded_run.stdin.clone(), may_begin: !bounded_run.speaks_first }
    }

    /// What there is to be written now.
    fn pipe(&self) -> Option<&ChildStdin> {
        self.stdin.as_ref().filter(|_| self.may_begin)
    }

    /// Writes what there is room for, and closes the input after the last of it. A program that ends, or closes its
    /// input, without reading all of it is none of our business.
    fn write(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        let piece = self.bytes.len().min(PIECE);
        match stdin.write(&self.bytes[..piece]) {
            Ok(n) => drop(self.bytes.drain(..n)),
            Err(error) if is_for_later(&error) => return,
            Err(_) => self.bytes.clear(),
        }
        if self.bytes.is_empty() {
            self.stdin = None;
        }
    }
}

/// Whether a call is to be repeated.
fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// Kills a run that is out of time, and returns what survives that.
fn end(names: &Names, bounded_run: &BoundedRun, process: Option<&ProcessIdentity>) -> Vec<ProcessIdentity> {
    let marked = names.membership(&bounded_run.mark);
    match tree::sweep(&marked, process, Duration::ZERO, KILL_WITHIN) {
        Ok(report) => report.survivors,
        Err(error) => {
            debug!(mark = %bounded_run.mark, %error, "processes cannot be looked for");
            // Nothing could be looked for, so nothing is known to be gone.
            process.into_iter().cloned().collect()
        }
    }
}

/// How a program ended. Where this process ignores SIGCHLD, the kernel keeps no exit: the program ran, and how it ended
/// is unknown.
fn exit_or_unknown(waited: io::Result<ExitStatus>) -> io::Result<Exit> {
    match waited {
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(Exit::Unknown),
        waited => waited.map(exit_of),
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Exited { code: code.unsigned_abs() },
        (None, signal) => Exit::Signaled { signal: signal.unwrap_or(0), core: status.core_dumped() },
    }
}

/// What is kept of one stream.
struct Stream {
    pipe: Option<PipeReader>,
    kept: Vec<u8>,
    most: usize,
}

impl Stream {
    fn new(pipe: Option<impl Into<std::os::fd::OwnedFd>>, most: usize) -> Self {
        let pipe = pipe.map(|pipe| PipeReader::from(pipe.into()));
        // The system does not refuse this of an open pipe.
        let pipe = pipe.filter(|pipe| fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).is_ok());
        Self { pipe, kept: Vec::new(), most }
    }

    /// Reads one piece, and keeps of it what there is room for; tells whether there may be more.
    fn read(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        let mut chunk = [0; CHUNK];
        match pipe.read(&mut chunk) {
            Ok(0) => self.pipe = None,
            Ok(n) => {
                let room = self.most.saturating_sub(self.kept.len()).min(n);
                self.kept.extend_from_slice(&chunk[..room]);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.pipe = None,
        }
        false
    }
}

/// Both output streams, and the input that may have to wait for the first line.
struct OutputReader {
    out: Stream,
    err: Stream,
    input: InputWriter,
}

impl OutputReader {
    fn new(child: &mut Child, most: usize, input: InputWriter) -> Self {
        let (out, err) = (Stream::new(child.stdout.take(), most), Stream::new(child.stderr.take(), most));
        Self { out, err, input }
    }

    /// Listens until the program has ended, which closes `over`; tells whether that was before the deadline.
    fn until(&mut self, over: &PipeReader, deadline: Duration) -> bool {
        loop {
            let left = deadline.saturating_sub(clock::awake());
            if left.is_zero() {
                return false;
            }
            let [has_ended, out_ready, err_ready, in_ready] = {
                let wanted = [
                    Some((over.as_fd(), PollFlags::POLLIN)),
                    self.out.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::POLLIN)),
                    self.err.pipe.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::POLLIN)),
                    self.input.pipe().map(|pipe| (pipe.as_fd(), PollFlags::POLLOUT)),
                ];
                let mut sources: Vec<_> =
                    wanted.iter().flatten().map(|(pipe, what)| PollFd::new(*pipe, *what)).collect();
                let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
                if poll(&mut sources, timeout).is_err() {
                    continue; // Interrupted; whatever it was, the next look tells.
                }
                let mut ready = sources.iter().map(|source| source.any().unwrap_or(false));
                wanted.map(|wanted| wanted.is_some() && ready.next().unwrap_or(false))
            };
            if out_ready {
                self.out.read();
                self.input.may_begin |= self.out.kept.contains(&b'\n');
            }
            if err_ready {
                self.err.read();
            }
            if in_ready {
                self.input.write();
            }
            if has_ended {
                return true;
            }
        }
    }

    /// What is in the pipes now, without waiting for processes that still hold them.
    fn rest(&mut self) {
        for stream in [&mut self.out, &mut self.err] {
            let mut pieces = 0;
            while pieces < 1024 && stream.read() {
                pieces += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    use hearback_core::JobId;
    use hearback_core::port::process::SweepReport;
    use hearback_core::testing::sample;

    fn run(bounded_run: &BoundedRun) -> Result<BoundedRunReport, StartError> {
        super::run(&Names::HEARBACK, bounded_run)
    }

    static MADE: AtomicU64 = AtomicU64::new(0);

    fn bounded_run(script: &str) -> BoundedRun {
        BoundedRun {
            argv: ["sh", "-c", script].map(Into::into).to_vec(),
            cwd: None,
            env: Vec::new(),
            stdin: b"hello\n".to_vec(),
            speaks_first: false,
            within: Duration::from_secs(20),
            output_max: 1000,
            // A run that is out of time is ended by its mark, so no two have the same.
            mark: sample::id(u64::from(std::process::id()) * 64 + MADE.fetch_add(1, Ordering::Relaxed)),
            unless: Vec::new(),
        }
    }

    #[test]
    fn a_program_does_not_begin_if_a_file_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let (absent, there) = (dir.path().join("absent"), dir.path().join("there"));
        let unless = |paths: &[&Path]| BoundedRun {
            unless: paths.iter().map(|path| path.to_path_buf()).collect(),
            cwd: Some(dir.path().to_owned()),
            ..bounded_run("echo ran > there")
        };
        assert!(run(&unless(&[&absent])).is_ok());
        assert!(there.exists());
        fs_err::write(&there, "before").unwrap();
        let error = run(&unless(&[&absent, &there])).unwrap_err();
        assert!(error.message.contains("not wanted any more"), "{error:?}");
        assert_eq!(fs_err::read_to_string(there).unwrap(), "before", "nothing ran");
    }

    #[test]
    fn what_goes_in_comes_out_with_its_code() {
        let report = run(&bounded_run("cat; echo no >&2; exit 3")).unwrap();
        assert_eq!(report.exit, Some(Exit::Exited { code: 3 }));
        assert_eq!((report.stdout, report.stderr), (b"hello\n".to_vec(), b"no\n".to_vec()));
        let flood = run(&bounded_run("yes | head -c 100000")).unwrap();
        assert_eq!((flood.exit, flood.stdout.len()), (Some(Exit::Exited { code: 0 }), 1000));
        let deaf = run(&BoundedRun { stdin: vec![b'x'; 1_000_000], ..bounded_run("exit 0") }).unwrap();
        assert_eq!(deaf.exit, Some(Exit::Exited { code: 0 }));
        let missing = BoundedRun { argv: vec!["no-such-program".into()], ..bounded_run("") };
        assert_eq!(run(&missing).unwrap_err().kind, StartErrorKind::NotFound);
    }

    #[test]
    fn one_that_speaks_first_is_told_nothing_before() {
        let speaks = |script| BoundedRun { speaks_first: true, ..bounded_run(script) };
        let polite = run(&speaks("echo hi$(timeout 0.3 cat); cat")).unwrap();
        assert_eq!(polite.stdout, b"hi\nhello\n");
        let silent = BoundedRun { within: Duration::from_millis(300), ..speaks("cat") };
        let silent = run(&silent).unwrap();
        assert_eq!((silent.exit, silent.stdout), (None, Vec::new()));
    }

    #[test]
    fn a_process_that_keeps_the_pipes_open_keeps_no_caller_waiting() {
        let began = clock::awake();
        let report = run(&bounded_run("sleep 5 & echo started")).unwrap();
        assert_eq!((report.exit, report.stdout), (Some(Exit::Exited { code: 0 }), b"started\n".to_vec()));
        assert!(clock::awake() - began < Duration::from_secs(4));
    }

    /// Sends `script` out, which makes a file `up` of the folder that it runs in when it is ready, and sweeps it.
    fn swept(script: &str, grace: Duration) -> (tempfile::TempDir, SweepReport, Option<Exit>) {
        let dir = tempfile::tempdir().unwrap();
        let mark = JobId::mint(clock::since_boot().as_micros() as u64, std::process::id().into());
        let bounded_run =
            BoundedRun { cwd: Some(dir.path().to_owned()), mark: mark.clone(), ..bounded_run(script) };
        let sent = std::thread::spawn(move || run(&bounded_run));
        while !dir.path().join("up").exists() {
            assert!(!sent.is_finished(), "it did not get ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        let report = tree::sweep(&Names::HEARBACK.membership(&mark), None, grace, KILL_WITHIN).unwrap();
        (dir, report, sent.join().unwrap().unwrap().exit)
    }

    #[test]
    fn a_process_that_is_terminated_first_may_clean_up() {
        let polite = "trap 'echo bye >bye; exit 7' TERM; >up; while :; do sleep 0.1; done";
        let long = Duration::from_secs(3600);
        let (dir, report, exit) = swept(polite, long);
        assert_eq!(exit, Some(Exit::Exited { code: 7 }));
        assert_eq!(fs_err::read_to_string(dir.path().join("bye")).unwrap(), "bye\n");
        assert!(report.terminated >= 1 && report.ended == report.terminated, "{report:?}");
        let (dir, report, exit) = swept(polite, Duration::ZERO);
        assert_eq!(exit, Some(Exit::Signaled { signal: libc::SIGKILL, core: false }));
        assert!(!dir.path().join("bye").exists(), "none was terminated");
        assert_eq!(report.terminated, 0);
    }

    #[test]
    fn who_does_not_hear_is_forced_after_the_grace() {
        let grace = Duration::from_millis(200);
        let began = clock::awake();
        let (_dir, report, exit) = swept("trap '' TERM; >up; while :; do sleep 0.1; done", grace);
        assert_eq!(exit, Some(Exit::Signaled { signal: libc::SIGKILL, core: false }));
        assert!(clock::awake() - began >= grace, "it had its time");
        assert!(report.terminated >= 1 && report.survivors.is_empty(), "{report:?}");
    }

    #[test]
    fn out_of_time_the_whole_tree_goes() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let script = format!("(setsid sleep 60 & echo $! >{0}); echo $$ >>{0}; sleep 60", pids.display());
        let report = run(&BoundedRun { within: Duration::from_millis(500), ..bounded_run(&script) }).unwrap();
        assert_eq!(report.exit, None);
        let pids = fs_err::read_to_string(pids).unwrap();
        assert_eq!(pids.lines().count(), 2);
        for pid in pids.lines() {
            assert_eq!(identity::identify(pid.parse().unwrap()).unwrap(), None, "{pid} is still there");
        }
    }
}
