//! The program itself, next to its library.
//!
//! Cargo builds a program for the integration tests of its own package, and for those only. This is one, so a plain
//! `cargo test --workspace` builds the hearback that the end-to-end tests of the package `hearback-tests` start.
#![allow(clippy::disallowed_methods, reason = "the program is started as anybody starts it")]

use std::process::Command;

#[test]
fn the_program_tells_its_version() {
    let told = Command::new(env!("CARGO_BIN_EXE_hearback")).arg("--version").output().unwrap();
    assert!(told.status.success(), "{told:?}");
    let expected = format!("hearback {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8_lossy(&told.stdout).replace("\r\n", "\n"), expected);
}
