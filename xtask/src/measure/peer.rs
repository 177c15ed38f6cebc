//! The tools that `cargo xtask measure peers` knows: how each is started, asked, and told to wait.
//!
//! The first word of a command line is `{}` for the tool itself, and `{home}` in a word is the folder of its state.

use std::path::{Path, PathBuf};

/// One tool.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// What has to be on the PATH. Nothing: hearback itself.
    pub(super) program: &'static str,
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Commands that make it ready.
    pub(super) start: &'static [&'static [&'static str]],
    /// Starts the job whose command line follows.
    pub(super) launch: &'static [&'static str],
    /// Its id in what a launch prints.
    pub(super) id: fn(&str) -> &str,
    /// Waits for the job whose id follows; empty if it cannot.
    pub(super) wait: &'static [&'static str],
    /// Lists the newest 20 jobs, or all if it cannot list fewer; empty if it has no list.
    pub(super) list: &'static [&'static str],
    /// How many of its processes stay when no job runs.
    pub(super) daemons: usize,
}

impl Peer {
    /// The program, if it is there.
    pub(super) fn find(&self, hearback: &Path) -> Option<PathBuf> {
        if self.program.is_empty() {
            return Some(hearback.to_owned());
        }
        std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(self.program))
            .find(|program| program.is_file())
    }
}

/// hearback is first: the others are compared with it.
pub(super) const PEERS: [Peer; 7] = [
    Peer {
        name: "hearback",
        program: "",
        env: &[("HEARBACK_HOME", "{home}")],
        start: &[],
        launch: &["{}", "launch", "--quiet", "--"],
        id: str::trim,
        wait: &["{}", "wait"],
        list: &["{}", "list", "-n", "20"],
        daemons: 0,
    },
    Peer {
        name: "hearback, durability process",
        program: "",
        env: &[("HEARBACK_HOME", "{home}"), ("HEARBACK_DURABILITY", "process")],
        start: &[],
        launch: &["{}", "launch", "--quiet", "--"],
        id: str::trim,
        wait: &["{}", "wait"],
        list: &[],
        daemons: 0,
    },
    Peer {
        name: "setsid in sh",
        program: "setsid",
        env: &[("HOME", "{home}")],
        start: &[],
        launch: &["sh", "-c", "setsid \"$@\" </dev/null >>output 2>&1 &", "sh"],
        id: str::trim,
        wait: &[],
        list: &[],
        daemons: 0,
    },
    Peer {
        name: "pueue",
        program: "pueue",
        env: &[("HOME", "{home}"), ("XDG_RUNTIME_DIR", "{home}")],
        start: &[&["pueued", "--daemonize"], &["{}", "parallel", "32"]],
        launch: &["{}", "add", "--print-task-id", "--"],
        id: str::trim,
        wait: &["{}", "wait", "--quiet"],
        list: &["{}", "status", "last 20"],
        daemons: 1,
    },
    Peer {
        name: "task-spooler",
        program: "tsp",
        env: &[("TMPDIR", "{home}"), ("TS_MAXFINISHED", "20000"), ("TS_SLOTS", "32")],
        start: &[&["{}"]],
        launch: &["{}"],
        id: str::trim,
        wait: &["{}", "-w"],
        list: &["{}", "-l"],
        daemons: 1,
    },
    Peer {
        name: "nq",
        program: "nq",
        env: &[("NQDIR", "{home}")],
        start: &[],
        launch: &["{}"],
        id: str::trim,
        wait: &["{}", "-w"],
        list: &[],
        daemons: 0,
    },
    Peer {
        name: "agent-exec",
        program: "agent-exec",
        env: &[("HOME", "{home}"), ("AGENT_EXEC_ROOT", "{home}")],
        start: &[],
        launch: &["{}", "run", "--no-wait", "--"],
        id: |text| {
            text.split("\"job_id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default()
        },
        wait: &["{}", "wait"],
        list: &["{}", "list", "--limit", "20"],
        daemons: 0,
    },
];
