//! The `reuse` step: every project under `tests/reuse` builds and runs. Each uses one of our crates alone, from outside
//! of the workspace, as a stranger would; its `main` asserts what the crate promises.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::features;
use crate::workspace::Workspace;

const PROJECTS: &str = "tests/reuse";
const LOCK: &str = "Cargo.lock";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let projects = projects(&workspace.root().join(PROJECTS))?;
    if projects.is_empty() {
        bail!("there is no project in {PROJECTS}");
    }
    // One for all of them, so that what they share is built once; and apart from the workspace, whose profile differs.
    let target = workspace.target_directory()?.join("reuse");
    let target = target.to_str().context("the target directory is not Unicode")?;
    let env = [("CARGO_TARGET_DIR", target), ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")];
    for project in &projects {
        // The versions of the workspace: those are the ones that everything else was tried with. Cargo drops from the
        // copy what the project does not need.
        fs_err::copy(workspace.root().join(LOCK), project.join(LOCK))?;
        let manifest = project.join("Cargo.toml");
        let manifest = manifest.to_str().context("the workspace's path is not Unicode")?;
        workspace.cargo(&["fmt", "--manifest-path", manifest, "--check"])?;
        workspace.cargo_with_env(&["run", "--quiet", "--manifest-path", manifest], &env)?;
        check_tree(
            &workspace.capture(
                "cargo",
                &["tree", "--manifest-path", manifest, "-e", "normal", "--prefix", "none"],
            )?,
        )
        .with_context(|| project.display().to_string())?;
    }
    Ok(())
}

/// A program that uses a crate of ours, with its default features, gets no argument parser, async runtime or HTTP.
fn check_tree(tree: &str) -> Result<()> {
    let found = features::feature_packages(tree);
    if !found.is_empty() {
        bail!("it depends on {}, which no library of ours may bring along", found.join(", "));
    }
    Ok(())
}

/// The folders that hold a manifest, by name.
fn projects(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_gets_a_runtime_with_a_library_is_refused() {
        assert!(check_tree("reuse-x v0.0.0 (/src)\nserde v1.0.0\n").is_ok());
        let error = check_tree("reuse-x v0.0.0 (/src)\ntokio v1.0.0\nureq v3.0.0\n").unwrap_err();
        assert_eq!(error.to_string(), "it depends on tokio, ureq, which no library of ours may bring along");
    }

    #[test]
    fn every_project_is_outside_of_the_workspace() {
        let root = Workspace::locate();
        for project in projects(&root.root().join(PROJECTS)).unwrap() {
            let manifest = fs_err::read_to_string(project.join("Cargo.toml")).unwrap();
            assert!(manifest.lines().any(|line| line == "[workspace]"), "{}", project.display());
        }
    }
}
