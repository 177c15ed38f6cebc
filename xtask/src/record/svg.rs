//! Screens as one picture: text that can be read aloud and selected, in light and dark, without anything to load.

use super::screen::{Look, Run, text};

/// One screen and what it shows.
pub(super) struct Frame {
    pub(super) title: &'static str,
    pub(super) rows: Vec<Vec<Run>>,
}

const CHARACTER: f64 = 7.8;
const LINE: usize = 19;
const MARGIN: usize = 16;
const TITLE: usize = 30;

/// Both palettes have a contrast of at least 4.5 to 1 to their background.
const STYLE: &str = "\
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328 }\n\
    .title { font: 600 14px system-ui, -apple-system, 'Segoe UI', sans-serif }\n\
    .window { fill: #f6f8fa; stroke: #d1d9e0 } .typed { font-weight: 600 } .bold { font-weight: 700 }\n\
    .dim { fill: #59636e } .c1 { fill: #c4231c } .c2 { fill: #116329 } .c3 { fill: #7d4e00 } .c4 { fill: #0550ae }\n\
    .c5 { fill: #7c3aad } .c6 { fill: #0b5f66 }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #e6edf3 } .window { fill: #151b23; stroke: #3d444d }\n\
    .dim { fill: #9198a1 } .c1 { fill: #ff7b72 } .c2 { fill: #56d364 } .c3 { fill: #e3b341 } .c4 { fill: #79c0ff }\n\
    .c5 { fill: #d2a8ff } .c6 { fill: #56d4dd }\n\
    }\n";

/// Draws the frames below each other.
pub(super) fn draw(frames: &[Frame], columns: usize) -> String {
    let width = (columns as f64 * CHARACTER) as usize + 4 * MARGIN;
    let mut body = String::new();
    let mut y = MARGIN;
    for frame in frames {
        let height = frame.rows.len() * LINE + 2 * MARGIN;
        body += &format!(
            "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n",
            y + 14,
            escaped(frame.title)
        );
        y += TITLE - 6;
        body += &format!(
            "<rect class=\"window\" x=\"{MARGIN}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"8\"/>\n",
            width - 2 * MARGIN
        );
        for (n, row) in frame.rows.iter().enumerate() {
            body += &line(row, y + MARGIN + 14 + n * LINE);
        }
        y += height + MARGIN;
    }
    let titles: Vec<_> = frames.iter().map(|frame| escaped(frame.title)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" \
         role=\"img\" aria-labelledby=\"title about\">\n<title id=\"title\">hearback at a terminal</title>\n\
         <desc id=\"about\">{}.</desc>\n<style>\n{STYLE}</style>\n{body}</svg>\n",
        titles.join(". ")
    )
}

/// One row. Each run has its own place, so that columns are kept with any font.
fn line(row: &[Run], y: usize) -> String {
    let whole = text(row);
    if whole.trim().is_empty() {
        return String::new();
    }
    let is_typed = whole.starts_with("$ ") || whole.starts_with("> ");
    let mut spans = String::new();
    for run in row {
        let shown = run.text.trim_end();
        let blanks = shown.len() - shown.trim_start().len();
        if shown.trim().is_empty() {
            continue;
        }
        let x = (2 * MARGIN) as f64 + (run.column + blanks) as f64 * CHARACTER;
        let class = class(run.look, is_typed);
        let class = if class.is_empty() { class } else { format!(" class=\"{class}\"") };
        spans += &format!("<tspan x=\"{x:.1}\"{class}>{}</tspan>", escaped(shown.trim_start()));
    }
    format!("<text y=\"{y}\" xml:space=\"preserve\">{spans}</text>\n")
}

fn class(look: Look, is_typed: bool) -> String {
    let mut names = Vec::new();
    if is_typed {
        names.push("typed".to_owned());
    }
    if look.is_bold {
        names.push("bold".to_owned());
    }
    if look.is_dim {
        names.push("dim".to_owned());
    }
    // Black and white are those of the reader's own page.
    names.extend(look.colour.filter(|colour| (1..7).contains(colour)).map(|colour| format!("c{colour}")));
    names.join(" ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::screen::rows;
    use super::*;

    #[test]
    fn a_picture_holds_the_text_and_loads_nothing() {
        let picture =
            draw(&[Frame { title: "a & b", rows: rows("$ x <y>\n\u{1b}[31mfailed\u{1b}[0m\n") }], 40);
        assert!(picture.contains("<title id=\"title\">") && picture.contains("a &amp; b."), "{picture}");
        assert!(picture.contains(">$ x &lt;y&gt;</tspan>"), "{picture}");
        assert!(picture.contains("class=\"c1\">failed</tspan>"), "{picture}");
        let without_namespace = picture.replacen("http://www.w3.org/2000/svg", "", 1);
        for foreign in ["http", "url(", "<script", "<image", "@import"] {
            assert!(!without_namespace.contains(foreign), "{foreign}");
        }
    }
}
