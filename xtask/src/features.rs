//! The `features` step: an embedder who turns the features off gets a library that compiles, without clap, an async
//! runtime or an HTTP client; and each feature compiles alone.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    for features in ["", "schema", "webhook"] {
        workspace.cargo(&["check", "-p", "hearback", "--no-default-features", "--features", features])?;
    }
    // The program, without what makes it large, and with each part of that alone.
    let metadata = workspace.capture("cargo", &["metadata", "--no-deps", "--format-version", "1"])?;
    for feature in program_features(&metadata)? {
        workspace.cargo(&["check", "-p", "hearback-cli", "--no-default-features", "--features", &feature])?;
    }
    // Compiling proves only that they are not used. A forgotten `optional = true` would still link them.
    let tree = workspace.capture(
        "cargo",
        &["tree", "-p", "hearback", "--no-default-features", "-e", "normal", "--prefix", "none"],
    )?;
    let found = feature_packages(&tree);
    if !found.is_empty() {
        bail!(
            "`hearback` without default features still depends on {}: make it optional, behind a feature",
            found.join(", ")
        );
    }
    let tree = workspace.capture(
        "cargo",
        &["tree", "-p", "hearback-cli", "--no-default-features", "-e", "normal", "--prefix", "none"],
    )?;
    let mut found = feature_packages(&tree);
    found.retain(|name| !name.starts_with("clap"));
    if !found.is_empty() {
        bail!("`hearback-cli` without default features still depends on {}", found.join(", "));
    }
    Ok(())
}

/// No feature, and then each of the program.
fn program_features(metadata: &str) -> Result<Vec<String>> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let program = packages.iter().find(|package| package["name"] == "hearback-cli");
    let features =
        program.and_then(|program| program["features"].as_object()).context("the program is not there")?;
    let each = features.keys().filter(|name| *name != "default").cloned();
    Ok(std::iter::once(String::new()).chain(each).collect())
}

/// The packages in the output of `cargo tree --prefix none` that belong to a feature.
pub(crate) fn feature_packages(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let mut found: Vec<&str> = names
        .filter(|name| {
            matches!(*name, "clap" | "http" | "hyper" | "rmcp" | "schemars" | "tokio" | "ureq" | "rustls")
                || name.starts_with("clap_")
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_of_the_program_is_tried_alone() {
        let metadata = r#"{"packages": [{"name": "x"}, {"name": "hearback-cli", "features":
            {"default": ["a"], "a": [], "b": []}}]}"#;
        assert_eq!(program_features(metadata).unwrap(), ["", "a", "b"]);
        assert!(program_features("{}").is_err());
    }

    #[test]
    fn what_belongs_to_a_feature_is_found_once_however_often_it_is_listed() {
        let tree = "hearback v0.1.0 (/src)\nclap v4.6.7\nclap_builder v4.6.7\nclap v4.6.7 (*)\nureq v3.5.1\n";
        assert_eq!(feature_packages(tree), ["clap", "clap_builder", "ureq"]);
    }

    #[test]
    fn a_name_that_only_resembles_clap_is_fine() {
        assert!(feature_packages("hearback v0.1.0 (/src/clap)\nserde v1.0.0\nclapper v1.0.0\n").is_empty());
    }
}
