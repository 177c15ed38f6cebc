//! Windows.

pub(crate) mod ancestors;
#[expect(unsafe_code, reason = "events have no safe wrapper")]
pub(crate) mod bell;
pub(crate) mod bounded_run;
#[expect(unsafe_code, reason = "a handle is ours only because the call that made it says so")]
mod call;
#[expect(unsafe_code, reason = "the clocks have no safe wrapper")]
pub(crate) mod clock;
mod command_line;
pub(crate) mod descriptors;
#[expect(unsafe_code, reason = "standard handles and job membership have no safe wrapper")]
pub(crate) mod detach;
#[expect(unsafe_code, reason = "names are compared as the system compares them")]
mod environment;
#[expect(unsafe_code, reason = "a process, its exit code and what it used are behind raw handles")]
pub(crate) mod executor;
#[expect(unsafe_code, reason = "renaming and telling files apart have no safe wrapper that fits")]
pub(crate) mod files;
#[expect(unsafe_code, reason = "the calls that identify a process have no safe wrapper")]
pub(crate) mod identity;
#[expect(unsafe_code, reason = "named pipes have no safe wrapper")]
pub(crate) mod input;
#[expect(unsafe_code, reason = "Job Objects have no safe wrapper")]
pub(crate) mod job;
pub(crate) mod local_socket;
#[expect(unsafe_code, reason = "the time of a place has no safe wrapper")]
pub(crate) mod local_time;
#[expect(unsafe_code, reason = "volumes and what a file takes have no safe wrapper")]
pub(crate) mod probe;
#[expect(unsafe_code, reason = "the standard library cannot limit what a child inherits")]
mod process;
#[expect(unsafe_code, reason = "looking into a pipe and interrupting its reader have no safe wrapper")]
mod pump;
pub(crate) mod rehearsal;
#[expect(unsafe_code, reason = "access rights have no safe wrapper")]
mod rights;
pub(crate) mod service;
pub(crate) mod shell;
#[expect(unsafe_code, reason = "the environment of another process has no safe wrapper")]
pub(crate) mod snapshot;
#[expect(unsafe_code, reason = "the system calls us back when it goes down")]
pub(crate) mod stop;
pub(crate) mod streams;
pub(crate) mod surroundings;
#[expect(unsafe_code, reason = "the folder of the system and its libraries have no safe wrapper")]
pub(crate) mod system;
#[expect(unsafe_code, reason = "pseudo consoles have no safe wrapper, and not every Windows has them")]
pub(crate) mod terminal;
#[cfg(feature = "testing")]
#[expect(unsafe_code, reason = "what is done to other processes and consoles has no safe wrapper")]
pub mod testing;
pub(crate) mod text;
#[expect(unsafe_code, reason = "threads of another process have no safe wrapper")]
pub(crate) mod threads;
#[expect(unsafe_code, reason = "a process is ended through its raw handle")]
pub(crate) mod tree;
pub(crate) mod unit;
pub(crate) mod usage;
pub(crate) mod watch;
