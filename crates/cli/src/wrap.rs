//! Prose for a terminal: lines end between words, and what a person may copy stays in one piece.

use unicode_width::UnicodeWidthStr;

/// Stands for a space at which no line ends. No text of Unicode has this character.
const GLUE: char = '\u{fdd0}';

/// The least that is left beside what precedes a text; with less, the text begins on the line below.
const BESIDE_MIN: usize = 24;
/// How far it is indented there.
const BELOW: usize = 4;

/// A text that stays in one piece as long as it fits on a line.
pub(crate) fn whole(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// How many columns a text takes, colours aside.
pub(crate) fn columns(text: &str) -> usize {
    if text.contains('\u{1b}') {
        anstream::adapter::strip_str(text).to_string().width()
    } else {
        text.width()
    }
}

/// Breaks each line of a text that is wider than `width`, and indents what follows by `indent` columns more than the
/// line itself. Without a width, which is a pipe or a file, each line stays one.
pub(crate) fn wrap(text: &str, width: Option<usize>, indent: usize) -> String {
    let lines = text.split('\n').map(|line| match width {
        Some(width) if columns(line) > width => wrap_line(line, width, indent),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").replace(GLUE, " ")
}

/// A text after something that names it, such as `error:` or a cell of a table. Its lines begin below each other.
pub(crate) fn beside(before: &str, text: &str, width: Option<usize>) -> String {
    let taken = columns(before);
    let Some(width) = width else { return wrap(&format!("{before}{text}"), None, 0) };
    // A path, say, that fits below and not beside.
    let first = text.split(' ').next().unwrap_or_default();
    let is_narrow = width < taken + BESIDE_MIN || taken + columns(first) > width;
    if taken > BELOW && is_narrow && taken + columns(text) > width && !before.trim().is_empty() {
        let below = " ".repeat(BELOW);
        let text = wrap(&format!("{below}{text}"), Some(width), 0);
        return format!("{}\n{text}", before.trim_end());
    }
    // A line keeps its own margin, which counts as well.
    let own = before.len() - before.trim_start_matches(' ').len();
    wrap(&format!("{before}{text}"), Some(width), taken.saturating_sub(own))
}

fn wrap_line(line: &str, width: usize, indent: usize) -> String {
    let own = line.len() - line.trim_start_matches(' ').len();
    let margin = " ".repeat((own + indent).min(width / 2));
    let mut done = String::new();
    let mut current = " ".repeat(own);
    let mut is_empty = true;
    let pieces = pieces(line, width - margin.len());
    for (gap, piece) in &pieces {
        let gap = if is_empty { 0 } else { *gap };
        if !is_empty && columns(&current) + gap + columns(piece) > width {
            done.push_str(current.trim_end());
            done.push('\n');
            current.clone_from(&margin);
        } else {
            current.push_str(&" ".repeat(gap));
        }
        current.push_str(piece);
        is_empty = false;
    }
    done + &current
}

/// The words of a line, each with the number of spaces before it. What is within backticks is one word if it fits.
fn pieces(line: &str, most: usize) -> Vec<(usize, String)> {
    let is_odd = |word: &str| word.matches('`').count() % 2 == 1;
    let words: Vec<&str> = line.trim_start_matches(' ').split(' ').collect();
    let (mut pieces, mut gap, mut at) = (Vec::new(), 0, 0);
    while at < words.len() {
        let mut end = at + 1;
        if is_odd(words[at])
            && let Some(more) = words[end..].iter().position(|word| is_odd(word))
            && columns(&words[at..=end + more].join(" ")) <= most
        {
            end += more + 1;
        }
        // Two spaces in a row have an empty word between them.
        match words[at] {
            "" => gap += 1,
            _ => {
                pieces.extend(unglued(gap, &words[at..end].join(" "), most));
                gap = 1;
            }
        }
        at = end;
    }
    pieces
}

/// A piece that must not be broken, and is if it does not fit on any line.
fn unglued(gap: usize, piece: &str, most: usize) -> Vec<(usize, String)> {
    if columns(piece) <= most {
        return vec![(gap, piece.to_owned())];
    }
    let words = piece.split(GLUE).enumerate();
    words.map(|(n, word)| (if n == 0 { gap } else { 1 }, word.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_a_pipe_gets_them_as_they_are() {
        let text = "no monitor is running: `hearback monitor install` installs one";
        assert_eq!(wrap(text, None, 2), text);
        assert_eq!(wrap(text, Some(80), 2), text);
        assert_eq!(
            wrap(text, Some(40), 2),
            "no monitor is running:\n  `hearback monitor install` installs\n  one"
        );
        assert_eq!(wrap("  a b", Some(4), 0), "  a\n  b");
        assert_eq!(wrap("one\n\ntwo three", Some(5), 0), "one\n\ntwo\nthree");
        // Each of these characters takes two columns, and colours take none.
        assert_eq!(wrap("日本 語日 本語", Some(9), 0), "日本 語日\n本語");
        assert_eq!(wrap("\u{1b}[1mab\u{1b}[0m cd ef", Some(5), 0), "\u{1b}[1mab\u{1b}[0m cd\nef");
    }

    #[test]
    fn what_does_not_fit_on_any_line_is_broken_at_its_spaces_and_a_long_word_stays() {
        let commands = format!("next: {}, {}", whole("hearback wait abc"), whole("hearback logs abc"));
        assert_eq!(wrap(&commands, None, 6), "next: hearback wait abc, hearback logs abc");
        assert_eq!(wrap(&commands, Some(40), 6), "next: hearback wait abc,\n      hearback logs abc");
        assert_eq!(wrap(&whole("a b c"), Some(3), 0), "a b\nc");
        assert_eq!(wrap("see /a/long/path now", Some(8), 0), "see\n/a/long/path\nnow");
        assert_eq!(wrap("say `a b c d` now", Some(6), 0), "say `a\nb c d`\nnow");
    }

    #[test]
    fn a_text_beside_its_name_begins_below_it_where_that_is_narrow() {
        let text = "four words go here";
        assert_eq!(beside("tip: ", "a b c", Some(40)), "tip: a b c");
        assert_eq!(beside("error: ", text, Some(18)), "error:\n    four words go\n    here");
        assert_eq!(beside("name  ", text, Some(31)), "name  four words go here");
        assert_eq!(beside("  126  ", text, Some(18)), "  126\n    four words go\n    here");
        let long = "many more words than fit beside it";
        assert_eq!(beside("name  ", long, Some(31)), "name  many more words than fit\n      beside it");
        assert_eq!(beside("  me  ", long, Some(31)), "  me  many more words than fit\n      beside it");
        assert_eq!(
            beside("    in  ", "/a/long/path/to/a/folder", Some(31)),
            "    in\n    /a/long/path/to/a/folder"
        );
        // All blank: the continuation of a cell.
        assert_eq!(beside("      ", long, Some(31)), "      many more words than fit\n      beside it");
    }
}
