//! An executor whose targets are functions in threads, held to the promises of the port by the suite of
//! `hearback-core`.

mod threads;

use std::path::Path;

use hearback_core::CommandLine;
use hearback_core::testing::suite::{self, Commands};
use hearback_core::testing::{FakeStore, PolledSurround};
use threads::{Task, Threads};

fn hello(task: &Task) -> u32 {
    task.print("hello\n");
    3
}

fn sleep(task: &Task) -> u32 {
    task.wait_for_stop();
    1
}

fn main() {
    let argv = |name: &str| CommandLine::Argv(vec![name.into()]);
    let commands = Commands {
        hello_then_3: argv("hello"),
        sleeper: argv("sleep"),
        sleeper_hears: true,
        missing: argv("unknown"),
        cwd: "/".into(),
        no_such_dir: "/nowhere".into(),
    };
    let executor = Threads::new([("hello", hello as fn(&Task) -> u32), ("sleep", sleep)]);
    let surround = PolledSurround::default();
    suite::executor(&executor, &surround, &commands, Path::new("reuse-core"));
    assert_eq!(surround.log_bytes(), b"hello\n");

    // A store is held to its promises in the same way; a project would put its own here.
    suite::record(&FakeStore::default());
    println!("reuse-core: all as promised");
}
