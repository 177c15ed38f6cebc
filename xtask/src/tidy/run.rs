//! Collects the files that git knows, or would if they were added, and checks every rule against them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use super::finding::Finding;
use super::rust_file::RustFile;
use super::{code_map, fact_names, leftovers, links, not_on_windows as absences};
use super::{os_cfg, scenarios, shape, unsafety};
use crate::workspace::Workspace;

/// Prints every finding, and fails if there is one.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = list(workspace)?;
    let texts = read(workspace, &files)?;
    let findings = check(&files, &texts);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy findings: {}", findings.len());
    }
    Ok(())
}

/// The end-to-end tests that do not apply to Windows: name and reason, in the order of the files.
pub(crate) fn not_on_windows(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let texts = read(workspace, &list(workspace)?)?;
    let absent = texts.iter().flat_map(|(path, text)| absences::absent(path, text));
    Ok(absent.map(|test| (test.name, test.reason.unwrap_or_else(|| "no reason given".into()))).collect())
}

fn read(workspace: &Workspace, files: &BTreeSet<String>) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".rs") || path.ends_with(".md")) {
        texts.insert(path.clone(), fs_err::read_to_string(workspace.root().join(path))?);
    }
    Ok(texts)
}

/// The paths of the repository from its root. Files not yet added count: they are about to be committed.
fn list(workspace: &Workspace) -> Result<BTreeSet<String>> {
    let listed = workspace
        .capture("git", &["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .context("tidy asks git which files are ours")?;
    let paths = listed.split('\0').filter(|path| !path.is_empty());
    // A file that was deleted and is still in the index is listed too.
    Ok(paths.filter(|path| workspace.root().join(path).is_file()).map(str::to_owned).collect())
}

/// Every finding, in the order of the files. `texts` holds the Rust and Markdown files among `files`.
fn check(files: &BTreeSet<String>, texts: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut functions = Vec::new();
    for (path, text) in texts {
        findings.extend(shape::line_ends(path, text));
        if path.ends_with(".md") {
            findings.extend(links::check(path, text, files));
            continue;
        }
        let file = RustFile::new(path, text);
        findings.extend(shape::header(path, text));
        findings.extend(shape::name(path));
        findings.extend(shape::width(path, text));
        findings.extend(unsafety::check(&file));
        findings.extend(os_cfg::check(&file));
        findings.extend(absences::check(path, text));
        findings.extend(fact_names::check(&file));
        findings.extend(leftovers::check(&file));
        functions.extend(scenarios::functions(&file));
    }
    findings.extend(code_map::check(texts.get(code_map::PAGE).map(String::as_str), files));
    findings.extend(scenarios::check(texts.get(scenarios::TABLE).map(String::as_str), &functions));
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tree(tree: &[(&str, &str)]) -> Vec<String> {
        let texts: BTreeMap<String, String> =
            tree.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        check(&texts.keys().cloned().collect(), &texts).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_clean_tree_has_no_findings() {
        let tree = [
            ("ARCHITECTURE.md", "## Code map\n### `crates/core/src`\n```text\njob.rs  jobs\n```\n"),
            ("crates/core/src/job.rs", "//! Jobs.\n"),
            ("docs/behaviour.md", "[jobs](../crates/core/src/job.rs)\n| 1 | planned | a | |\n"),
        ];
        assert_eq!(check_tree(&tree), [""; 0]);
    }

    #[test]
    fn every_rule_is_asked() {
        let bad = "fn scenario_1_a() {} \nunsafe { f() }\n#[cfg(unix)]\nf(\"end.json\");\ndbg!(1);\n";
        let wide = format!("//! {}\n", "x".repeat(120));
        let tree = [
            ("crates/core/src/bad.rs", bad),
            ("crates/core/src/utils.rs", &wide),
            ("docs/index.md", "[gone](gone.md)\n"),
        ];
        let findings = check_tree(&tree);
        for expected in [
            "ARCHITECTURE.md:1: the file is missing",
            "crates/core/src/bad.rs:1: the file does not begin",
            "crates/core/src/bad.rs:1: the line ends in whitespace",
            "crates/core/src/bad.rs:2: `unsafe` outside",
            "crates/core/src/bad.rs:3: `cfg` on `unix`",
            "crates/core/src/bad.rs:4: the file name \"end.json\"",
            "crates/core/src/bad.rs:5: `dbg!`",
            "crates/core/src/utils.rs:1: 124 columns",
            "crates/core/src/utils.rs:1: `utils`",
            "docs/behaviour.md:1: the file is missing",
            "docs/index.md:1: the link to `gone.md`",
        ] {
            assert!(
                findings.iter().any(|finding| finding.starts_with(expected)),
                "{expected}\n{findings:#?}"
            );
        }
        assert_eq!(findings.len(), 11, "{findings:#?}");
    }
}
