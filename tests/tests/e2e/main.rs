//! What hearback promises, tried on the real program with real processes: one file for each subject.
//!
//! They are modules of one program, because each program is linked with the whole library. nextest still gives each
//! test a process of its own; with `cargo test` they are threads of one, so no test may change what a process has only
//! once: its variables, its folder, its limits, its signal handlers.
#![allow(clippy::disallowed_methods, reason = "the tests and their fixtures are ordinary programs")]

mod agents;
mod ask;
mod claims;
mod clock;
mod command_line;
mod cost;
mod crash;
mod crowd;
mod damage;
mod diagnostics;
mod doctor;
mod doors;
mod durable;
mod edges;
mod embed;
mod events;
mod examples;
mod follow_up;
mod follow_up_faults;
mod follow_up_sinks;
mod follow_up_turns;
mod golden;
mod input;
mod install;
mod json;
mod kill;
mod kill_points;
mod killat;
mod launch;
mod limits;
mod loops;
mod loss;
mod marks;
mod mcp;
mod monitor;
mod monitor_faults;
mod namespaces;
mod one_call;
mod output;
mod packages;
mod plugin;
mod retention;
mod safety;
mod secrets;
mod serve;
mod sessions;
mod settings;
mod shell;
mod silent;
mod survive;
mod terminal;
mod top;
mod views;
mod wake_faults;
mod webhook;
mod windows;
mod zoo;
