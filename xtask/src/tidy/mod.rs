//! The `tidy` step: rules about our files that neither rustc nor clippy knows.
//!
//! Each rule is a pure function from a file's path and text to findings, so that it can be tested on a few
//! lines; only `run` touches git and the disk. `rust_file` tells code from comments and literals, which is
//! why the rules do not stumble over their own tests.

mod code_map;
mod fact_names;
mod finding;
mod leftovers;
mod links;
mod not_on_windows;
mod os_cfg;
mod run;
mod rust_file;
mod scenarios;
mod shape;
mod unsafety;

pub(crate) use run::{not_on_windows, run};
