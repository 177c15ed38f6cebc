//! One entry in a JSON file of a user: put in as the first of its object or list, and taken out again. Everything else
//! stays as it is, byte for byte: order, comments and trailing commas, which many agents allow in their settings.

use serde_json::Value;

/// Where an entry stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The names that lead to the object or list that holds it.
    pub(super) path: &'static [&'static str],
    pub(super) slot: Slot,
}

/// How an entry is known among others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    /// By its name in an object.
    Named(&'static str),
    /// By what it is, in a list.
    Listed(fn(&Value) -> bool),
}

impl Place {
    /// The entry in a document.
    pub(super) fn find<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        let holder = self.path.iter().try_fold(document, |value, name| value.get(name))?;
        match self.slot {
            Slot::Named(name) => holder.get(name),
            Slot::Listed(is_it) => holder.as_array()?.iter().find(|value| is_it(value)),
        }
    }

    /// An entry with what holds it, from this name of the path on.
    fn held(&self, from: usize, entry: &Value) -> Value {
        let innermost = match self.slot {
            Slot::Named(name) => object(name, entry.clone()),
            Slot::Listed(_) => Value::Array(vec![entry.clone()]),
        };
        self.path[from..].iter().rev().fold(innermost, |value, name| object(name, value))
    }
}

fn object(name: &str, value: Value) -> Value {
    Value::Object([(name.to_owned(), value)].into_iter().collect())
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
    let way = Way::along(text, place)?;
    let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let step = way.holders[0].indent(text).unwrap_or("  ");
    let depth = way.members.len();
    let holder = &way.holders[depth];
    let indent = holder.indent(text).map_or_else(|| step.repeat(depth + 1), str::to_owned);
    // What is missing on the way is put in with it.
    let (name, value) = match (place.path.get(depth), place.slot) {
        (Some(name), _) => (Some(*name), place.held(depth + 1, entry)),
        (None, Slot::Named(name)) => (Some(name), entry.clone()),
        (None, Slot::Listed(_)) => (None, entry.clone()),
    };
    let new = holder.with_first(
        text,
        &written(name, &value, &indent, step, line),
        &indent,
        &step.repeat(depth),
        line,
    );
    // Nothing else has changed.
    (read(&new)? == with(read(text)?, place, &way, name, value)?).then_some(new)
}

/// A document with another first member where a way ends.
fn with(mut document: Value, place: Place, way: &Way, name: Option<&str>, value: Value) -> Option<Value> {
    match (way.holder_in(&mut document, place)?, name) {
        (Value::Object(members), Some(name)) => {
            members.insert(name.to_owned(), value).is_none().then_some(())?
        }
        (Value::Array(list), None) => list.insert(0, value),
        _ => return None,
    }
    Some(document)
}

/// The text without the entry; none if that cannot be done safely. What is empty then, and may have been made for it,
/// goes with it.
pub(super) fn remove(text: &str, place: Place) -> Option<String> {
    let document = read(text)?;
    let entry = place.find(&document)?.clone();
    let way = Way::along(text, place).filter(|way| way.members.len() == place.path.len())?;
    let last = way.holders.last()?;
    let ours = match place.slot {
        Slot::Named(name) => last.named(name)?,
        Slot::Listed(is_it) => last
            .members
            .iter()
            .position(|member| read(&text[member.value.clone()]).is_some_and(|value| is_it(&value)))?,
    };
    let steps: Vec<_> = way.members.iter().copied().chain([ours]).collect();
    let mut candidates = Vec::new();
    for (depth, (holder, member)) in way.holders.iter().zip(&steps).enumerate() {
        if way.holders[depth + 1..].iter().all(|inner| inner.members.len() == 1) {
            let mut expected = document.clone();
            remove_at(&mut expected, place, depth, *member)?;
            let ways = holder.without(text, &holder.members[*member]);
            candidates.extend(ways.into_iter().filter(|new| read(new).as_ref() == Some(&expected)));
        }
    }
    // As it was before it was put in, if it is still as it was put in.
    let exact =
        candidates.iter().position(|before| insert(Some(before), place, &entry).as_deref() == Some(text));
    let chosen = exact.or(candidates.len().checked_sub(1))?;
    Some(candidates.swap_remove(chosen))
}

/// Takes out of a document what stands at this depth of a way.
fn remove_at(document: &mut Value, place: Place, depth: usize, member: usize) -> Option<()> {
    let holder = place.path[..depth].iter().try_fold(document, |value, name| value.get_mut(name))?;
    match (holder, place.path.get(depth), place.slot) {
        (Value::Object(members), Some(name), _) => members.remove(*name).map(drop),
        (Value::Object(members), None, Slot::Named(name)) => members.remove(name).map(drop),
        (Value::Array(list), None, Slot::Listed(_)) if member < list.len() => {
            list.remove(member);
            Some(())
        }
        _ => None,
    }
}

/// The objects and lists from the whole document to an entry, as far as they are there.
struct Way {
    /// The first is the document.
    holders: Vec<Holder>,
    /// In each holder but the last, the member that is the next.
    members: Vec<usize>,
}

impl Way {
    fn along(text: &str, place: Place) -> Option<Self> {
        let mut way = Self { holders: vec![Holder::root(text)?], members: Vec::new() };
        for name in place.path {
            let holder = way.holders.last()?;
            let Some(n) = holder.named(name) else { break };
            let start = holder.members[n].value.start;
            way.holders.push(Holder::at(text, start)?);
            way.members.push(n);
        }
        let is_list = |holder: &Holder| text.as_bytes()[holder.span.start] == b'[';
        let (last, before) = way.holders.split_last()?;
        let wants_list = way.members.len() == place.path.len() && matches!(place.slot, Slot::Listed(_));
        (is_list(last) == wants_list && !before.iter().any(is_list)).then_some(way)
    }

    /// The last of them in a document that was read.
    fn holder_in<'v>(&self, document: &'v mut Value, place: Place) -> Option<&'v mut Value> {
        place.path[..self.members.len()].iter().try_fold(document, |value, name| value.get_mut(name))
    }
}

/// A member as it is written, at this indent.
fn written(name: Option<&str>, value: &Value, at: &str, step: &str, line: &str) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap_or_default();
    let lines = pretty.lines().enumerate().map(|(n, text)| {
        let inner = text.trim_start_matches(' ');
        let depth = (text.len() - inner.len()) / 2;
        if n == 0 { inner.to_owned() } else { format!("{line}{at}{}{inner}", step.repeat(depth)) }
    });
    let value: String = lines.collect();
    name.map(|name| format!("{}: {value}", Value::from(name))).unwrap_or(value)
}

/// A part of the text.
type Span = std::ops::Range<usize>;

struct Member {
    /// None in a list.
    name: Option<String>,
    start: usize,
    value: Span,
}

/// An object or a list in the text.
struct Holder {
    /// From bracket to bracket.
    span: Span,
    members: Vec<Member>,
}

impl Holder {
    /// The whole document.
    fn root(text: &str) -> Option<Self> {
        let start = skip(text, text.len() - text.trim_start_matches('\u{feff}').len());
        let root = Self::at(text, start)?;
        (skip(text, root.span.end) == text.len()).then_some(root)
    }

    /// The object or list that begins here; none if there is another value, or a name stands there twice.
    fn at(text: &str, start: usize) -> Option<Self> {
        let byte = |at: usize| text.as_bytes().get(at).copied();
        let close = match byte(start)? {
            b'{' => b'}',
            b'[' => b']',
            _ => return None,
        };
        let mut members: Vec<Member> = Vec::new();
        let mut at = skip(text, start + 1);
        while byte(at)? != close {
            let begin_of_member = at;
            let mut name = None;
            if close == b'}' {
                let name_end = string_end(text, at)?;
                name = Some(serde_json::from_str(&text[at..name_end]).ok()?);
                let colon = skip(text, name_end);
                if byte(colon)? != b':' || members.iter().any(|member| member.name == name) {
                    return None;
                }
                at = skip(text, colon + 1);
            }
            let end = value_end(text, at)?;
            members.push(Member { name, start: begin_of_member, value: at..end });
            at = skip(text, end);
            match byte(at)? {
                b',' => at = skip(text, at + 1),
                other if other == close => {}
                _ => return None,
            }
        }
        Some(Self { span: start..at + 1, members })
    }

    /// Which of its members has this name.
    fn named(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name.as_deref() == Some(name))
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

    const PLACE: Place = Place { path: &["mcpServers"], slot: Slot::Named("hearback") };
    const IN_LIST: Place = Place { path: &["hooks", "Stop"], slot: Slot::Listed(|value| *value == hook()) };

    fn hook() -> Value {
        json!({"hooks": [{"command": "/bin/hearback agent hook claude", "type": "command"}]})
    }

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
    fn an_entry_of_a_list_goes_in_and_out_and_nothing_else_changes() {
        for file in [
            "{}",
            "{ \"model\": \"x\" }\n",
            "{\n  \"hooks\": {\n    \"PreToolUse\": [{\"hooks\": []}]\n  }\n}\n",
            "{\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t// mine\n\t\t\t{\"hooks\": [1,]},\n\t\t]\n\t}\n}\n",
            "{\r\n  \"hooks\": {\"Stop\": [{\"hooks\": []}]}\r\n}",
        ] {
            let with = insert(Some(file), IN_LIST, &hook()).unwrap_or_else(|| panic!("{file}"));
            assert_eq!(IN_LIST.find(&read(&with).unwrap()), Some(&hook()), "{with}");
            assert_eq!(with.contains("// mine"), file.contains("// mine"), "{with}");
            assert_eq!(remove(&with, IN_LIST).as_deref(), Some(file), "{with}");
        }
        // What may have been made for it goes with it.
        for empty in ["{\n  \"hooks\": {}\n}\n", "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"] {
            let with = insert(Some(empty), IN_LIST, &hook()).unwrap();
            assert_eq!(remove(&with, IN_LIST).as_deref(), Some("{}\n"), "{with}");
        }
        let moved = "{\"hooks\": {\"Stop\": [{\"hooks\": []}, HOOK]}}".replace("HOOK", &hook().to_string());
        assert_eq!(remove(&moved, IN_LIST).as_deref(), Some("{\"hooks\": {\"Stop\": [{\"hooks\": []}]}}"));
        for other in ["{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}", "{\"hooks\": 1}"] {
            assert_eq!(insert(Some(other), IN_LIST, &hook()), None, "{other}");
            assert_eq!(remove(other, IN_LIST), None, "{other}");
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
