//! A terminal with a program in it: a pseudo console, and the fixture `seat`, which starts the program there.

use std::process::Command;
use std::time::Duration;

use fs_err as fs;
use hearback_platform::testing::InTerminal;
use tempfile::TempDir;

use super::screen;
use crate::run::RUN_MAX;
use crate::{Ran, bin, is_wine};

/// More than anything that is printed in one.
const COLUMNS: u16 = 300;
const ROWS: u16 = 300;
/// How often a terminal is asked for under Wine, and the pause in between.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// A terminal with a program in it, such as a window that a person can close.
pub struct Terminal {
    program: InTerminal,
    columns: u16,
    /// The file that makes the seat press Ctrl-C.
    folder: TempDir,
}

impl Terminal {
    /// Runs a program in a terminal of its own. It is wider than anything that is printed.
    #[track_caller]
    pub fn run(command: &Command) -> Terminal {
        Terminal::with_columns(COLUMNS, command)
    }

    /// The same in a terminal with so many columns.
    #[track_caller]
    pub fn with_columns(columns: u16, command: &Command) -> Terminal {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let mut seat = Command::new(bin("seat"));
        seat.arg(folder.path().join("ctrl-c")).arg(command.get_program()).args(command.get_args());
        // The variables that describe the terminal around us are wrong for this one.
        seat.env_remove("TERM");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => seat.env(name, value),
                None => seat.env_remove(name),
            };
        }
        let mut program = InTerminal::start(&seat, columns, ROWS);
        // Wine refuses one now and then while the machine is busy. A test is about what runs in it.
        for _ in 0..TRIES {
            if program.is_ok() || !is_wine() {
                break;
            }
            std::thread::sleep(PAUSE);
            program = InTerminal::start(&seat, columns, ROWS);
        }
        let program = program.expect("there are pseudo consoles since 2018");
        Terminal { program, columns, folder }
    }

    /// Types a line, whether or not a program has asked for it yet.
    pub fn type_line(&mut self, line: &str) {
        self.program.type_in(&format!("{line}\r")).expect("the terminal is open");
    }

    /// Presses Ctrl-C. The program may have ended.
    pub fn interrupt(&mut self) {
        // Not typed: Wine takes that for the end of the terminal.
        fs::write(self.folder.path().join("ctrl-c"), "").unwrap();
    }

    /// Whether the program has ended.
    pub fn is_over(&mut self) -> bool {
        self.code(Duration::ZERO).is_some()
    }

    /// Waits until the program has ended, and returns what is to be seen in the terminal then: text, with a sequence
    /// wherever the colours change.
    #[track_caller]
    pub fn finish(mut self) -> Ran {
        let code = self.code(RUN_MAX).expect("the program ends in time");
        let printed = self.program.close().recv_timeout(RUN_MAX).expect("the terminal is let go in time");
        let stdout = screen::shown(&printed, self.columns.into(), ROWS.into());
        Ran { code: Some(code), stdout, stderr: String::new() }
    }

    /// Closes the window: the processes in it are notified, and end.
    #[track_caller]
    pub fn close(mut self) {
        drop(self.program.close());
        self.code(RUN_MAX).expect("a process in a window ends with it");
    }

    fn code(&self, within: Duration) -> Option<i32> {
        let code = self.program.wait(within).expect("a child can be waited for");
        code.map(u32::cast_signed)
    }
}
