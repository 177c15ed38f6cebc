//! A terminal with a shell in it whose screen can be read: one of tmux, with a server of its own.

use std::process::{Command, Stdio};

use crate::{Ran, World, eventually, run, skipped};

/// A screen of tmux. Its server ends with it, and no other one is touched.
#[derive(Debug)]
pub struct Tmux<'a> {
    world: &'a World,
}

impl<'a> Tmux<'a> {
    /// Begins a shell on a screen of this size; nothing, with the reason printed, where there is no tmux.
    #[track_caller]
    pub fn new(world: &'a World, columns: u16, rows: u16) -> Option<Tmux<'a>> {
        let there_is = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        if there_is.is_err() {
            skipped("needs tmux");
            return None;
        }
        let tmux = Tmux { world };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        tmux.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, "env PS1='$ ' sh"])
            .ok();
        tmux.until("$");
        Some(tmux)
    }

    #[track_caller]
    fn tmux(&self, args: &[&str]) -> Ran {
        let mut command = Command::new("tmux");
        self.world.settle(&mut command);
        // The programs in it see a terminal of tmux, wherever the tests run.
        command
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .arg("-S")
            .arg(self.world.scratch("tmux"))
            .args(args);
        run(command)
    }

    /// Types text, as it is.
    #[track_caller]
    pub fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]).ok();
    }

    /// Presses a key that has a name, such as `Enter` or `C-c`.
    #[track_caller]
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]).ok();
    }

    /// Pastes text, as a person does from another window.
    #[track_caller]
    pub fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]).ok();
        self.tmux(&["paste-buffer", "-p"]).ok();
    }

    /// Types a line for the shell.
    #[track_caller]
    pub fn command(&self, line: &str) {
        self.type_text(line);
        self.press("Enter");
    }

    /// Gives the screen another size.
    #[track_caller]
    pub fn resize(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]).ok();
    }

    /// The text on the screen.
    #[track_caller]
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"]).exits(0).stdout.clone()
    }

    /// What tmux knows about the terminal, such as `#{cursor_flag}`.
    #[track_caller]
    pub fn says(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).ok()
    }

    /// Waits until something is on the screen, and returns all of it.
    #[track_caller]
    pub fn until(&self, what: &str) -> String {
        eventually(&format!("`{what}` is on the screen"), || {
            Some(self.screen()).filter(|it| it.contains(what))
        })
    }

    /// Waits until something is no longer on the screen, and returns what is.
    #[track_caller]
    pub fn until_gone(&self, what: &str) -> String {
        eventually(&format!("`{what}` is gone"), || Some(self.screen()).filter(|it| !it.contains(what)))
    }

    /// The process that the shell runs in the foreground.
    #[track_caller]
    pub fn foreground(&self) -> u32 {
        let shell = self.says("#{pane_pid}");
        eventually("the shell runs a program", || {
            let stat = fs_err::read_to_string(format!("/proc/{shell}/stat")).unwrap();
            // After the name in brackets: the state, the parent, the group, the session, the terminal, and the group in
            // its foreground, whose leader the program is.
            let group = stat.rsplit(')').next()?.split_whitespace().nth(5)?.to_owned();
            (group != shell).then(|| group.parse().unwrap())
        })
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}
