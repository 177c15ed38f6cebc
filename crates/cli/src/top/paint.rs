//! Text of ours and of jobs as rows of the screen: its colours become styles, and no sequence reaches the terminal.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

const TAB: usize = 8;

/// The rows that a text takes in so many columns. Colours are left out unless they are wanted.
pub(super) fn rows(text: &str, width: usize, colours: bool) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    let mut row = Row::default();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\n' => rows.push(row.end()),
            '\t' => {
                for _ in 0..TAB - row.width % TAB {
                    row.push(' ', 1, width, &mut rows);
                }
            }
            '\u{1b}' => {
                let parameters = chars.as_str().strip_prefix('[').and_then(|rest| rest.split_once('m'));
                if let Some((numbers, rest)) = parameters.filter(|(numbers, _)| is_colour(numbers)) {
                    chars = rest.chars();
                    if colours {
                        row.change(numbers);
                    }
                }
            }
            c if c.is_control() => {}
            c => row.push(c, c.width().unwrap_or(0), width, &mut rows),
        }
    }
    if row.width > 0 || !row.text.is_empty() {
        rows.push(row.end());
    }
    rows
}

fn is_colour(parameters: &str) -> bool {
    parameters.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')
}

#[derive(Debug, Default)]
struct Row {
    spans: Vec<Span<'static>>,
    text: String,
    style: Style,
    width: usize,
}

impl Row {
    fn push(&mut self, c: char, columns: usize, width: usize, rows: &mut Vec<Line<'static>>) {
        if self.width + columns > width && self.width > 0 {
            rows.push(self.end());
        }
        self.text.push(c);
        self.width += columns;
    }

    fn change(&mut self, numbers: &str) {
        self.end_span();
        self.style = changed(self.style, numbers);
    }

    fn end_span(&mut self) {
        if !self.text.is_empty() {
            self.spans.push(Span::styled(std::mem::take(&mut self.text), self.style));
        }
    }

    fn end(&mut self) -> Line<'static> {
        self.end_span();
        self.width = 0;
        Line::from(std::mem::take(&mut self.spans))
    }
}

/// The style after a sequence of these numbers.
fn changed(mut style: Style, numbers: &str) -> Style {
    let mut numbers = numbers.split(';').map(|number| number.parse::<u8>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        let colour = |first| Color::Indexed(number - first);
        style = match number {
            0 => Style::new(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            9 => style.add_modifier(Modifier::CROSSED_OUT),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => style.remove_modifier(Modifier::ITALIC),
            24 => style.remove_modifier(Modifier::UNDERLINED),
            27 => style.remove_modifier(Modifier::REVERSED),
            29 => style.remove_modifier(Modifier::CROSSED_OUT),
            30..=37 => style.fg(colour(30)),
            90..=97 => style.fg(colour(82)),
            40..=47 => style.bg(colour(40)),
            100..=107 => style.bg(colour(92)),
            39 => style.fg(Color::Reset),
            49 => style.bg(Color::Reset),
            38 | 48 => {
                let chosen = match numbers.next() {
                    Some(5) => numbers.next().map(Color::Indexed),
                    Some(2) => match (numbers.next(), numbers.next(), numbers.next()) {
                        (Some(r), Some(g), Some(b)) => Some(Color::Rgb(r, g, b)),
                        _ => None,
                    },
                    _ => None,
                };
                match chosen {
                    Some(colour) if number == 38 => style.fg(colour),
                    Some(colour) => style.bg(colour),
                    None => style,
                }
            }
            _ => style,
        };
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> Vec<String> {
        rows(text, width, true).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_are_broken_by_what_they_take_on_the_screen() {
        assert_eq!(plain("abcdef\n\nxy", 4), ["abcd", "ef", "", "xy"]);
        assert_eq!(plain("日本語", 4), ["日本", "語"]);
        assert_eq!(plain("日本", 1), ["日", "本"], "one that never fits is not lost");
        assert_eq!(plain("a\tb", 20), ["a       b"]);
        assert_eq!(plain("", 4), [""; 0]);
    }

    #[test]
    fn colours_become_styles_and_no_other_sequence_reaches_the_terminal() {
        let line =
            &rows("\u{1b}[1;31mred\u{1b}[0m \u{1b}[38;5;200mpink\u{1b}[97;48;2;1;2;3mlight", 80, true)[0];
        let styles: Vec<_> = line.spans.iter().map(|span| (span.content.as_ref(), span.style)).collect();
        let red = Style::new().fg(Color::Indexed(1)).add_modifier(Modifier::BOLD);
        let pink = Style::new().fg(Color::Indexed(200));
        let light = Style::new().fg(Color::Indexed(15)).bg(Color::Rgb(1, 2, 3));
        assert_eq!(styles, [("red", red), (" ", Style::new()), ("pink", pink), ("light", light)]);
        let harmless = rows("a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{1b}[31md\r\u{9b}e", 80, false);
        let text = harmless[0].to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
        assert!(text.ends_with("de") && harmless[0].spans.len() == 1, "{text:?}");
    }
}
