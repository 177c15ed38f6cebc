//! One table in a TOML file of a user: a block of lines at its end, between two comments that say whose it is. What
//! stands before and after it stays as it is.

use std::fmt::Write as _;

use super::MARK;

const END: &str = "# end of what hearback wrote";

/// A table with text and lists of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// Its name, of two words.
    pub(super) name: [&'static str; 2],
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

impl Table {
    /// Its lines.
    pub(super) fn text(&self) -> String {
        // Both languages escape text alike.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let args: Vec<_> = self.args.iter().map(|arg| quoted(arg)).collect();
        let [outer, inner] = self.name;
        let mut text = format!("[{outer}.{inner}]\n");
        let _ = writeln!(text, "command = {}\nargs = [{}]", quoted(&self.command), args.join(", "));
        text
    }

    /// Whether a table of this name is there.
    pub(super) fn is_in(&self, text: &str) -> Option<bool> {
        let document: toml::Table = text.parse().ok()?;
        let [outer, inner] = self.name;
        Some(document.get(outer).and_then(|outer| outer.get(inner)).is_some())
    }

    /// The text with this table, which is not there yet; none if that cannot be done safely.
    pub(super) fn insert(&self, text: &str) -> Option<String> {
        let gap = match text {
            "" => "",
            _ if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let new = format!("{text}{gap}{}", self.block());
        self.only_difference(text, &new)?;
        Some(new)
    }

    /// The text without the block that hearback wrote, and the table in it; none if there is none, or if the block
    /// holds something else: a program that edits the file may put it there.
    pub(super) fn remove(&self, text: &str) -> Option<(String, toml::Value)> {
        let begin = text.find(&format!("# {MARK}"))?;
        let end = begin + text[begin..].find(END)? + END.len();
        let end = end + usize::from(text[end..].starts_with('\n'));
        // The empty line before it is ours, too.
        let start = if text[..begin].ends_with("\n\n") { begin - 1 } else { begin };
        let without = format!("{}{}", &text[..start], &text[end..]);
        let table = self.only_difference(&without, text)?;
        Some((without, table))
    }

    /// The table of this name in a text, if another text lacks that and nothing else.
    fn only_difference(&self, without: &str, with: &str) -> Option<toml::Value> {
        let (without, mut with): (toml::Table, toml::Table) = (without.parse().ok()?, with.parse().ok()?);
        let [outer, inner] = self.name;
        let holder = with.get_mut(outer)?.as_table_mut()?;
        let table = holder.remove(inner)?;
        if holder.is_empty() && !without.contains_key(outer) {
            with.remove(outer);
        }
        (without == with).then_some(table)
    }

    fn block(&self) -> String {
        format!("# {MARK}; `--remove` takes it away\n{}{END}\n", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table {
            name: ["mcp_servers", "hearback"],
            command: "C:\\a \"b\"\\hearback".into(),
            args: vec!["mcp".into(), "--sink".into(), "codex".into()],
        }
    }

    #[test]
    fn a_table_goes_in_and_out_and_nothing_else_changes() {
        for file in [
            "",
            "model = \"x\" # mine\n",
            "[mcp_servers.other]\ncommand = \"y\"\n\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n",
            "# only a comment\n",
        ] {
            let with = table().insert(file).unwrap();
            assert_eq!(table().is_in(&with), Some(true), "{with}");
            let document: toml::Table = with.parse().unwrap();
            assert_eq!(
                document["mcp_servers"]["hearback"]["command"].as_str(),
                Some("C:\\a \"b\"\\hearback")
            );
            assert_eq!(table().remove(&with).unwrap().0, file, "{with}");
            // What was added below it stays.
            let more = format!("{with}\n[tui]\nx = 1\n");
            assert!(table().remove(&more).unwrap().0.ends_with("\n[tui]\nx = 1\n"));
        }
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for text in ["mcp_servers = {}\n", "a = \n", "mcp_servers = 1\n"] {
            assert_eq!(table().insert(text), None, "{text}");
        }
        assert_eq!(table().remove("a = 1\n"), None);
        // A table of the user between our lines, and a part of ours that is not there.
        let with = table().insert("").unwrap();
        assert_eq!(table().remove(&with.replace(END, &format!("[tui]\nx = 1\n{END}"))), None);
        assert_eq!(table().remove(&format!("{with}[mcp_servers.hearback.env]\nA = \"b\"\n")), None);
    }
}
