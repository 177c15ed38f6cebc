//! Running a program to its end.

use std::env;
use std::fmt::{self, Display, Formatter};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// From the list of errors of Windows; no other system has one of this number.
const ERROR_INTERNAL_ERROR: i32 = 1359;
pub(crate) const RUN_MAX: Duration = Duration::from_secs(60);

/// How a program ended, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Its output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its diagnostics.
    pub stderr: String,
}

impl Ran {
    /// Asserts that it succeeded, and returns its output without the surrounding white space.
    #[track_caller]
    pub fn ok(&self) -> String {
        self.exits(0);
        self.stdout.trim().to_owned()
    }

    /// Asserts that it ended with this exit code.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Ran {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Asserts that it refused: it ended with this exit code and printed nothing but diagnostics.
    #[track_caller]
    pub fn refuses(&self, code: i32) -> &Ran {
        self.exits(code);
        assert!(self.stdout.is_empty(), "it refused, and printed something: {self}");
        self
    }

    /// Asserts that its diagnostics contain this.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Ran {
        assert!(self.stderr.contains(text), "it does not say `{text}`: {self}");
        self
    }

    /// Asserts that its output contains this.
    #[track_caller]
    pub fn prints(&self, text: &str) -> &Ran {
        assert!(self.stdout.contains(text), "it does not print `{text}`: {self}");
        self
    }
}

impl Display for Ran {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Runs a program until it has ended and its output is closed, at most a minute.
///
/// # Panics
///
/// If it cannot be started, or if a process still holds its output after that minute.
#[track_caller]
pub fn run(mut command: Command) -> Ran {
    let shown = format!("{command:?}");
    let child = spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut child = KillOnDrop(child.unwrap_or_else(|error| panic!("cannot start {shown}: {error}")));
    let stdout = collect(child.0.stdout.take().expect("stdout is piped"));
    let stderr = collect(child.0.stderr.take().expect("stderr is piped"));
    let deadline = Instant::now() + RUN_MAX;
    let text = |end: Receiver<Vec<u8>>| {
        let bytes = end.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let (Some(stdout), Some(stderr)) = (text(stdout), text(stderr)) else {
        panic!("the output of {shown} was not closed within {RUN_MAX:?}")
    };
    let code = child.0.wait().expect("only this process waits for the child").code();
    Ran { code, stdout, stderr }
}

/// Starts a program. Wine loses one in some thousands before it is there, and calls that an internal error; hearback
/// tries again as well when it starts a program.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut tried = 1;
    loop {
        match command.spawn() {
            Err(error) if error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) && tried < 5 => {
                eprintln!("started again: {error}");
                tried += 1;
            }
            other => return other,
        }
    }
}

// Both streams are read at once, or a program that fills one of them would block for ever.
pub(crate) fn collect(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error still helps to understand a failure.
        let _ = stream.read_to_end(&mut bytes);
        sender.send(bytes)
    });
    receiver
}

/// A child that is killed and reaped when the test is done with it, however the test ends.
#[derive(Debug)]
pub struct KillOnDrop(pub Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // As long as it is not reaped its pid cannot be reused, so this reaches no other process.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path of hearback, or of a fixture program, next to the running test.
#[track_caller]
pub fn bin(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    // Tests are in `deps`, the programs one folder up.
    let folder = test.parent().and_then(Path::parent).expect("a test is in the target folder");
    let path = folder.join(format!("{name}{}", env::consts::EXE_SUFFIX));
    assert!(path.is_file(), "build the programs too: cargo test --workspace");
    path
}

/// Copies hearback or a fixture program, so that the copy can be started at once.
///
/// On Unix another process does it. No program can be started that a process has open for writing, and a child that
/// another thread starts meanwhile has what we have open, until it becomes its program.
#[track_caller]
pub fn copy_program(name: &str, to: impl AsRef<Path>) {
    #[cfg(unix)]
    {
        let mut copy = Command::new("cp");
        copy.arg(bin(name)).arg(to.as_ref()).stdin(Stdio::null());
        run(copy).ok();
    }
    #[cfg(windows)]
    fs_err::copy(bin(name), to).unwrap();
}
