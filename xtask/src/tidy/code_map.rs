//! The code map of `ARCHITECTURE.md` and the tree agree.
//!
//! The map is the section `## Code map`. A heading `` ### `folder` `` names a folder, and in the fenced block under it
//! each line is a path within that folder, two spaces, and what is to be found there. A path that ends in `/` stands
//! for everything in that folder. An indented line continues the one above.

use std::collections::BTreeSet;

use super::finding::Finding;

pub(crate) const PAGE: &str = "ARCHITECTURE.md";

const SECTION: &str = "## Code map";

/// Refuses a line that names nothing, and a Rust file that no line covers.
pub(crate) fn check(page: Option<&str>, files: &BTreeSet<String>) -> Vec<Finding> {
    let Some(page) = page else {
        return vec![Finding::new(PAGE, 1, "the file is missing: it tells a newcomer where everything is")];
    };
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for entry in entries(page) {
        let Entry { line, path, about } = entry;
        if about.is_empty() {
            let message = format!("`{path}` stands in the code map without a word about what it owns");
            findings.push(Finding::new(PAGE, line, message));
        }
        if !is_there(&path, files) {
            let message =
                format!("the code map names `{path}`, which does not exist: a newcomer would search for it");
            findings.push(Finding::new(PAGE, line, message));
        }
        if let Some(path) = named.replace(path) {
            findings.push(Finding::new(PAGE, line, format!("`{path}` stands in the code map twice")));
        }
    }
    let missing = files.iter().filter(|file| is_mapped(file) && !is_covered(file, &named));
    findings.extend(missing.map(|file| {
        Finding::new(file, 1, format!("not in the code map of {PAGE}: a newcomer would not find it"))
    }));
    findings
}

/// A line of the map.
struct Entry<'a> {
    line: usize,
    /// From the root of the repository.
    path: String,
    about: &'a str,
}

fn entries(page: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let (mut in_section, mut in_block, mut folder) = (false, false, "");
    for (line, text) in (1..).zip(page.lines()) {
        if text.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            // An indented line continues the one above.
            if in_section && !text.is_empty() && !text.starts_with(' ') {
                let (path, about) = text.split_once("  ").unwrap_or((text, ""));
                entries.push(Entry { line, path: format!("{folder}/{path}"), about: about.trim() });
            }
        } else if text.starts_with("## ") {
            in_section = text == SECTION;
        } else if let Some(heading) = text.strip_prefix("### ") {
            folder = heading.split('`').nth(1).unwrap_or_default();
        }
    }
    entries
}

fn is_there(path: &str, files: &BTreeSet<String>) -> bool {
    files.contains(path) || (path.ends_with('/') && files.iter().any(|file| file.starts_with(path)))
}

/// Whether the map has to cover the file. `mod.rs` and `lib.rs` only declare what lies beside them.
fn is_mapped(file: &str) -> bool {
    let parts: Vec<_> = file.split('/').collect();
    let source = matches!(parts[..], ["crates", _, "src", ..] | ["xtask" | "tests", "src", ..]);
    source && file.ends_with(".rs") && !matches!(parts.last(), Some(&"mod.rs" | &"lib.rs"))
}

/// Whether a line names the file or a folder that it is in.
fn is_covered(file: &str, named: &BTreeSet<String>) -> bool {
    let folders = file.match_indices('/').map(|(at, _)| &file[..=at]);
    named.contains(file) || folders.into_iter().any(|folder| named.contains(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_map(map: &str, files: &[&str]) -> Vec<String> {
        let files = files.iter().map(|file| file.to_string()).collect();
        check(Some(map), &files).iter().map(Finding::to_string).collect()
    }

    const MAP: &str = "# Page\n\n## Code map\n\n### `crates/core/src`: nouns\n\n```text\nid.rs  JobId\n\
                       \x20       and its short form\nport/  what others fill in\n```\n\n### `tests`\n\n```text\n\
                       src/world.rs  World\ntests/  a file a theme\n```\n\n## Ports\n\n```text\nno.rs  no entry\n```\n";

    const TREE: [&str; 4] = [
        "crates/core/src/id.rs",
        "crates/core/src/port/disk.rs",
        "tests/src/world.rs",
        "tests/tests/kill.rs",
    ];

    #[test]
    fn files_and_folders_that_are_there_are_fine() {
        assert_eq!(check_map(MAP, &TREE), [""; 0]);
    }

    #[test]
    fn a_file_that_no_line_covers_is_named() {
        let tree = [&TREE[..], &["crates/core/src/fold.rs", "tests/src/bin/hog.rs"]].concat();
        let findings = check_map(MAP, &tree);
        assert_eq!(findings.len(), 2, "{findings:#?}");
        assert!(findings[0].starts_with("crates/core/src/fold.rs:1: not in the code map"), "{findings:#?}");
        assert!(findings[1].starts_with("tests/src/bin/hog.rs:1: not in the code map"), "{findings:#?}");
    }

    #[test]
    fn what_only_declares_and_what_is_no_source_need_no_line() {
        let more =
            ["crates/core/src/lib.rs", "crates/core/src/port/mod.rs", "crates/cli/build.rs", "docs/a.md"];
        assert_eq!(check_map(MAP, &[&TREE[..], &more].concat()), [""; 0]);
    }

    #[test]
    fn a_line_whose_file_or_folder_is_gone_is_found_where_it_stands() {
        let findings = check_map(MAP, &TREE[..1]);
        assert_eq!(findings.len(), 3, "{findings:#?}");
        assert!(findings[0].starts_with("ARCHITECTURE.md:10: the code map names `crates/core/src/port/`"));
        assert!(findings[1].starts_with("ARCHITECTURE.md:16: the code map names `tests/src/world.rs`"));
    }

    #[test]
    fn a_folder_without_its_slash_is_no_file() {
        let map = "## Code map\n### `crates/core/src`\n```text\nport  ports\n```\n";
        let findings = check_map(map, &["crates/core/src/port/disk.rs"]);
        assert_eq!(findings.len(), 2, "{findings:#?}");
    }

    #[test]
    fn a_line_without_words_or_a_second_one_is_found() {
        let map = "## Code map\n### `xtask`\n```text\nsrc/main.rs\nsrc/main.rs  tasks\n```\n";
        let findings = check_map(map, &["xtask/src/main.rs"]);
        assert!(findings[0].contains("without a word"), "{findings:#?}");
        assert!(findings[1].contains("twice"), "{findings:#?}");
    }

    #[test]
    fn a_page_without_a_map_covers_nothing() {
        assert_eq!(check_map("# Page\n", &["xtask/src/main.rs"]).len(), 1);
    }
}
