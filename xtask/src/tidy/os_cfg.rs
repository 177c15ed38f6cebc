//! Only the platform crate, the tests and xtask may ask which operating system they are compiled for.

use super::finding::Finding;
use super::rust_file::{RustFile, find_word, has_word};

const HOMES: &[&str] = &["crates/platform/", "tests/", "xtask/"];

const ASKS: &[&str] = &["cfg", "cfg_attr", "cfg_select"];

const SYSTEMS: &[&str] = &["unix", "windows", "target_os", "target_family", "target_vendor"];

/// Refuses conditional compilation by operating system outside these places.
///
/// Looks at the whole predicate, because rustfmt spreads a long one over several lines.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    if HOMES.iter().any(|home| file.path.starts_with(home)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for ask in ASKS {
        for at in find_word(&file.code, ask) {
            let predicate = predicate(&file.code[at + ask.len()..]);
            if let Some(system) = SYSTEMS.iter().find(|system| has_word(predicate, system)) {
                let message = format!(
                    "`{ask}` on `{system}` outside crates/platform: differences between systems hide behind \
                     a port, so that this code behaves alike everywhere"
                );
                findings.push(Finding::new(file.path, file.line_at(at), message));
            }
        }
    }
    findings
}

/// The balanced brackets that `text` starts with, perhaps after the `!` of a macro; else nothing.
fn predicate(text: &str) -> &str {
    let text = text.strip_prefix('!').unwrap_or(text).trim_start();
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return &text[..at];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines_of;
    use super::*;

    fn check_at(path: &str, text: &str) -> Vec<usize> {
        lines_of(&check(&RustFile::new(path, text)))
    }

    #[test]
    fn every_way_to_ask_is_found() {
        for line in [
            "#[cfg(unix)]",
            "#[cfg(not(unix))]",
            "#![cfg(windows)]",
            "#[cfg(target_os = \"linux\")]",
            "#[cfg(all(test, any(windows)))]",
            "#[cfg_attr(unix, path = \"unix.rs\")]",
            "if cfg!(windows) {}",
            "cfg_select! { unix => {} _ => {} }",
            "#[cfg(all(\n    test,\n    unix,\n))]",
        ] {
            assert_eq!(check_at("crates/store/src/a.rs", line), [1], "{line}");
            assert_eq!(check_at("crates/platform/src/a.rs", line), [0; 0], "{line}");
            assert_eq!(check_at("tests/tests/e2e/a.rs", line), [0; 0], "{line}");
        }
    }

    #[test]
    fn other_conditions_and_other_windows_are_fine() {
        for line in [
            "#[cfg(test)]\nfn f(a: &[u8]) { a.windows(2); }",
            "#[cfg(feature = \"unix\")]",
            "// #[cfg(unix)]",
            "let cfg = windows;",
            "#[cfg(debug_assertions)]",
        ] {
            assert_eq!(check_at("crates/store/src/a.rs", line), [0; 0], "{line}");
        }
    }
}
