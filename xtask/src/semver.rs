//! The `semver` task: what programs can see of our libraries, compared with an earlier revision by cargo-semver-checks.
//!
//! That is a program of its own, and not every machine has it. Where it is missing the task says so and passes.

use anyhow::Result;

use crate::workspace::Workspace;

/// The crates that other programs may depend on.
const LIBRARIES: [&str; 5] =
    ["hearback", "hearback-core", "hearback-monitor", "hearback-platform", "hearback-store"];

/// Compares with `revision`; without one, with the last release.
pub(crate) fn run(workspace: &Workspace, revision: Option<&str>) -> Result<()> {
    if !workspace.works("cargo", &["semver-checks", "--version"]) {
        eprintln!(
            "skipped: cargo-semver-checks is not installed; `cargo install --locked cargo-semver-checks` adds it"
        );
        return Ok(());
    }
    let released = || workspace.capture("git", &["tag", "--list", "v*", "--sort=-version:refname"]);
    let revision = match revision {
        Some(revision) => revision.to_owned(),
        None => match released()?.lines().next() {
            Some(tag) => tag.to_owned(),
            None => {
                eprintln!(
                    "skipped: nothing is released yet; `cargo xtask semver REVISION` compares with that"
                );
                return Ok(());
            }
        },
    };
    workspace.cargo(&args(&revision))
}

fn args(revision: &str) -> Vec<&str> {
    let packages = LIBRARIES.iter().flat_map(|package| ["--package", package]);
    ["semver-checks", "--baseline-rev", revision].into_iter().chain(packages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_that_is_published_is_compared() {
        let metadata = cargo_metadata::MetadataCommand::new()
            .no_deps()
            .current_dir(Workspace::locate().root())
            .exec()
            .unwrap();
        let is_library = |package: &&cargo_metadata::Package| {
            package.publish.is_none() && package.targets.iter().any(|target| target.is_lib())
        };
        let mut found: Vec<_> =
            metadata.packages.iter().filter(is_library).map(|package| package.name.to_string()).collect();
        // The MCP server is a library for our program alone.
        found.retain(|name| name != "hearback-mcp");
        found.sort();
        assert_eq!(found, LIBRARIES);
    }
}
