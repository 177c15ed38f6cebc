//! The `deny` step: licences, advisories, banned crates and sources of what is linked, as `deny.toml` has them.
//!
//! `cargo-deny` is a program of its own, and not every machine has it. Where it is missing the step says so and passes,
//! because nothing else here depends on it.

use anyhow::Result;

use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    if !workspace.works("cargo", &["deny", "--version"]) {
        eprintln!("skipped: cargo-deny is not installed; `cargo install --locked cargo-deny` adds it");
        return Ok(());
    }
    workspace.cargo(&["deny", "check"])
}
