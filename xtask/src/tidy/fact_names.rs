//! The names of files in a job's directory are spelled in one place, the store's layout.

use super::finding::Finding;
use super::rust_file::RustFile;

const HOME: &str = "crates/store/src/layout.rs";

const NAMES: &[&str] = &[
    "spec.json",
    "begin.json",
    "target.json",
    "end.json",
    "settled.json",
    "receipt.json",
    "output.log",
    "supervisor.log",
    "end.reserve",
    "launch.lock",
    "alive.lock",
    "keeper.lock",
    "reader.lock",
];

/// Refuses a string literal that is such a name, or a path through one, in code that ships.
///
/// Tests may spell names: a test that took them from the layout could not notice one being changed.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    if !ships(file.path) || file.path == HOME {
        return Vec::new();
    }
    let tests_begin = file.code.find("#[cfg(test)]").map_or(usize::MAX, |at| file.line_at(at));
    let mut findings = Vec::new();
    for literal in file.strings.iter().filter(|literal| literal.line < tests_begin) {
        // Prose that mentions a name is for people; only a whole path component opens a file.
        if let Some(name) = literal.text.split(['/', '\\']).find(|part| NAMES.contains(part)) {
            let message = format!(
                "the file name \"{name}\" outside {HOME}: a name on disk is a format, and is kept in one place"
            );
            findings.push(Finding::new(file.path, literal.line, message));
        }
    }
    findings
}

/// Whether the file is in the `src` of a crate, and is not a module of tests.
fn ships(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && parts.nth(1) == Some("src")
        && !parts.any(|part| part == "tests" || part == "tests.rs")
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines_of;
    use super::*;

    fn check_at(path: &str, text: &str) -> Vec<usize> {
        lines_of(&check(&RustFile::new(path, text)))
    }

    #[test]
    fn a_name_outside_the_layout_is_found() {
        let text = "\nlet a = dir.join(\"spec.json\");\nlet b = format!(\"{dir}/output.log\");\n";
        assert_eq!(check_at("crates/cli/src/show.rs", text), [2, 3]);
        assert_eq!(check_at(HOME, text), [0; 0]);
    }

    #[test]
    fn comments_and_prose_and_other_names_are_fine() {
        let text = "// \"spec.json\"\nlet a = \"see output.log there\";\nlet b = \"my-end.json\";\n";
        assert_eq!(check_at("crates/cli/src/show.rs", text), [0; 0]);
    }

    #[test]
    fn tests_may_spell_names() {
        let text = "let a = \"end.json\";\n#[cfg(test)]\nmod tests { const A: &str = \"end.json\"; }\n";
        assert_eq!(check_at("crates/store/src/read.rs", text), [1]);
        for path in ["crates/store/tests/a.rs", "crates/store/src/read/tests.rs", "tests/tests/e2e/kill.rs"] {
            assert_eq!(check_at(path, text), [0; 0], "{path}");
        }
    }
}
