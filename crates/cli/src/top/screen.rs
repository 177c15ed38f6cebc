//! The terminal that `top` draws on, and how it is given back: after the last picture, after a panic, and for a while
//! when the program is suspended.

use std::fmt::Write as _;
use std::io::{self, Write};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::{Frame, Terminal};

/// The other screen, no cursor, and pasted text marked as such, so that it is not taken for keys.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?2004h\u{1b}[2J";
const LEAVE: &str = "\u{1b}[?2004l\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l";

/// The code with which Rust ends a program that panicked.
const PANICKED: i32 = 101;

/// A terminal of which `top` has the whole screen, until this is dropped.
pub(crate) struct Screen {
    terminal: Terminal<Tty>,
}

impl Screen {
    /// Takes the screen.
    pub(crate) fn take() -> io::Result<Self> {
        let before = std::panic::take_hook();
        // The message of a panic has to be seen, and another thread may have panicked: the picture would go on.
        std::panic::set_hook(Box::new(move |info| {
            leave();
            before(info);
            std::process::exit(PANICKED);
        }));
        // Made before the terminal changes, so that a failure from here on gives it back.
        let mut screen = Self { terminal: Terminal::new(Tty::default())? };
        screen.enter()?;
        Ok(screen)
    }

    /// Takes the terminal again, whatever another program has made of it, and forgets what is on it.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        write_all(ENTER)?;
        self.terminal.clear()
    }

    /// Gives the terminal back until the person continues this program.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        leave();
        let suspended = hearback::suspend();
        self.enter()?;
        suspended
    }

    /// Draws a picture: what differs from the last one is written, in one piece.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back. What fails here has no one to be told: the terminal may be gone.
fn leave() {
    let _ = write_all(LEAVE);
    let _ = disable_raw_mode();
}

fn write_all(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes the cells that have changed as escape sequences, which are collected until the picture is complete.
#[derive(Debug, Default)]
struct Tty(String);

impl Tty {
    fn move_to(&mut self, at: Position) {
        let _ = write!(self.0, "\u{1b}[{};{}H", at.y.saturating_add(1), at.x.saturating_add(1));
    }
}

impl Backend for Tty {
    type Error = io::Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, cells: I) -> io::Result<()> {
        let (mut next, mut style) = (None, None);
        for (x, y, cell) in cells {
            if next != Some((x, y)) {
                self.move_to(Position { x, y });
            }
            if style != Some(cell.style()) {
                style = Some(cell.style());
                self.0.push_str(&sequence(cell.style()));
            }
            self.0.push_str(cell.symbol());
            // After a wide character comes no neighbour, so the cursor is moved.
            next = Some((x + 1, y));
        }
        self.0.push_str("\u{1b}[0m");
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.0.push_str("\u{1b}[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.0.push_str("\u{1b}[?25h");
        Ok(())
    }

    /// Only a view that shares the screen needs to know it.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.move_to(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.push_str("\u{1b}[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        size().map(Size::from)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::default() })
    }

    fn flush(&mut self) -> io::Result<()> {
        let picture = std::mem::take(&mut self.0);
        write_all(&picture)
    }
}

/// The sequence that makes what follows look like this, whatever came before.
fn sequence(style: Style) -> String {
    let mut codes = String::from("\u{1b}[0");
    for (modifier, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ] {
        if style.add_modifier.contains(modifier) {
            let _ = write!(codes, ";{code}");
        }
    }
    for (colour, first) in [(style.fg, 30), (style.bg, 40)] {
        let _ = match colour {
            // The sixteen that a person has chosen for the terminal.
            Some(Color::Indexed(n @ 0..8)) => write!(codes, ";{}", first + u16::from(n)),
            Some(Color::Indexed(n @ 8..16)) => write!(codes, ";{}", first + 60 + u16::from(n - 8)),
            Some(Color::Indexed(n)) => write!(codes, ";{};5;{n}", first + 8),
            Some(Color::Rgb(r, g, b)) => write!(codes, ";{};2;{r};{g};{b}", first + 8),
            _ => Ok(()),
        };
    }
    codes.push('m');
    codes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_is_written_whole() {
        let style = Style::new().fg(Color::Indexed(1)).bg(Color::Indexed(12)).add_modifier(Modifier::BOLD);
        assert_eq!(sequence(style), "\u{1b}[0;1;31;104m");
        assert_eq!(sequence(Style::new().fg(Color::Indexed(200))), "\u{1b}[0;38;5;200m");
        assert_eq!(sequence(Style::reset()), "\u{1b}[0m");
    }

    #[test]
    fn cells_are_written_where_they_are_and_neighbours_without_a_move() {
        let mut tty = Tty::default();
        let (plain, faint) = (Cell::new("a"), Cell::default().set_style(Modifier::DIM).clone());
        tty.draw([(2, 1, &plain), (3, 1, &plain), (0, 4, &faint)].into_iter()).unwrap();
        assert_eq!(tty.0, "\u{1b}[2;3H\u{1b}[0maa\u{1b}[5;1H\u{1b}[0;2m \u{1b}[0m");
    }
}
