//! Which end-to-end tests do not apply to Windows, and why: each says so above its `cfg`.
//!
//! `// Not on Windows: signals.` above the attributes of a test, or above the `cfg` of a file or of a module whose
//! tests share the reason. Without a reason a test that only Unix runs is a finding, so that none is left out for
//! convenience.

use super::finding::Finding;

const REASON: &str = "// Not on Windows: ";

/// A test that is not compiled for Windows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) reason: Option<String>,
}

/// The end-to-end tests of a file that Windows does not run.
pub(crate) fn absent(path: &str, text: &str) -> Vec<Absent> {
    if !path.starts_with("tests/tests/") {
        return Vec::new();
    }
    let (mut found, mut block, mut shared) = (Vec::new(), Block::default(), None);
    for (line, text) in (1..).zip(text.lines()) {
        // A module at the left ends there.
        let ends_a_module = text == "}" && std::mem::take(&mut block.in_a_module);
        if ends_a_module {
            shared = None;
        }
        let text = text.trim();
        if let Some(reason) = text.strip_prefix(REASON) {
            block.reason = Some(reason.to_owned());
        } else if text.starts_with("#![cfg(") && excludes_windows(text) {
            shared = Some(block.reason.take());
        } else if text.starts_with("#[cfg(") && excludes_windows(text) {
            block.excluded = true;
        } else if text.starts_with("mod ") && block.excluded {
            shared = Some(block.reason.take());
            block = Block { in_a_module: true, ..Block::default() };
        } else if text == "#[test]" {
            block.is_test = true;
        } else if let Some(name) = text.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) {
            let Block { reason, excluded, is_test, in_a_module } = block;
            block = Block { in_a_module, ..Block::default() };
            let reason = match (excluded, &shared) {
                (_, Some(shared)) => Some(reason.or_else(|| shared.clone())),
                (true, None) => Some(reason),
                (false, None) => None,
            };
            if let Some(reason) = reason.filter(|_| is_test) {
                found.push(Absent { name: name.to_owned(), line, reason });
            }
        } else if !text.starts_with("#[") && !text.starts_with("//") {
            block = Block { in_a_module: block.in_a_module, ..Block::default() };
        }
    }
    found
}

/// What stands above a function.
#[derive(Default)]
struct Block {
    reason: Option<String>,
    excluded: bool,
    is_test: bool,
    /// Whether all of this is inside a module that Windows does not have.
    in_a_module: bool,
}

fn excludes_windows(cfg: &str) -> bool {
    let names = |name: &&str| cfg.contains(*name);
    ["unix", "target_os = \"linux\""].iter().any(names) && !["not(", "windows"].iter().any(names)
}

pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let without_a_reason = absent(path, text).into_iter().filter(|test| test.reason.is_none());
    without_a_reason
        .map(|test| {
            let message = format!(
                "`{}` is not run on Windows and does not say why: write `{REASON}…` above its `cfg`",
                test.name
            );
            Finding::new(path, test.line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "\
#[test]
fn everywhere() {}

// Not on Windows: signals.
#[test]
#[cfg(unix)]
fn by_signal() {}

#[cfg(target_os = \"linux\")]
fn no_test() {}

#[test]
#[cfg(target_os = \"linux\")]
fn unexplained() {}

#[test]
#[cfg(windows)]
fn only_there() {}

#[test]
#[cfg(any(target_os = \"linux\", windows))]
fn there_too() {}
";

    #[test]
    fn a_test_that_windows_lacks_is_found_with_its_reason() {
        let found = absent("tests/tests/e2e/kill.rs", TESTS);
        let shown: Vec<_> = found.iter().map(|test| (test.name.as_str(), test.reason.as_deref())).collect();
        assert_eq!(shown, [("by_signal", Some("signals.")), ("unexplained", None)]);
        assert_eq!(absent("crates/platform/src/unix/bell.rs", TESTS), []);
        let findings = check("tests/tests/e2e/kill.rs", TESTS);
        assert_eq!(super::super::finding::lines_of(&findings), [14]);
    }

    #[test]
    fn a_file_can_have_one_reason_for_all() {
        let text =
            "//! Doc.\n// Not on Windows: ptrace.\n#![cfg(target_os = \"linux\")]\n\n#[test]\nfn a() {}\n";
        let found = absent("tests/tests/e2e/killat.rs", text);
        assert_eq!(found, [Absent { name: "a".into(), line: 6, reason: Some("ptrace.".into()) }]);
        assert_eq!(absent("tests/tests/e2e/killat.rs", &text.replace("// Not on", "// On"))[0].reason, None);
    }

    #[test]
    fn so_can_a_module() {
        let text = "\
// Not on Windows: ptys.
#[cfg(unix)]
mod unix {
    #[test]
    fn a() {}

    // Not on Windows: umask.
    #[test]
    fn b() {
    }
}

#[test]
fn c() {}
";
        let shown: Vec<_> =
            absent("tests/tests/e2e/a.rs", text).into_iter().map(|test| (test.name, test.reason)).collect();
        let expected = [("a", "ptys."), ("b", "umask.")];
        assert_eq!(shown, expected.map(|(name, reason)| (name.to_owned(), Some(reason.to_owned()))));
    }
}
