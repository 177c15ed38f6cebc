//! Nothing unfinished, switched off or careless is left in the code.

use super::finding::Finding;
use super::rust_file::{RustFile, find_word, has_word};

const MACROS: &[(&str, &str)] = &[
    ("todo", "what is not written yet must not be reachable"),
    ("unimplemented", "what is not written yet must not be reachable"),
    ("dbg", "it prints into the output that programs read"),
];

// Spelled in two halves, so that this file does not break its own rules.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];
const KILLERS: &[&str] = &[concat!("p", "kill"), concat!("kill", "all")];

pub(crate) fn check(file: &RustFile<'_>) -> Vec<Finding> {
    let mut findings = unfinished_macros(file);
    findings.extend(ignored_tests(file));
    findings.extend(notes(file));
    findings.extend(kills_by_name(file));
    findings
}

fn unfinished_macros(file: &RustFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, why) in MACROS {
        for at in find_word(&file.code, name) {
            if file.code[at + name.len()..].starts_with('!') {
                let message = format!("`{name}!` is left in the code: {why}");
                findings.push(Finding::new(file.path, file.line_at(at), message));
            }
        }
    }
    findings
}

fn ignored_tests(file: &RustFile<'_>) -> Vec<Finding> {
    let is_ignored =
        |line: &str| line.contains("#[ignore") || (line.contains("#[cfg_attr(") && has_word(line, "ignore"));
    let message =
        "an ignored test: it rots unseen, so make it pass, or delete it and mark its scenario planned";
    (1..)
        .zip(file.code.lines())
        .filter(|(_, code)| is_ignored(code))
        .map(|(line, _)| Finding::new(file.path, line, message))
        .collect()
}

/// Looks into literals as well: a note in a message would even reach users.
fn notes(file: &RustFile<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(file.text.lines()) {
        if let Some(note) = NOTES.iter().find(|note| has_word(text, note)) {
            let message =
                format!("`{note}` is left in the file: notes in code are not followed up, so open an issue");
            findings.push(Finding::new(file.path, line, message));
        }
    }
    findings
}

/// Looks at code and literals; a comment may well explain why we do not do this.
fn kills_by_name(file: &RustFile<'_>) -> Vec<Finding> {
    let in_code = (1..).zip(file.code.lines());
    let in_strings = file.strings.iter().map(|literal| (literal.line, literal.text.as_str()));
    let mut findings = Vec::new();
    for (line, text) in in_code.chain(in_strings) {
        if let Some(killer) = KILLERS.iter().find(|killer| has_word(text, killer)) {
            let message = format!("`{killer}` kills by name: it also ends processes that are not ours");
            findings.push(Finding::new(file.path, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::finding::lines_of;
    use super::*;

    fn check_text(text: &str) -> Vec<usize> {
        lines_of(&check(&RustFile::new("crates/core/src/a.rs", text)))
    }

    #[test]
    fn unfinished_macros_are_found() {
        assert_eq!(check_text("todo!();\nstd::unimplemented!(\"a\");\nlet a = dbg!(b);\n"), [1, 2, 3]);
        assert_eq!(check_text("// todo!()\nlet a = \"dbg!(b)\";\nmy_dbg!(a);\nlet todo = 1;\n"), [0; 0]);
    }

    #[test]
    fn ignored_tests_are_found() {
        assert_eq!(check_text("#[ignore]\n#[ignore = \"slow\"]\n#[cfg_attr(miri, ignore)]\n"), [1, 2, 3]);
        assert_eq!(check_text("// #[ignore]\nlet ignore = 1;\n#[cfg_attr(test, allow(a))]\n"), [0; 0]);
    }

    #[test]
    fn notes_are_found_everywhere() {
        for note in NOTES {
            assert_eq!(check_text(&format!("\n// {note}: later\nlet a = \"{note}\";\n")), [2, 3]);
            assert_eq!(check_text(&format!("const {note}S: u8 = 1;\n")), [0; 0]);
        }
    }

    #[test]
    fn kills_by_name_are_found_outside_comments() {
        for killer in KILLERS {
            assert_eq!(check_text(&format!("command(\"{killer}\");\nf(\"{killer} -f x\");\n")), [1, 2]);
            assert_eq!(check_text(&format!("// Unlike {killer}, this asks for identity.\n")), [0; 0]);
        }
    }
}
