//! A terminal with somebody in it.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::run::{RUN_MAX, collect};
use crate::{KillOnDrop, Ran, World, bin};

/// A terminal with a shell in it, such as a window that a person can close.
#[derive(Debug)]
pub struct Terminal {
    shell: KillOnDrop,
    screen: std::fs::File,
}

impl Terminal {
    /// Runs a script with `sh` as the leader of a session whose terminal this is. `$1` and so on are `args`,
    /// and `$HEARBACK` is hearback.
    #[track_caller]
    pub fn run(world: &World, script: &str, args: &[&OsStr], variables: &[(&str, &str)]) -> Terminal {
        use nix::fcntl::OFlag;
        use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
        use std::os::unix::fs::OpenOptionsExt;

        // Whoever inherited our end would keep the window open.
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
        grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
        let slave = options.open(ptsname_r(&master).unwrap()).unwrap();
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        world.settle(&mut command);
        // It leads no group yet, so it does not fork: its own process becomes the shell.
        command.args(["--ctty", "sh", "-c", script, "sh"]).args(args);
        command.env("HEARBACK", bin("hearback")).env("TERM", "xterm").env_remove("CLICOLOR_FORCE");
        command.envs(variables.iter().copied());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let shell = KillOnDrop(command.spawn().expect("setsid is part of every Linux"));
        Terminal { shell, screen: std::os::fd::OwnedFd::from(master).into() }
    }

    /// Types a line, whether or not anybody has asked for it yet.
    pub fn type_line(&mut self, line: &str) {
        writeln!(self.screen, "{line}").expect("the terminal is open");
    }

    /// Waits until nobody has the terminal open any more, and returns what was printed there.
    #[track_caller]
    pub fn finish(mut self) -> Ran {
        let printed = collect(self.screen).recv_timeout(RUN_MAX).expect("the terminal is let go in time");
        let code = self.shell.0.wait().expect("nobody else waits for this child").code();
        Ran { code, stdout: String::from_utf8_lossy(&printed).into_owned(), stderr: String::new() }
    }

    /// Closes the window: the shell and whatever is in its foreground are told to hang up.
    pub fn close(mut self) {
        drop(self.screen);
        self.shell.0.wait().expect("nobody else waits for this child");
    }
}
