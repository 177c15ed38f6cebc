//! What is to be seen on a screen to which these bytes were sent. A pseudo console sends what draws its screen, which
//! is not what was printed in it.

/// The text, line by line and without the blanks at the end of each, with a sequence wherever the colours change. A
/// bell is no part of it, and comes last.
pub(crate) fn shown(bytes: &[u8], columns: usize, rows: usize) -> String {
    let mut screen = Screen { columns, rows, ..Screen::default() };
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => screen.obey(&mut rest),
            '\r' => screen.column = 0,
            '\n' | '\u{b}' | '\u{c}' => screen.feed(),
            '\u{8}' => screen.column = screen.column.saturating_sub(1),
            '\t' => screen.column = (screen.column / 8 + 1) * 8,
            // A terminal ignores it.
            '\0' => {}
            '\u{7}' => screen.bells += 1,
            other => screen.print(other),
        }
    }
    screen.text()
}

/// A character, and the numbers of how it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell(char, String);

/// Follows a character that is two columns wide.
const OTHER_HALF: char = '\0';

#[derive(Debug, Default)]
struct Screen {
    columns: usize,
    rows: usize,
    lines: Vec<Vec<Cell>>,
    /// How many lines have left it at the top.
    top: usize,
    row: usize,
    column: usize,
    style: String,
    bells: usize,
}

impl Screen {
    fn print(&mut self, what: char) {
        // Near enough for what is printed here.
        let width = if what > '\u{2fff}' && what != '\u{fffd}' { 2 } else { 1 };
        if self.column + width > self.columns {
            self.column = 0;
            self.feed();
        }
        for half in [what, OTHER_HALF].into_iter().take(width) {
            let (column, cell) = (self.column, Cell(half, self.style.clone()));
            *self.cell(column) = cell;
            self.column += 1;
        }
    }

    fn feed(&mut self) {
        self.row += 1;
        self.top = self.top.max((self.row + 1).saturating_sub(self.rows));
    }

    fn line(&mut self) -> &mut Vec<Cell> {
        let lines = self.lines.len().max(self.row + 1);
        self.lines.resize(lines, Vec::new());
        &mut self.lines[self.row]
    }

    fn cell(&mut self, column: usize) -> &mut Cell {
        let line = self.line();
        let cells = line.len().max(column + 1);
        line.resize(cells, Cell(' ', String::new()));
        &mut line[column]
    }

    /// Does what a sequence asks for.
    fn obey(&mut self, rest: &mut std::str::Chars<'_>) {
        match rest.next() {
            Some('[') => {
                let mut parameters = String::new();
                for next in rest {
                    match next {
                        '\u{40}'..='\u{7e}' => return self.control(&parameters, next),
                        _ => parameters.push(next),
                    }
                }
            }
            // A title or the like: up to a bell, or to the sequence for an end.
            Some(']' | 'P') => {
                while let Some(next) = rest.next() {
                    match next {
                        '\u{7}' => return,
                        '\u{1b}' => {
                            rest.next();
                            return;
                        }
                        _ => {}
                    }
                }
            }
            // A set of characters.
            Some('(' | ')') => {
                rest.next();
            }
            _ => {}
        }
    }

    fn control(&mut self, parameters: &str, what: char) {
        let numbers: Vec<usize> = parameters.split(';').map(|number| number.parse().unwrap_or(0)).collect();
        let place = |n: usize| numbers.get(n).copied().unwrap_or(0).max(1);
        let bottom = self.top + self.rows.saturating_sub(1);
        match what {
            'm' => self.draw_as(parameters, &numbers),
            'H' | 'f' => (self.row, self.column) = (self.top + place(0) - 1, place(1) - 1),
            'A' => self.row = self.row.saturating_sub(place(0)).max(self.top),
            'B' => self.row += place(0),
            'C' => self.column += place(0),
            'D' => self.column = self.column.saturating_sub(place(0)),
            'G' => self.column = place(0) - 1,
            'd' => self.row = self.top + place(0) - 1,
            'J' if numbers[0] == 2 => self.lines.truncate(self.top),
            'K' if numbers[0] == 0 => {
                let column = self.column;
                self.line().truncate(column);
            }
            'X' => {
                for column in self.column..self.column + place(0) {
                    *self.cell(column) = Cell(' ', String::new());
                }
            }
            // What the cursor looks like, which keys are wanted, how large the window is: nothing that is seen.
            _ => {}
        }
        self.row = self.row.min(bottom);
        self.column = self.column.min(self.columns);
    }

    fn draw_as(&mut self, parameters: &str, numbers: &[usize]) {
        // A colour of its own has numbers that mean something else elsewhere.
        if matches!(numbers[0], 38 | 48) {
            self.style = parameters.to_owned();
            return;
        }
        for number in numbers {
            match number {
                // Back to what is usual: all of it, the weight, lines, inverse, either colour.
                0 | 22 | 24 | 27 | 39 | 49 => self.style.clear(),
                other if self.style.is_empty() => self.style = other.to_string(),
                other => self.style = format!("{};{other}", self.style),
            }
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let seen = line.iter().rposition(|cell| cell.0 != ' ').map_or(0, |last| last + 1);
            let mut style = "";
            for Cell(what, its_style) in line[..seen].iter().filter(|cell| cell.0 != OTHER_HALF) {
                if style != its_style {
                    let numbers = if its_style.is_empty() { "0" } else { its_style };
                    text.push_str(&format!("\u{1b}[{numbers}m"));
                    style = its_style;
                }
                text.push(*what);
            }
            text.push_str(if style.is_empty() { "\n" } else { "\u{1b}[0m\n" });
        }
        text.truncate(text.trim_end_matches('\n').len());
        if !text.is_empty() {
            text.push('\n');
        }
        text + &"\u{7}".repeat(self.bells)
    }
}

#[cfg(test)]
mod tests {
    fn shown(text: &str) -> String {
        super::shown(text.as_bytes(), 10, 4)
    }

    #[test]
    fn what_draws_a_screen_is_no_part_of_it() {
        for (drawn, seen) in [
            ("", ""),
            ("\x1b[2J\x1b[m\x1b[H\x1b[?25l\x1b]0;C:\\a\x07one\x1b[K\r\n\x1b[?25htwo  \r\n\r\n", "one\ntwo\n"),
            ("name?\x1b[K\x1b[1Cyes", "name? yes\n"),
            ("10%\r20%", "20%\n"),
            ("abcde\x1b[1;2HX\x1b[2X", "aX  e\n"),
            ("a\x1b[3;3Hc\x1b[1;4Hd", "a  d\n\n  c\n"),
            ("\x1b[31mred\x1b[m, \x1b[1;32mgreen\x1b[39m", "\x1b[31mred\x1b[0m, \x1b[1;32mgreen\x1b[0m\n"),
            ("\x1b[38;2;0;0;0mblack", "\x1b[38;2;0;0;0mblack\x1b[0m\n"),
            // A line that is full ends where the next character has no room, and not before.
            ("0123456789\r\nab", "0123456789\nab\n"),
            ("0123456789ab", "0123456789\nab\n"),
            ("日本日本日本", "日本日本日\n本\n"),
            // Lines that have left the screen were seen; places are counted from what is left.
            ("1\r\n2\r\n3\r\n4\r\n5\x1b[1;3H*", "1\n2 *\n3\n4\n5\n"),
            ("be\u{7}ll", "bell\n\u{7}"),
        ] {
            assert_eq!(shown(drawn), seen, "{drawn:?}");
        }
    }
}
