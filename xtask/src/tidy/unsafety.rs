//! `unsafe` lives in the platform crate alone, and each block there says what makes it sound.

use super::finding::Finding;
use super::rust_file::{RustFile, find_word};

const HOME: &str = "crates/platform/";

/// How far above its block a comment may start: room for a few sentences and a split statement.
const LINES_ABOVE_MAX: usize = 6;

/// Refuses `unsafe` outside the platform crate, and blocks without a `// SAFETY:` comment in it.
///
/// The lints check both as well, but a lint can be switched off in the file that breaks it.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    let comments: Vec<&str> = file.comments.lines().collect();
    let mut findings = Vec::new();
    for at in find_word(&file.code, "unsafe") {
        let line = file.line_at(at);
        let is_block = file.code[at + "unsafe".len()..].trim_start().starts_with('{');
        let above = &comments[line.saturating_sub(1 + LINES_ABOVE_MAX)..line - 1];
        if !file.path.starts_with(HOME) {
            let message =
                "`unsafe` outside crates/platform: what must be reviewed for soundness stays in one crate";
            findings.push(Finding::new(file.path, line, message));
        } else if is_block && !above.iter().any(|comment| comment.contains("SAFETY:")) {
            let message = format!(
                "an `unsafe` block without `// SAFETY:` in the {LINES_ABOVE_MAX} lines above: name the fact \
                 relied on, so that a reviewer can check it"
            );
            findings.push(Finding::new(file.path, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines_of;
    use super::*;

    fn check_at(path: &str, text: &str) -> Vec<usize> {
        lines_of(&check(&RustFile::new(path, text)))
    }

    #[test]
    fn unsafe_outside_platform_is_refused() {
        let text = "// SAFETY: none\nlet a = unsafe { f() };\nunsafe impl Send for A {}\nunsafe fn g() {}\n";
        assert_eq!(check_at("crates/store/src/a.rs", text), [2, 3, 4]);
        assert_eq!(check_at("crates/platform/src/a.rs", text), [0; 0]);
    }

    #[test]
    fn a_block_needs_a_reason_close_above() {
        assert_eq!(check_at("crates/platform/src/a.rs", "unsafe { f() };\n"), [1]);
        assert_eq!(check_at("crates/platform/src/a.rs", "let a = unsafe\n{ f() };\n"), [1]);
        let far = format!("// SAFETY: a\n{}unsafe {{ f() }};\n", "\n".repeat(LINES_ABOVE_MAX));
        assert_eq!(check_at("crates/platform/src/a.rs", &far), [8]);
        let near = far.replacen("\n\n", "\n", 1);
        assert_eq!(check_at("crates/platform/src/a.rs", &near), [0; 0]);
    }

    #[test]
    fn a_string_is_not_a_reason_and_prose_is_not_a_block() {
        assert_eq!(check_at("crates/platform/src/a.rs", "f(\"// SAFETY: a\");\nunsafe { f() };\n"), [2]);
        assert_eq!(check_at("crates/core/src/a.rs", "#![forbid(unsafe_code)]\n// unsafe { }\n"), [0; 0]);
    }
}
