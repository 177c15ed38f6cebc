//! Rules about a file as a whole: how it is named, how it begins, how wide its lines are and how they end.

use super::finding::Finding;

const COLUMNS_MAX: usize = 120;

/// A name for any content attracts any content.
const REFUSED_NAMES: &[&str] = &["utils", "helpers", "common"];

/// Every Rust file of ours opens with a `//!` comment.
pub(crate) fn header(path: &str, text: &str) -> Vec<Finding> {
    let ours = ["crates/", "tests/", "xtask/"].iter().any(|directory| path.starts_with(directory));
    if !ours || text.starts_with("//!") {
        return Vec::new();
    }
    let message = "the file does not begin with a `//!` comment: a reader must learn first what it owns and \
                   what it leaves to others";
    vec![Finding::new(path, 1, message)]
}

/// No file or module is called `utils`, `helpers` or `common`.
pub(crate) fn name(path: &str) -> Vec<Finding> {
    let refused = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    refused
        .filter(|part| REFUSED_NAMES.contains(part))
        .map(|part| {
            let message =
                format!("`{part}` says nothing about the content: name the noun or the verb it holds");
            Finding::new(path, 1, message)
        })
        .collect()
}

/// No line is wider than a review can show; rustfmt leaves comments and literals alone.
pub(crate) fn width(path: &str, text: &str) -> Vec<Finding> {
    let widths = text.lines().map(|line| line.chars().count());
    (1..)
        .zip(widths)
        .filter(|(_, columns)| *columns > COLUMNS_MAX)
        .map(|(line, columns)| {
            let message =
                format!("{columns} columns, over {COLUMNS_MAX}: two such files do not fit side by side");
            Finding::new(path, line, message)
        })
        .collect()
}

/// No line ends in whitespace, a carriage return included.
pub(crate) fn line_ends(path: &str, text: &str) -> Vec<Finding> {
    (1..)
        .zip(text.split('\n'))
        .filter(|(_, line)| line.ends_with(char::is_whitespace))
        .map(|(line, text)| {
            let what = if text.ends_with('\r') { "a carriage return" } else { "whitespace" };
            let message = format!("the line ends in {what}: it is invisible, and makes noise in diffs");
            Finding::new(path, line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines_of;
    use super::*;

    #[test]
    fn a_file_of_ours_needs_a_header() {
        assert_eq!(lines_of(&header("tests/tests/e2e/kill.rs", "use std::fs;\n//! Late.\n")), [1]);
        assert_eq!(lines_of(&header("crates/core/src/job.rs", "// Not a doc comment.\n")), [1]);
        assert_eq!(header("crates/core/src/job.rs", "//! Jobs.\n"), []);
        assert_eq!(header("examples/demo.rs", "fn main() {}\n"), []);
    }

    #[test]
    fn a_name_for_anything_is_refused() {
        assert_eq!(name("crates/core/src/utils.rs").len(), 1);
        assert_eq!(name("tests/tests/common/mod.rs").len(), 1);
        assert_eq!(name("crates/core/src/commonly.rs"), []);
    }

    #[test]
    fn a_wide_line_is_counted_in_characters() {
        let widest = "é".repeat(COLUMNS_MAX);
        assert_eq!(width("a.rs", &widest), []);
        assert_eq!(lines_of(&width("a.rs", &format!("{widest}\n{widest}x\n"))), [2]);
    }

    #[test]
    fn whitespace_at_the_end_of_a_line_is_found() {
        assert_eq!(lines_of(&line_ends("a.md", "a\nb \n\tc\n\t\n")), [2, 4]);
        assert!(line_ends("a.md", "a\r\n")[0].message().contains("carriage return"));
        assert_eq!(line_ends("a.md", "a\n\n  b\n"), []);
    }
}
