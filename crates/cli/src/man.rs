//! Man pages: one for the program and one for each command. Only in a build that is made to write them.

use std::io::Write as _;
use std::path::Path;

use clap::Command;

use crate::error::CliError;
use crate::help;

const FILES: &str = "\
$HEARBACK_HOME, else $XDG_STATE_HOME/hearback, else ~/.local/state/hearback
  The store: jobs, their output, and the settings in config.toml.
  On macOS ~/Library/Application Support/hearback, on Windows %LOCALAPPDATA%\\hearback.";

/// Writes the pages of all commands into a folder, which has to exist.
pub(crate) fn write(folder: &Path) -> Result<u32, CliError> {
    for (name, text) in pages().map_err(CliError::Output)? {
        fs_err::write(folder.join(format!("{name}.1")), text).map_err(CliError::Output)?;
    }
    Ok(0)
}

/// Name and text of each page.
fn pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = without_help(help::command());
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, None, &mut pages)?;
    Ok(pages)
}

/// The command `help` has no page of its own.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn add_pages(
    command: &Command,
    parent: Option<&str>,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let page = clap_mangen::Man::new(command.clone()).source(concat!("hearback ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    let below: Vec<_> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    if !below.is_empty() {
        page.render_subcommands_section(&mut text)?;
    }
    if let Some(after) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        let after = after.to_string();
        match after.strip_prefix("Examples:\n") {
            Some(examples) => section(&mut text, "EXAMPLES", examples, Lines::AsTheyAre)?,
            None => section(&mut text, "NOTES", &after, Lines::Filled)?,
        }
    }
    match parent {
        Some(parent) => section(&mut text, "SEE ALSO", &format!("{parent}(1)"), Lines::Filled)?,
        None => {
            section(&mut text, "EXIT STATUS", help::exit_codes(Some(72)).trim_end(), Lines::AsTheyAre)?;
            section(&mut text, "FILES", FILES, Lines::AsTheyAre)?;
        }
    }
    pages.push((name.to_owned(), ascii(&String::from_utf8_lossy(&text)).into_bytes()));
    below.into_iter().try_for_each(|command| add_pages(command, Some(name), pages))
}

/// Not every formatter reads UTF-8.
fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) })
        .collect()
}

enum Lines {
    AsTheyAre,
    Filled,
}

fn section(text: &mut Vec<u8>, title: &str, body: &str, lines: Lines) -> std::io::Result<()> {
    let escaped = body.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    match lines {
        Lines::AsTheyAre => writeln!(text, ".SH \"{title}\"\n.nf\n{escaped}\n.fi"),
        Lines::Filled => writeln!(text, ".SH \"{title}\"\n{escaped}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(command: &Command) -> Vec<String> {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let below = command.get_subcommands().filter(|command| !command.is_hide_set());
        std::iter::once(name).chain(below.flat_map(visible)).collect()
    }

    #[test]
    fn every_command_has_a_page_and_every_page_that_is_named_exists() {
        let pages = pages().unwrap();
        let names: Vec<_> = pages.iter().map(|(name, _)| name.as_str()).collect();
        let mut command = help::command().disable_help_subcommand(true);
        command.build();
        let commands = visible(&command).into_iter().filter(|name| !name.ends_with("-help"));
        assert_eq!(commands.collect::<Vec<_>>(), names);
        for (name, text) in &pages {
            let text = String::from_utf8(text.clone()).unwrap().replace("\\-", "-");
            assert!(text.is_ascii(), "{name}");
            assert!(text.contains(".SH NAME") && !text.contains("EXTRA"), "{name}:\n{text}");
            for named in text.lines().filter_map(|line| line.strip_suffix("(1)")) {
                assert!(names.contains(&named), "{name} names {named}");
            }
            // What begins with a dot or a quote is a request to the formatter.
            let requests = text.lines().filter(|line| line.starts_with(['.', '\'']));
            let known = [".TH", ".SH", ".TP", ".RS", ".RE", ".IP", ".nf", ".fi", ".PP", ".ie", ".el", ".br"];
            let mut unknown = requests.filter(|line| !known.iter().any(|request| line.starts_with(request)));
            assert_eq!(unknown.next(), None, "{name}");
        }
    }
}
