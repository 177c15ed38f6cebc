//! How the program is linked on Linux; see docs/decisions/0008-a-fixed-address.md and 0012-a-static-unwinder.md.
#![allow(clippy::disallowed_methods, reason = "the compiler driver is started as a build starts it")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if let Some(folder) = static_unwinder() {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A folder in which the linker finds the static unwinder of GCC under the name of the shared one. Where there is none,
/// the shared one is used.
fn static_unwinder() -> Option<PathBuf> {
    // Another target has a compiler driver of its own.
    if variable("HOST") != variable("TARGET") {
        return None;
    }
    let found = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let found = String::from_utf8(found.stdout).ok()?;
    // A library that is not there is named without a path.
    Path::new(found.trim()).is_absolute().then_some(())?;
    let folder = Path::new(&variable("OUT_DIR")).join("unwinder");
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::write(folder.join("libgcc_s.so"), "INPUT ( -lgcc_eh -lgcc )\n").ok()?;
    Some(folder)
}
