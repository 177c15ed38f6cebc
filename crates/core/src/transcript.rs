//! Reads the JSON output of agents: one document, or one row on each line, with other lines in between.
//!
//! Rows are recognised by their shape, not by the agent: several agents share a shape, and shapes change. `agents.rs`
//! says which agent prints which shapes, and `docs/ask.md` says it for users.

use serde_json::Value;

/// What the rows of an agent say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// The last message of the assistant that is not about a failure.
    pub(crate) words: Option<String>,
    /// The last error that the agent reports.
    pub(crate) complaint: Option<String>,
    /// The agent reports that the whole run failed.
    pub(crate) failed: bool,
}

/// The part of one row that matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Row {
    /// A message of the assistant; with a name, more pieces may follow under the same name.
    Words { text: String, more_of: Option<String> },
    /// The summary of a successful run, which may repeat the last message.
    Success { words: Option<String> },
    /// The summary of a failed run.
    Failure { complaint: Option<String> },
    /// An error during the run.
    Complaint(String),
    /// Any other row of an agent.
    Aside,
}

/// Reads the transcript in `text`; `None` when it is not a transcript.
pub(crate) fn read(text: &str) -> Option<Transcript> {
    let mut rows = Vec::new();
    let mut row_bytes = 0;
    for (value, bytes) in values(text) {
        let before = rows.len();
        collect(&value, &mut rows);
        row_bytes += if rows.len() > before { bytes } else { 0 };
    }
    let speaks = rows.iter().any(|row| !matches!(row, Row::Aside | Row::Complaint(_)));
    // A row that only complains may be a quotation in a text.
    let mostly_rows = row_bytes > 0 && row_bytes * 2 >= text.trim().len();
    (speaks || mostly_rows).then(|| told(rows))
}

fn told(rows: Vec<Row>) -> Transcript {
    let mut said = Transcript::default();
    let mut going_on: Option<String> = None;
    for row in rows {
        let mut next = None;
        match row {
            Row::Words { text, more_of } => {
                match (&mut said.words, &more_of, &going_on) {
                    (Some(words), Some(name), Some(last)) if name == last => words.push_str(&text),
                    _ if text.trim().is_empty() => {}
                    (words, ..) => *words = Some(text),
                }
                next = more_of;
            }
            Row::Success { words } => {
                said.failed = false;
                said.words = words.filter(|words| !words.trim().is_empty()).or(said.words);
            }
            Row::Failure { complaint } => {
                said.failed = true;
                said.complaint = complaint.or(said.complaint);
            }
            Row::Complaint(complaint) => said.complaint = Some(complaint),
            Row::Aside => {}
        }
        going_on = next;
    }
    said
}

/// The JSON values at the start of a line, outside of fenced code, each with its length.
fn values(text: &str) -> impl Iterator<Item = (Value, usize)> + '_ {
    let mut at = 0;
    let mut fenced = false;
    // Text that looks like a value and is none may be searched once for each of its lines. Only hostile output looks
    // like that, so the search is bounded.
    let mut patience = 4 * text.lines().count();
    std::iter::from_fn(move || {
        while at < text.len() && patience > 0 {
            let rest = &text[at..];
            let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
            let start = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\u{feff}']).len();
            let begun = &rest[start..];
            if begun.starts_with("```") {
                fenced = !fenced;
            }
            if !fenced && begun.starts_with(['{', '[']) {
                let mut parsed = serde_json::Deserializer::from_slice(begun.as_bytes()).into_iter::<Value>();
                let looked_through = match parsed.next() {
                    Some(Ok(value)) => {
                        let bytes = parsed.byte_offset();
                        if ends_a_row(&begun[bytes..]) {
                            at += start + bytes;
                            return Some((value, bytes));
                        }
                        begun[..bytes].lines().count()
                    }
                    Some(Err(error)) => error.line(),
                    None => 0,
                };
                patience = patience.saturating_sub(looked_through);
            }
            at += line;
        }
        None
    })
}

/// Whether the rest of the line after a value is empty, or another value.
fn ends_a_row(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t', '\r']);
    rest.is_empty() || rest.starts_with(['\n', '{', '['])
}

/// The rows of a value: the value itself, or the items of a list.
fn collect(value: &Value, rows: &mut Vec<Row>) {
    if let Some(list) = value.as_array() {
        list.iter().for_each(|value| collect(value, rows));
    } else if let Some(list) = value["messages"].as_array().filter(|_| value["type"].is_null()) {
        list.iter().for_each(|value| collect(value, rows));
    } else {
        rows.extend(row(value));
    }
}

fn row(value: &Value) -> Option<Row> {
    Shape::ALL.iter().find_map(|shape| shape.row(value))
}

/// A kind of rows. What belongs to one is read in the same way, whichever agent prints it; no row belongs to two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// `assistant`, `user`, `system`, and a `result` that sums up.
    Turns,
    /// Messages with a role, whole or in pieces, typed `message` or as a model's interface has them.
    Messages,
    /// One object with a `response`, or with an `error`.
    Document,
    /// `item.completed` and `turn.completed`.
    Items,
    /// Events that are wrapped in a `msg`.
    Wrapped,
    /// `text` with a `part`, between steps.
    Parts,
    /// `assistant.message` and `session.error`, with `data`.
    Dotted,
    /// `say` and `ask`.
    Says,
}

impl Shape {
    /// All of them, in the order in which a row is compared with them.
    pub const ALL: [Self; 8] = [
        Self::Wrapped,
        Self::Turns,
        Self::Messages,
        Self::Document,
        Self::Items,
        Self::Parts,
        Self::Dotted,
        Self::Says,
    ];

    /// The row that a value is; nothing when it is none of this shape.
    fn row(self, value: &Value) -> Option<Row> {
        match (self, value["type"].as_str()) {
            (Self::Wrapped, None) => nested(value.get("msg").filter(|_| value["type"].is_null())?),
            (Self::Messages, None) if is_message(value) => Some(message(value)),
            (Self::Document, None) if !is_wrapped(value) && !is_message(value) => document(value),
            (_, None) => None,
            (shape, Some(kind)) => shape.typed(kind, value),
        }
    }

    fn typed(self, kind: &str, value: &Value) -> Option<Row> {
        let begins = |starts: &[&str]| starts.iter().any(|start| kind.starts_with(start));
        Some(match (self, kind) {
            (Self::Turns, "result") => summary(value),
            (Self::Turns, "assistant") => assistant(value),
            (Self::Turns, "error") => complaint(value),
            (
                Self::Turns,
                "system" | "user" | "stream_event" | "tool_use" | "tool_result" | "tool_call" | "reasoning",
            ) => Row::Aside,
            (Self::Messages, "message") => message(value),
            (Self::Messages, "init" | "complete") => Row::Aside,
            (Self::Items, "item.completed") => match value["item"]["type"].as_str() {
                Some("agent_message" | "assistant_message") => words(text_of(&value["item"]["text"])),
                Some("error") => complaint(&value["item"]),
                _ => Row::Aside,
            },
            (Self::Items, "turn.completed") => Row::Success { words: None },
            (Self::Items, "turn.failed") => Row::Failure { complaint: complaint_of(value) },
            (Self::Items, _) if begins(&["thread.", "turn.", "item."]) => Row::Aside,
            (Self::Parts, "text") => {
                words(text_of(&value["part"]["text"]).or_else(|| text_of(&value["text"])))
            }
            (Self::Parts, "step_start" | "step_finish") => Row::Aside,
            (Self::Dotted, "assistant.message") if value["data"]["parentToolCallId"].is_null() => {
                words(text_of(&value["data"]["content"]))
            }
            (Self::Dotted, "session.error") => complaint(value),
            (Self::Dotted, _) if begins(&["assistant.", "session.", "user.", "tool."]) => Row::Aside,
            (Self::Says, "run_result") => summary(value),
            (Self::Says, "say") if value["partial"] == true => Row::Aside,
            (Self::Says, "say") => match value["say"].as_str() {
                Some("text" | "completion_result") => words(text_of(&value["text"])),
                Some("error" | "api_req_failed") => complaint(value),
                _ => Row::Aside,
            },
            (Self::Says, "ask") => Row::Aside,
            // JSON of another program, or of another shape.
            _ => return None,
        })
    }
}

fn is_message(value: &Value) -> bool {
    !is_wrapped(value) && value["role"].is_string()
}

fn is_wrapped(value: &Value) -> bool {
    value["type"].is_null() && value.get("msg").is_some()
}

/// A document of one object.
fn document(value: &Value) -> Option<Row> {
    if !value["stats"].is_object() && !value["error"].is_object() {
        return text_of(&value["response"])
            .filter(|_| value["session_id"].is_string())
            .map(|text| Row::Success { words: Some(text) });
    }
    if !value["error"].is_null() {
        return Some(Row::Failure { complaint: complaint_of(value) });
    }
    Some(Row::Success { words: text_of(&value["response"]) })
}

/// A row of a stream that wraps each event.
fn nested(event: &Value) -> Option<Row> {
    Some(match event["type"].as_str()? {
        "agent_message" => words(text_of(&event["message"])),
        "task_complete" => Row::Success { words: text_of(&event["last_agent_message"]) },
        "error" => complaint(event),
        _ => Row::Aside,
    })
}

/// The last row of a run.
fn summary(value: &Value) -> Row {
    let says = |field: &str, words: &[&str]| value[field].as_str().is_some_and(|is| words.contains(&is));
    let failed = value["is_error"] == true
        || value["subtype"].as_str().is_some_and(|subtype| subtype.starts_with("error"))
        || says("status", &["error", "failed"])
        || says("finishReason", &["error", "aborted"])
        || value["exitCode"].as_i64().is_some_and(|code| code != 0)
        || !value["error"].is_null();
    let words = text_of(&value["result"]).or_else(|| text_of(&value["text"]));
    if !failed {
        return Row::Success { words };
    }
    let listed = value["errors"].as_array().and_then(|errors| errors.last()).and_then(text_of);
    let subtype = || value["subtype"].as_str().filter(|subtype| *subtype != "success").map(str::to_owned);
    Row::Failure { complaint: complaint_of(value).or(listed).or(words).or_else(subtype) }
}

fn assistant(value: &Value) -> Row {
    let message = &value["message"];
    let text = content(&message["content"]);
    let is_error = !value["error"].is_null()
        || value["isApiErrorMessage"] == true
        || value["is_api_error_message"] == true
        // Text that the agent itself adds in the name of the model.
        || message["model"] == "<synthetic>";
    if is_error {
        return text.map_or(Row::Aside, Row::Complaint);
    }
    // A message of a sub-agent goes to the agent, not to the user.
    if !value["parent_tool_use_id"].is_null() {
        return Row::Aside;
    }
    words(text)
}

/// A message with its role, whole or in pieces.
fn message(value: &Value) -> Row {
    let inner = if value["message"].is_object() { &value["message"] } else { value };
    if inner["role"] != "assistant" {
        return Row::Aside;
    }
    let Some(text) = content(&inner["content"]) else { return Row::Aside };
    let name = if value["delta"] == true {
        Some(String::new())
    } else {
        // Whole messages of a list may have names as well, but each has a different one.
        inner["id"].as_str().map(str::to_owned)
    };
    Row::Words { text, more_of: name }
}

fn words(text: Option<String>) -> Row {
    text.map_or(Row::Aside, |text| Row::Words { text, more_of: None })
}

/// The content of a message: text, or a list that contains text.
fn content(content: &Value) -> Option<String> {
    if let Some(text) = text_of(content) {
        return Some(text);
    }
    let is_text = |block: &&Value| matches!(block["type"].as_str(), Some("text" | "output_text"));
    let blocks = content.as_array()?.iter().filter(is_text).filter_map(|block| text_of(&block["text"]));
    let text = blocks.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

fn complaint(value: &Value) -> Row {
    complaint_of(value).map_or(Row::Aside, Row::Complaint)
}

/// The error of a row, in any of the places that agents use.
fn complaint_of(value: &Value) -> Option<String> {
    let error = &value["error"];
    [
        &error["message"],
        &error["data"]["message"],
        error,
        &value["data"]["message"],
        &value["message"],
        &value["text"],
        &error["name"],
    ]
    .into_iter()
    .find_map(text_of)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &str) -> Option<Transcript> {
        Some(Transcript { words: Some(words.into()), ..Transcript::default() })
    }

    #[test]
    fn one_document_says_its_answer() {
        for document in [
            // Claude Code and Cursor, `json`.
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Paris","session_id":"s","usage":{}}"#,
            // gemini-cli, `json`, which prints it over several lines.
            "Loaded cached credentials.\n{\n  \"session_id\": \"s\",\n  \"response\": \"Paris\",\n  \"stats\": {}\n}\n",
            "{\"response\":\"Paris\",\"stats\":{\"models\":{}}}",
            // Qwen Code, and Claude Code when it is verbose: a list.
            concat!(
                r#"[{"type":"system"},{"type":"assistant","message":{"content":[{"type":"text","text":"hm"}]}},"#,
                r#"{"type":"result","is_error":false,"result":"Paris"}]"#
            ),
            // goose, `json`.
            concat!(
                r#"{"messages":[{"id":null,"role":"user","content":[{"type":"text","text":"Q"}]},"#,
                r#"{"role":"assistant","content":[{"type":"toolRequest"}]},"#,
                r#"{"role":"assistant","content":[{"type":"text","text":"Paris"}]}],"metadata":{}}"#
            ),
            // As a model's interface has it.
            r#"{"role":"assistant","content":"Paris"}"#,
        ] {
            assert_eq!(read(document), said("Paris"), "{document}");
        }
    }

    #[test]
    fn the_last_message_of_a_stream_is_the_answer() {
        let streams = [
            // Claude Code, Cursor, Qwen Code.
            vec![
                r#"{"type":"system","subtype":"init","session_id":"s"}"#,
                concat!(
                    r#"{"type":"assistant","parent_tool_use_id":null,"message":{"model":"m","content":["#,
                    r#"{"type":"text","text":"Let me look."},{"type":"tool_use","name":"Bash"}]}}"#
                ),
                concat!(
                    r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"content":["#,
                    r#"{"type":"text","text":"a helper speaks"}]}}"#
                ),
                r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}}"#,
                r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Paris"}]}}"#,
            ],
            // Codex.
            vec![
                r#"{"type":"thread.started","thread_id":"t"}"#,
                r#"{"type":"item.completed","item":{"id":"i0","type":"reasoning","text":"think"}}"#,
                r#"{"type":"error","message":"Reconnecting... 1/5"}"#,
                r#"{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":"Paris"}}"#,
                r#"{"type":"item.completed","item":{"id":"i2","type":"command_execution","aggregated_output":"x"}}"#,
                r#"{"type":"turn.completed","usage":{}}"#,
            ],
            vec![
                r#"{"id":"0","msg":{"type":"agent_message","message":"first"}}"#,
                r#"{"id":"0","msg":{"type":"token_count"}}"#,
                r#"{"id":"0","msg":{"type":"task_complete","last_agent_message":"Paris"}}"#,
            ],
            // gemini-cli, in pieces.
            vec![
                r#"{"type":"init","session_id":"s"}"#,
                r#"{"type":"message","role":"user","content":"Q"}"#,
                r#"{"type":"message","role":"assistant","content":"I look.","delta":true}"#,
                r#"{"type":"tool_use","tool_name":"x"}"#,
                r#"{"type":"message","role":"assistant","content":"Pa","delta":true}"#,
                r#"{"type":"message","role":"assistant","content":"ris","delta":true}"#,
                r#"{"type":"result","status":"success","stats":{}}"#,
            ],
            // opencode.
            vec![
                r#"{"type":"step_start","part":{}}"#,
                r#"{"type":"text","sessionID":"s","part":{"type":"text","text":"Paris"}}"#,
                r#"{"type":"step_finish","part":{}}"#,
            ],
            // goose, in pieces that share a name.
            vec![
                r#"{"type":"message","message":{"id":"a","role":"assistant","content":"Hm."}}"#,
                r#"{"type":"message","message":{"id":"b","role":"assistant","content":[{"type":"text","text":"Pa"}]}}"#,
                r#"{"type":"message","message":{"id":"b","role":"assistant","content":"ris"}}"#,
                r#"{"type":"complete","total_tokens":5}"#,
            ],
            // Copilot.
            vec![
                r#"{"type":"user.message","data":{"content":"Q"}}"#,
                r#"{"type":"assistant.message","data":{"content":"","toolRequests":[{}]}}"#,
                r#"{"type":"assistant.message","data":{"content":"Paris","toolRequests":[]}}"#,
                r#"{"type":"assistant.message","data":{"content":"of a helper","parentToolCallId":"t"}}"#,
                r#"{"type":"result","exitCode":0}"#,
            ],
            // Cline.
            vec![
                r#"{"type":"say","say":"api_req_started","text":"{}"}"#,
                r#"{"type":"say","say":"text","text":"Par","partial":true}"#,
                r#"{"type":"say","say":"completion_result","text":"Paris"}"#,
            ],
        ];
        for rows in streams {
            let mut said = read(&rows.join("\n")).expect("it is a transcript");
            said.complaint = None;
            assert_eq!(Some(said), self::said("Paris"), "{rows:#?}");
            // Warnings on standard error come in between.
            let noisy = rows.join("\n(node:12) Warning: something is [old]\n");
            assert_eq!(read(&noisy).and_then(|said| said.words).as_deref(), Some("Paris"), "{noisy}");
        }
    }

    #[test]
    fn scenario_51_an_error_row_is_no_message() {
        let text = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Paris"}]}}"#;
        for (row, complaint) in [
            (r#"{"type":"error","message":"overloaded"}"#, "overloaded"),
            (r#"{"type":"error","error":{"name":"APIError","data":{"message":"overloaded"}}}"#, "overloaded"),
            (r#"{"type":"error","error":"overloaded"}"#, "overloaded"),
            (r#"{"type":"session.error","data":{"errorType":"x","message":"overloaded"}}"#, "overloaded"),
            (r#"{"type":"say","say":"error","text":"overloaded"}"#, "overloaded"),
            (r#"{"type":"item.completed","item":{"type":"error","message":"overloaded"}}"#, "overloaded"),
            (
                concat!(
                    r#"{"type":"assistant","error":"rate_limit","message":{"#,
                    r#""content":[{"type":"text","text":"Limit hit"}]}}"#
                ),
                "Limit hit",
            ),
            (
                concat!(
                    r#"{"type":"assistant","isApiErrorMessage":true,"message":{"#,
                    r#""content":[{"type":"text","text":"API Error"}]}}"#
                ),
                "API Error",
            ),
            (
                concat!(
                    r#"{"type":"assistant","message":{"model":"<synthetic>","#,
                    r#""content":[{"type":"text","text":"No response requested."}]}}"#
                ),
                "No response requested.",
            ),
        ] {
            let said = read(&format!("{text}\n{row}\n")).unwrap();
            assert_eq!(said.words.as_deref(), Some("Paris"), "{row}");
            assert_eq!(said.complaint.as_deref(), Some(complaint), "{row}");
            assert!(!said.failed, "{row}");
        }
    }

    #[test]
    fn an_agent_that_sums_up_a_failure_has_failed() {
        for (row, complaint) in [
            (r#"{"type":"result","subtype":"error_max_turns","is_error":false}"#, "error_max_turns"),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400"}"#,
                "API Error: 400",
            ),
            (r#"{"type":"result","is_error":true,"errors":["old","not signed in"]}"#, "not signed in"),
            (r#"{"type":"turn.failed","error":{"message":"limit"}}"#, "limit"),
            (r#"{"type":"result","status":"error","error":{"type":"x","message":"quota"}}"#, "quota"),
            (r#"{"session_id":"s","error":{"type":"Error","message":"no key","code":41}}"#, "no key"),
            (r#"{"type":"run_result","finishReason":"error","text":"gave up"}"#, "gave up"),
        ] {
            let said = read(row).unwrap();
            assert!(said.failed && said.words.is_none(), "{row}");
            assert_eq!(said.complaint.as_deref(), Some(complaint), "{row}");
        }
        // A later turn may go well.
        let again =
            "{\"type\":\"turn.failed\",\"error\":{\"message\":\"x\"}}\n{\"type\":\"turn.completed\"}\n";
        assert!(!read(again).unwrap().failed);
    }

    #[test]
    fn prose_and_other_json_are_no_transcript() {
        for text in [
            "",
            "Paris",
            "{\"city\":\"Paris\"}",
            "[1, 2, 3]",
            "An error looks like this:\n{\"type\":\"error\",\"message\":\"x\"}\nand is not to be feared.",
            "Look:\n```json\n{\"type\":\"result\",\"result\":\"quoted\"}\n```\nThat is all.",
            "{\"type\":\"result\",\"result\":\"cut in tw",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(read("{\"type\":\"error\",\"message\":\"x\"}\n").is_some(), "nothing but rows");
    }

    #[test]
    fn hostile_json_costs_no_more_than_its_length_allows() {
        for line in ["[\n", "[1,\n", "{\"a\":\n", "[[],\n", "{}\n", "{\"type\":\"error\",\n"] {
            let text = line.repeat(128 * 1024 / line.len());
            assert_eq!(read(&text).and_then(|said| said.words), None, "{line:?}");
        }
    }
}
