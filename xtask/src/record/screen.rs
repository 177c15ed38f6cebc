//! What a terminal shows, as runs of text with one look each: from `tmux capture-pane -e`.

/// Text that looks the same from beginning to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The column in which it begins.
    pub(super) column: usize,
    pub(super) text: String,
    pub(super) look: Look,
}

/// How text looks. A colour is one of the eight that every terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) is_bold: bool,
    pub(super) is_dim: bool,
    pub(super) colour: Option<u8>,
}

impl Look {
    /// Applies the numbers of one `ESC [ … m`.
    fn change(&mut self, numbers: &str) {
        for number in numbers.split(';') {
            match number.parse().unwrap_or(0) {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                colour @ 30..=37 => self.colour = Some(colour - 30),
                colour @ 90..=97 => self.colour = Some(colour - 90),
                39 => self.colour = None,
                _ => {}
            }
        }
    }
}

/// The rows of a screen without the empty ones and the prompt at its end. The look carries on from row to row.
pub(super) fn rows(screen: &str) -> Vec<Vec<Run>> {
    let mut look = Look::default();
    let mut rows: Vec<_> = screen.lines().map(|line| row(line, &mut look)).collect();
    while rows.last().is_some_and(|row| is_empty(row)) {
        rows.pop();
    }
    if rows.last().is_some_and(|row| text(row).trim_end() == "$") {
        rows.pop();
    }
    rows
}

/// The text of a row.
pub(super) fn text(row: &[Run]) -> String {
    row.iter().map(|run| run.text.as_str()).collect()
}

fn is_empty(row: &[Run]) -> bool {
    text(row).trim().is_empty()
}

fn row(line: &str, look: &mut Look) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut column = 0;
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        if let Some((numbers, after)) = rest.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once('m')) {
            look.change(numbers);
            rest = after;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        if character.is_control() {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.look == *look => run.text.push(character),
            _ => runs.push(Run { column, text: character.into(), look: *look }),
        }
        column += 1;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_where_its_look_changes() {
        let rows = rows("a\u{1b}[1m\u{1b}[32mb\u{1b}[0m c\n");
        let seen: Vec<_> = rows[0].iter().map(|run| (run.column, run.text.as_str(), run.look)).collect();
        let green = Look { is_bold: true, is_dim: false, colour: Some(2) };
        assert_eq!(seen, [(0, "a", Look::default()), (1, "b", green), (2, " c", Look::default())]);
    }

    #[test]
    fn a_look_carries_on_to_the_next_row_and_the_prompt_at_the_end_goes() {
        let rows = rows("\u{1b}[2ma\nb\u{1b}[22m\n$ \n\n\n");
        assert_eq!(rows.len(), 2);
        assert!(rows[1][0].look.is_dim);
    }
}
