//! One entry in a JSON file of a user: put in as the first member of its object, and taken out again. Everything else
//! stays as it is, byte for byte: order, comments and trailing commas, which many agents allow in their settings.

use serde_json::Value;

/// Where an entry stands: in an object that is a member of the whole document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The name of that object.
    pub(super) object: &'static str,
    /// The name of the entry.
    pub(super) name: &'static str,
}

/// The document without comments and trailing commas; none if it is no JSON even so.
pub(super) fn read(text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}');
    let mut plain = text.as_bytes().to_vec();
    let mut last_comma = None;
    let mut at = 0;
    while at < plain.len() {
        if let Some(end) = comment_end(text, at) {
            plain[at..end].fill(b' ');
            at = end;
            continue;
        }
        match plain[at] {
            b'"' => {
                at = string_end(text, at)?;
                last_comma = None;
                continue;
            }
            b',' => last_comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = last_comma.take() {
                    plain[comma] = b' ';
                }
            }
            byte if !byte.is_ascii_whitespace() => last_comma = None,
            _ => {}
        }
        at += 1;
    }
    serde_json::from_slice(&plain).ok()
}

/// The text with this entry, which is not there yet; none if that cannot be done safely.
pub(super) fn insert(text: Option<&str>, place: Place, entry: &Value) -> Option<String> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return Some(format!("{}\n", insert(Some("{}"), place, entry)?));
    };
    let root = Object::root(text)?;
    let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = root.indent(text).unwrap_or("  ");
    let new = match root.member(place.object) {
        Some(member) => {
            let object = Object::at(text, member.value.start)?;
            let inner = object.indent(text).map_or_else(|| indent.repeat(2), str::to_owned);
            object.with_first(text, &written(place.name, entry, &inner, indent, line), &inner, indent, line)
        }
        None => {
            let holder = Value::Object([(place.name.to_owned(), entry.clone())].into_iter().collect());
            root.with_first(text, &written(place.object, &holder, indent, indent, line), indent, "", line)
        }
    };
    // Nothing else has changed.
    let mut document = read(&new)?;
    let object = document.get_mut(place.object)?.as_object_mut()?;
    let is_added = object.remove(place.name).as_ref() == Some(entry);
    if root.member(place.object).is_none() {
        document.as_object_mut()?.remove(place.object);
    }
    (is_added && Some(document) == read(text)).then_some(new)
}

/// The text without the entry; none if that cannot be done safely. An object that is empty then, and may have been made
/// for it, goes with it.
pub(super) fn remove(text: &str, place: Place) -> Option<String> {
    let document = read(text)?;
    let entry = document.get(place.object)?.get(place.name)?.clone();
    let root = Object::root(text)?;
    let member = root.member(place.object)?;
    let object = Object::at(text, member.value.start)?;
    let ours = object.member(place.name)?;
    let is_alone = object.members.len() == 1;
    let mut candidates = Vec::new();
    if is_alone {
        candidates.extend(root.without(text, member));
    }
    candidates.extend(object.without(text, ours));
    // As it was before it was put in, if it is still as it was put in.
    let exact = candidates.iter().find(|before| insert(Some(before), place, &entry).as_deref() == Some(text));
    let last = exact.or(candidates.last())?.clone();
    let mut expected = document;
    expected.get_mut(place.object)?.as_object_mut()?.remove(place.name);
    let mut found = read(&last)?;
    if found.get(place.object).is_none() {
        found.as_object_mut()?.insert(place.object.to_owned(), Value::Object(serde_json::Map::new()));
    }
    (found == expected).then_some(last)
}

/// A member as it is written, at this indent.
fn written(name: &str, value: &Value, at: &str, step: &str, line: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let lines = pretty.lines().enumerate().map(|(n, text)| {
        let inner = text.trim_start_matches(' ');
        let depth = (text.len() - inner.len()) / 2;
        if n == 0 { inner.to_owned() } else { format!("{line}{at}{}{inner}", step.repeat(depth)) }
    });
    format!("{}: {}", Value::from(name), lines.collect::<String>())
}

/// A part of the text.
type Span = std::ops::Range<usize>;

struct Member {
    name: String,
    start: usize,
    value: Span,
}

/// An object in the text.
struct Object {
    /// From brace to brace.
    span: Span,
    members: Vec<Member>,
}

impl Object {
    /// The whole document.
    fn root(text: &str) -> Option<Self> {
        let start = skip(text, text.len() - text.trim_start_matches('\u{feff}').len());
        let root = Self::at(text, start)?;
        (skip(text, root.span.end) == text.len()).then_some(root)
    }

    /// The object that begins here; none if there is another value, or a name stands there twice.
    fn at(text: &str, start: usize) -> Option<Self> {
        let byte = |at: usize| text.as_bytes().get(at).copied();
        if byte(start) != Some(b'{') {
            return None;
        }
        let mut members: Vec<Member> = Vec::new();
        let mut at = skip(text, start + 1);
        while byte(at)? != b'}' {
            let name_end = string_end(text, at)?;
            let name: String = serde_json::from_str(&text[at..name_end]).ok()?;
            let colon = skip(text, name_end);
            if byte(colon)? != b':' || members.iter().any(|member| member.name == name) {
                return None;
            }
            let begin = skip(text, colon + 1);
            let end = value_end(text, begin)?;
            members.push(Member { name, start: at, value: begin..end });
            at = skip(text, end);
            match byte(at)? {
                b',' => at = skip(text, at + 1),
                b'}' => {}
                _ => return None,
            }
        }
        Some(Self { span: start..at + 1, members })
    }

    fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The white space before the first member, if that begins a line.
    fn indent<'t>(&self, text: &'t str) -> Option<&'t str> {
        let before = &text[self.span.start + 1..self.members.first()?.start];
        let indent = &before[before.rfind('\n')? + 1..];
        indent.chars().all(|c| c == ' ' || c == '\t').then_some(indent)
    }

    /// The text with another first member.
    fn with_first(&self, text: &str, member: &str, indent: &str, outer: &str, line: &str) -> String {
        let (before, after) = text.split_at(self.span.start + 1);
        let inside = &text[self.span.start + 1..self.span.end - 1];
        let end = match (self.members.is_empty(), inside.contains('\n')) {
            (false, _) => ",".to_owned(),
            (true, true) => String::new(),
            (true, false) => format!("{line}{outer}"),
        };
        format!("{before}{line}{indent}{member}{end}{after}")
    }

    /// The text without a member, in the ways in which it may have been put in.
    fn without(&self, text: &str, member: &Member) -> Vec<String> {
        let open = self.span.start + 1;
        let cut = |from: usize, to: usize| format!("{}{}", &text[..from], &text[to..]);
        let next = skip(text, member.value.end);
        let has_comma = text.as_bytes().get(next) == Some(&b',');
        let is_first = self.members.first().is_some_and(|first| first.start == member.start);
        let is_blank = |from: usize, to: usize| text[from..to].trim().is_empty();
        if is_first && is_blank(open, member.start) {
            if has_comma && is_blank(member.value.end, next) {
                return vec![cut(open, next + 1)];
            }
            let close = self.span.end - 1;
            let mut ways = Vec::new();
            if is_blank(member.value.end, close) {
                ways.push(cut(open, close));
            }
            ways.push(cut(open, member.value.end));
            return ways;
        }
        let before = self.members.iter().take_while(|other| other.start < member.start).last();
        let gap = before.map(|before| before.value.end..member.start);
        match gap {
            // A comment in between belongs to the user.
            Some(gap) if text[gap.clone()].trim() == "," => vec![cut(gap.start, member.value.end)],
            _ => Vec::new(),
        }
    }
}

/// The end of the comment that begins here, if one does.
fn comment_end(text: &str, at: usize) -> Option<usize> {
    let rest = &text.as_bytes()[at..];
    if rest.starts_with(b"//") {
        return Some(text[at..].find('\n').map_or(text.len(), |length| at + length));
    }
    rest.starts_with(b"/*").then(|| text[at + 2..].find("*/").map_or(text.len(), |length| at + length + 4))
}

/// The next place that is neither white space nor a comment.
fn skip(text: &str, mut at: usize) -> usize {
    while at < text.len() {
        match comment_end(text, at) {
            Some(end) => at = end,
            None if text.as_bytes()[at].is_ascii_whitespace() => at += 1,
            None => break,
        }
    }
    at
}

/// The end of the string that begins here; none if there is none.
fn string_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that begins here: brackets are counted, outside of strings and comments.
fn value_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        if let Some(end) = comment_end(text, at).filter(|_| depth > 0) {
            at = end;
            continue;
        }
        match bytes.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            byte if byte.is_ascii_alphanumeric() || b"+-.".contains(byte) => at += 1,
            _ => return (at > start).then_some(at),
        }
        if depth == 0 && matches!(bytes.get(at - 1)?, b'"' | b'}' | b']') {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PLACE: Place = Place { object: "mcpServers", name: "hearback" };

    fn entry() -> Value {
        json!({"args": ["mcp"], "command": "/bin/hearback"})
    }

    /// Files of users, each with something that must stay.
    const FILES: [&str; 11] = [
        "{}",
        "{ \"a\": 1 }\n",
        "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"b\": [1, 2,],\n}\n",
        "{\n\t\"theme\": \"dark\", // mine\n\t\"mcpServers\": {\n\t\t\"z\": {}\n\t}\n}",
        "// settings\n{\n    /* \"mcpServers\": {} */\n    \"t\": \"} , { \\\" // none\",\n    \"n\": -1.5e3\n}\n",
        "{\r\n  \"a\": true,\r\n  \"mcpServers\": {\"b\": null}\r\n}\r\n",
        "\u{feff}{\"mcpServers\":{\"x\":{\"command\":\"y\",\"args\":[]}}}",
        "{\"a\":\"é ☃\",\"deep\":{\"mcpServers\":{\"hearback\":1}}}",
        "{\n  // nothing yet\n}\n",
        "{\n  \"a\": 1\n  // the end\n}\n",
        "{\n  \"mcpServers\": {\n    // none\n  }\n}\n",
    ];

    #[test]
    fn an_entry_goes_in_and_out_and_nothing_else_changes() {
        for file in FILES {
            let with = insert(Some(file), PLACE, &entry()).unwrap_or_else(|| panic!("{file}"));
            let document = read(&with).unwrap();
            assert_eq!(document["mcpServers"]["hearback"], entry(), "{with}");
            for comment in ["// mine", "/* \"mcpServers\": {} */", "// nothing yet", "// the end", "// none"]
            {
                assert_eq!(with.contains(comment), file.contains(comment), "{with}");
            }
            assert_eq!(remove(&with, PLACE).as_deref(), Some(file), "{with}");
        }
    }

    #[test]
    fn a_new_file_and_an_empty_one_get_the_entry_alone() {
        let expected = "{\n  \"mcpServers\": {\n    \"hearback\": {\n      \"args\": [\n        \
                        \"mcp\"\n      ],\n      \"command\": \"/bin/hearback\"\n    }\n  }\n}\n";
        for text in [None, Some(""), Some(" \n")] {
            assert_eq!(insert(text, PLACE, &entry()).as_deref(), Some(expected));
        }
        assert_eq!(remove(expected, PLACE).as_deref(), Some("{}\n"));
    }

    #[test]
    fn what_the_agent_has_written_anew_is_taken_out_as_well() {
        let text = "{\"mcpServers\": {\"a\": 1, \"hearback\": {\"command\": \"x\"}, \"b\": 2}}";
        assert_eq!(remove(text, PLACE).as_deref(), Some("{\"mcpServers\": {\"a\": 1, \"b\": 2}}"));
        let text = "{\"mcpServers\": {\"hearback\": {}, \"b\": 2}}";
        assert_eq!(remove(text, PLACE).as_deref(), Some("{\"mcpServers\": { \"b\": 2}}"));
        assert_eq!(remove("{\"mcpServers\": {\"a\": 1, /* mine */ \"hearback\": {}}}", PLACE), None);
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for text in [
            "[]",
            "{",
            "{\"a\": }",
            "{} {}",
            "{\"mcpServers\": []}",
            "{\"mcpServers\": {}, \"mcpServers\": {}}",
            "{a: 1}",
            "{\"a\": 1 \"b\": 2}",
            "nonsense",
            "{\"a\": \"open",
            "{\"a\": 'x'}",
        ] {
            assert_eq!(insert(Some(text), PLACE, &entry()), None, "{text}");
            assert_eq!(remove(text, PLACE), None, "{text}");
        }
    }
}
