//! The `targets` step: what ships, and what tests it, compiles without a warning for the systems that this machine is
//! not.
//!
//! It is `cargo clippy`, which needs no linker and no foreign C library, so it runs anywhere. Webhooks are left out:
//! their cryptography is C, which takes a compiler for each system, and none of it is ours.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// One target for each family of system calls that the platform crate has code for, beside Linux. Windows is meant as
/// most people have it; the `windows` step builds and runs the other one.
const TARGETS: &[&str] = &["x86_64-pc-windows-msvc", "aarch64-apple-darwin", "x86_64-unknown-freebsd"];

const PACKAGES: &[&str] = &[
    "hearback",
    "hearback-cli",
    "hearback-platform",
    "hearback-store",
    "hearback-monitor",
    "hearback-core",
    "hearback-tests",
];

/// All of the program that needs no C compiler for the target.
const FEATURES: &str = "hearback-cli/agents,hearback-cli/completions,hearback-cli/control,hearback-cli/doctor,\
     hearback-cli/events,hearback-cli/parser-hints,hearback-cli/plugin-check,hearback-cli/schema,hearback-cli/setup,\
     hearback-cli/timeline,hearback-cli/top";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for target in TARGETS {
        ensure_installed(workspace, target)?;
    }
    // All at once: what has to wait for one crate of a target goes on with another target meanwhile.
    workspace.cargo(&clippy_args(TARGETS))
}

fn clippy_args<'a>(targets: &[&'a str]) -> Vec<&'a str> {
    let packages = PACKAGES.iter().flat_map(|package| ["-p", package]);
    let features = ["--all-targets", "--no-default-features", "--features", FEATURES];
    let targets = targets.iter().flat_map(|target| ["--target", target]);
    let rest = ["--", "-D", "warnings"];
    ["clippy"].into_iter().chain(packages).chain(features).chain(targets).chain(rest).collect()
}

/// Adds the target's standard library if it is missing: a fresh machine has only its own.
pub(crate) fn ensure_installed(workspace: &Workspace, target: &str) -> Result<()> {
    // rustc is asked rather than rustup, because a toolchain from a distribution has no rustup.
    let directory = workspace.capture("rustc", &["--print", "target-libdir", "--target", target])?;
    if has_standard_library(Path::new(directory.trim())) {
        return Ok(());
    }
    if !workspace.works("rustup", &["--version"]) {
        bail!(
            "the standard library for `{target}` is not installed, and there is no rustup to add it: \
             install it with the package manager that this Rust came from"
        );
    }
    eprintln!("$ rustup target add {target}");
    workspace
        .capture("rustup", &["target", "add", target])
        .with_context(|| format!("the standard library for `{target}` is missing and could not be added"))?;
    Ok(())
}

fn has_standard_library(directory: &Path) -> bool {
    let Ok(entries) = fs_err::read_dir(directory) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_checked_for_every_target() {
        let args = clippy_args(&["x86_64-pc-windows-msvc", "aarch64-apple-darwin"]).join(" ");
        assert!(args.starts_with("clippy -p hearback -p hearback-cli -p hearback-platform "), "{args}");
        let end = " --target x86_64-pc-windows-msvc --target aarch64-apple-darwin -- -D warnings";
        assert!(args.ends_with(end), "{args}");
    }

    #[test]
    fn a_directory_without_the_standard_library_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!has_standard_library(directory.path()));
        assert!(!has_standard_library(&directory.path().join("absent")));
        fs_err::write(directory.path().join("libstd-0123.rlib"), "").unwrap();
        assert!(has_standard_library(directory.path()));
    }
}
