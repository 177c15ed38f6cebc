//! The `features` step: an embedder who turns the `cli` feature off gets a library that compiles, and no clap.

use anyhow::{Result, bail};

use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    workspace.cargo(&["check", "-p", "hearback", "--no-default-features"])?;
    // Compiling proves only that clap is not used. A forgotten `optional = true` would still link it.
    let tree = workspace.capture(
        "cargo",
        &["tree", "-p", "hearback", "--no-default-features", "-e", "normal", "--prefix", "none"],
    )?;
    let found = clap_packages(&tree);
    if !found.is_empty() {
        bail!(
            "`hearback` without default features still depends on {}: make it optional, behind the `cli` feature",
            found.join(", ")
        );
    }
    Ok(())
}

/// The packages of the clap family in the output of `cargo tree --prefix none`.
fn clap_packages(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let mut found: Vec<&str> = names.filter(|name| *name == "clap" || name.starts_with("clap_")).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_is_found_once_however_often_it_is_listed() {
        let tree = "hearback v0.1.0 (/src/crates/cli)\nclap v4.6.7\nclap_builder v4.6.7\nclap v4.6.7 (*)\n";
        assert_eq!(clap_packages(tree), ["clap", "clap_builder"]);
    }

    #[test]
    fn a_name_that_only_resembles_clap_is_fine() {
        assert!(clap_packages("hearback v0.1.0 (/src/clap)\nserde v1.0.0\nclapper v1.0.0\n").is_empty());
    }
}
