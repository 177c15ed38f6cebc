//! A terminal with a program in it: a pty.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::run::{RUN_MAX, collect};
use crate::{KillOnDrop, Ran};

/// Makes a terminal of the given width, and becomes the program.
const WIDE: &str = r#"stty rows 24 cols "$0" && exec "$@""#;

/// A terminal with a program in it, such as a window that a person can close.
#[derive(Debug)]
pub struct Terminal {
    program: KillOnDrop,
    screen: std::fs::File,
    /// What was read while the program ran.
    seen: Vec<u8>,
}

impl Terminal {
    /// Runs a program as the leader of a session whose terminal this is. It is wider than anything that is printed.
    #[track_caller]
    pub fn run(command: &Command) -> Terminal {
        Terminal::start(&[], command)
    }

    /// The same in a terminal with so many columns.
    #[track_caller]
    pub fn with_columns(columns: u16, command: &Command) -> Terminal {
        Terminal::start(&["sh", "-c", WIDE, &columns.to_string()], command)
    }

    #[track_caller]
    fn start(before: &[&str], command: &Command) -> Terminal {
        use nix::fcntl::OFlag;
        use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
        use std::os::unix::fs::OpenOptionsExt;

        // A program that inherited our end would keep the window open.
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
        let slave = options.open(ptsname_r(&master).unwrap()).unwrap();
        let stream = || Stdio::from(slave.try_clone().unwrap());
        // It leads no group yet, so it does not fork: its own process becomes the program.
        let mut within = Command::new("setsid");
        within.arg("--ctty").args(before).arg(command.get_program()).args(command.get_args());
        within.env("TERM", "xterm");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => within.env(name, value),
                None => within.env_remove(name),
            };
        }
        within.stdin(stream()).stdout(stream()).stderr(stream());
        let program = KillOnDrop(within.spawn().expect("setsid is part of every Linux"));
        Terminal { program, screen: std::os::fd::OwnedFd::from(master).into(), seen: Vec::new() }
    }

    /// Types a line, whether or not a program has asked for it yet.
    pub fn type_line(&mut self, line: &str) {
        writeln!(self.screen, "{line}").expect("the terminal is open");
    }

    /// Presses Ctrl-C. The program may have ended.
    pub fn interrupt(&mut self) {
        let _ = self.screen.write_all(b"\x03");
    }

    /// Waits until something is to be seen.
    #[track_caller]
    pub fn until_seen(&mut self, what: &str) {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;

        let deadline = std::time::Instant::now() + RUN_MAX;
        while !String::from_utf8_lossy(&self.seen).contains(what) {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let mut screen = [PollFd::new(self.screen.as_fd(), PollFlags::POLLIN)];
            let is_ready = poll(&mut screen, PollTimeout::try_from(left).unwrap()).unwrap() > 0;
            let mut block = [0; 4096];
            let read = if is_ready { self.screen.read(&mut block).unwrap_or(0) } else { 0 };
            assert!(read > 0, "`{what}` is not to be seen: {}", String::from_utf8_lossy(&self.seen));
            self.seen.extend_from_slice(&block[..read]);
        }
    }

    /// Whether the program has ended.
    pub fn is_over(&mut self) -> bool {
        self.program.0.try_wait().expect("only this process waits for the child").is_some()
    }

    /// Waits until no process has the terminal open any more, and returns what was printed there.
    #[track_caller]
    pub fn finish(mut self) -> Ran {
        let printed = collect(self.screen).recv_timeout(RUN_MAX).expect("the terminal is let go in time");
        let code = self.program.0.wait().expect("only this process waits for the child").code();
        // The terminal begins each line at the left.
        let printed = [self.seen, printed].concat();
        let stdout = String::from_utf8_lossy(&printed).replace("\r\n", "\n");
        Ran { code, stdout, stderr: String::new() }
    }

    /// Closes the window: the processes in its foreground get a hangup.
    pub fn close(mut self) {
        drop(self.screen);
        self.program.0.wait().expect("only this process waits for the child");
    }
}
