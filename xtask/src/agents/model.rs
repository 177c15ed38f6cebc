//! A model that does as it is told, for agents that are tried without an account. It speaks the protocols of
//! Anthropic (Messages), OpenAI (Responses and Chat Completions) and Gemini, on loopback.
//!
//! What it does is in the last text that it was sent: `[[run COMMAND]]` calls the agent's tool for shell commands, once
//! and not for a text that came before, `[[launch COMMAND]]` the tool of hearback's MCP server, and `[[pause SECONDS]]`
//! lets it take its time. Otherwise it answers with the words that it was told to look for and found:
//! `seen RESULT-4711`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::http::{Request, Response, serve};

/// Names of the tools by which agents run shell commands.
const SHELL_TOOLS: &[&str] = &[
    "Bash",
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "local_shell",
    "run_shell_command",
    "developer__shell",
    "run_commands",
    "execute_command",
    "terminal",
];

/// The model, and what it has been sent.
#[derive(Clone)]
pub(super) struct Model {
    port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// One request to the model.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    /// The whole conversation as text, from its beginning.
    pub(super) conversation: String,
    /// The part of it that came after the model's last answer.
    pub(super) news: String,
    /// The whole request, with what is no part of the conversation.
    pub(super) request: String,
}

/// What the model says.
enum Answer {
    Text(String),
    Call { tool: String, arguments: Value },
}

/// Puts an answer into words of one protocol: the request, its number, the answer, and whether it is streamed.
type Reply = fn(&Value, u64, Answer, bool) -> Response;

/// A tool by its name, and the schema of its arguments.
type NamedTool = (String, Value);

/// One entry of a conversation.
struct Entry {
    is_model: bool,
    is_result: bool,
    text: String,
}

impl Model {
    /// Starts the model; it ends with this process.
    pub(super) fn start(look_for: &'static str) -> Result<Self> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (count, kept) = (Arc::new(AtomicU64::new(1)), Arc::clone(&heard));
        let port = serve(move |request| {
            let n = count.fetch_add(1, Ordering::Relaxed);
            respond(&request, n, look_for, &kept)
        })?;
        Ok(Self { port, heard })
    }

    /// Where it listens, without a path.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every request so far in which the model has tools. Those without are questions of the agent's own, such as for a
    /// title.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().expect("no thread panics with it").clone()
    }

    /// What it was sent, one piece of news after the other, for a person who looks later.
    pub(super) fn log(&self) -> String {
        let heard = self.heard();
        heard.iter().enumerate().map(|(n, heard)| format!("request {}:\n{}\n", n + 1, heard.news)).collect()
    }
}

fn respond(request: &Request, n: u64, look_for: &str, heard: &Mutex<Vec<Heard>>) -> Response {
    let (path, body) = (request.path.as_str(), &request.body);
    if request.method != "POST" {
        let models = json!([{"id": "stub-model", "object": "model", "created": 0, "owned_by": "stub"}]);
        return Response::Json(200, json!({"object": "list", "data": models, "models": []}));
    }
    if path.ends_with("/count_tokens") {
        return Response::Json(200, json!({"input_tokens": 100}));
    }
    if path.contains(":countTokens") {
        return Response::Json(200, json!({"totalTokens": 100}));
    }
    let (messages, reply): (_, Reply) = match path {
        _ if path.ends_with("/messages") => (&body["messages"], anthropic),
        _ if path.ends_with("/responses") => (&body["input"], responses),
        _ if path.ends_with("/chat/completions") => (&body["messages"], chat),
        _ if path.contains("enerateContent") => (&body["contents"], gemini),
        _ => {
            return Response::Json(
                404,
                json!({"error": {"message": "not found", "type": "not_found_error"}}),
            );
        }
    };
    let entries: Vec<_> = match messages {
        Value::String(text) => vec![Entry { is_model: false, is_result: false, text: text.clone() }],
        messages => messages.as_array().into_iter().flatten().map(entry).collect(),
    };
    let first = entries.iter().rposition(|entry| entry.is_model).map_or(0, |last| last + 1);
    let join =
        |entries: &[Entry]| entries.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>().join("\n");
    let news = &entries[first..];
    let told = Heard { conversation: join(&entries), news: join(news), request: body.to_string() };
    let answer = decide(&told.news, news.iter().any(|entry| entry.is_result), &body["tools"], look_for, n);
    if body["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        heard.lock().expect("no thread panics with it").push(told);
    }
    let streams = body["stream"] == true || path.contains(":streamGenerateContent");
    reply(body, n, answer, streams)
}

/// One message of any of the protocols.
fn entry(message: &Value) -> Entry {
    let role = message["role"].as_str().or(message["type"].as_str()).unwrap_or_default();
    let written = message.to_string();
    let results = ["\"tool_result\"", "\"functionResponse\"", "_call_output\""];
    Entry {
        is_model: matches!(role, "assistant" | "model" | "function_call" | "reasoning" | "custom_tool_call"),
        is_result: role == "tool" || results.iter().any(|result| written.contains(result)),
        text: text(message),
    }
}

/// The text of a message that a person or another program wrote. Results of tools are none, and neither are the agent's
/// own instructions.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            if matches!(kind, "tool_result" | "tool_use" | "function_call_output")
                || ["tool", "system", "developer"].iter().any(|role| part.get("role") == Some(&json!(role)))
            {
                return String::new();
            }
            ["text", "content", "parts"].iter().find_map(|key| part.get(*key)).map(text).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn decide(news: &str, has_result: bool, tools: &Value, look_for: &str, n: u64) -> Answer {
    if let Some(seconds) = between(news, "[[pause ").and_then(|seconds| seconds.parse().ok()) {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    let found = named_tools(tools);
    let order = |begin| between(news, begin).filter(|_| !has_result);
    let call = order("[[run ").and_then(|command| run(&found, command));
    if let Some(call) = call.or_else(|| order("[[launch ").and_then(|command| launch(&found, news, command)))
    {
        return call;
    }
    // News may come together with the result of a tool; its text is no news.
    Answer::Text(match news.contains(look_for) {
        true => format!("answer {n}: seen {look_for}"),
        false => format!("answer {n}"),
    })
}

/// What stands between this and the next `]]`, the last time it does.
fn between<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    let (_, rest) = text.rsplit_once(begin)?;
    rest.split_once("]]").map(|(found, _)| found)
}

/// The names of the tools, and the schemas of their arguments.
fn named_tools(tools: &Value) -> Vec<NamedTool> {
    let mut found = Vec::new();
    for tool in tools.as_array().into_iter().flatten() {
        let inner = [tool, &tool["function"]];
        let nested = tool["functionDeclarations"].as_array().or(tool["tools"].as_array());
        for tool in inner.into_iter().chain(nested.into_iter().flatten()) {
            if let Some(name) = tool["name"].as_str() {
                let schemas = ["input_schema", "parametersJsonSchema", "parameters"];
                let schema = schemas.iter().map(|key| &tool[*key]).find(|schema| schema.is_object());
                found.push((name.to_owned(), schema.cloned().unwrap_or_default()));
            }
        }
    }
    found
}

/// A call of the tool that runs shell commands.
fn run(found: &[NamedTool], command: &str) -> Option<Answer> {
    let (tool, schema) = SHELL_TOOLS.iter().find_map(|name| found.iter().find(|(found, _)| found == name))?;
    Some(Answer::Call { tool: tool.clone(), arguments: arguments(schema, command) })
}

/// A call of the tool `launch` of hearback's server: agents put the server's name before it. Some only name the tools
/// of servers in a text, and have one tool that calls them.
fn launch(found: &[NamedTool], news: &str, command: &str) -> Option<Answer> {
    let is_launch = |(name, schema): &&NamedTool| {
        name.ends_with("launch") && schema["properties"]["notify_on_complete"].is_object()
    };
    if let Some((tool, schema)) = found.iter().find(is_launch) {
        return Some(Answer::Call { tool: tool.clone(), arguments: arguments(schema, command) });
    }
    let (bridge, _) = found.iter().find(|(name, _)| name == "tool_call")?;
    let name = news.split('"').find(|word| word.ends_with("__launch"))?;
    let arguments = json!({"name": name, "arguments": {"command": command}});
    Some(Answer::Call { tool: bridge.clone(), arguments })
}

fn arguments(schema: &Value, command: &str) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut arguments = serde_json::Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = property["type"].as_str().unwrap_or("string").to_ascii_lowercase();
        let value = match (name.as_str(), kind.as_str()) {
            ("commands", "array") => json!([command]),
            ("command" | "cmd" | "script", "array") => json!(["bash", "-lc", command]),
            ("command" | "cmd" | "commands" | "script", _) => json!(command),
            _ if !required.contains(&json!(name)) => continue,
            _ if property["enum"].is_array() => property["enum"][0].clone(),
            (_, "boolean") => json!(false),
            (_, "integer" | "number") => json!(1),
            (_, "array") => json!([]),
            (_, "object") => json!({}),
            _ => json!("a command of a test"),
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}

fn named(events: Vec<Value>) -> Response {
    // Leaked names would be simpler, but these are the only ones there are.
    const NAMES: &[&str] = &[
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    let name = |event: &Value| NAMES.iter().copied().find(|name| event["type"] == **name);
    Response::Events(events.into_iter().map(|event| (name(&event), event.to_string())).collect())
}

fn anthropic(body: &Value, n: u64, answer: Answer, streams: bool) -> Response {
    let (block, opening, delta, stop) = match answer {
        Answer::Text(text) => (
            json!({"type": "text", "text": text}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        Answer::Call { tool, arguments } => {
            let id = format!("toolu_{n}");
            (
                json!({"type": "tool_use", "id": id, "name": tool, "input": arguments}),
                json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
                "tool_use",
            )
        }
    };
    let usage = json!({
        "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    });
    let message = |content: Value, stop: Value| {
        json!({
            "id": format!("msg_{n}"), "type": "message", "role": "assistant", "model": body["model"],
            "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage,
        })
    };
    if !streams {
        return Response::Json(200, message(json!([block]), json!(stop)));
    }
    named(vec![
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": opening}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ])
}

fn responses(body: &Value, n: u64, answer: Answer, streams: bool) -> Response {
    let id = format!("item_{n}");
    let response = |status: &str, output: Value| {
        json!({
            "id": format!("resp_{n}"), "object": "response", "created_at": 0, "model": body["model"], "status": status,
            "output": output, "parallel_tool_calls": false, "tool_choice": "auto", "tools": [],
            "usage": {
                "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
                "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
            },
        })
    };
    let (item, mut between) = match answer {
        Answer::Text(text) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            let message = |status: &str, content: Value| {
                let (role, kind) = ("assistant", "message");
                json!({"type": kind, "id": id, "role": role, "status": status, "content": content})
            };
            let (item, begun) = (message("completed", json!([part])), message("in_progress", json!([])));
            let about = json!({"item_id": id, "output_index": 0, "content_index": 0});
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            let events = vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
                with(&about, json!({"type": "response.content_part.added", "part": empty})),
                with(&about, json!({"type": "response.output_text.delta", "delta": text, "logprobs": []})),
                with(&about, json!({"type": "response.output_text.done", "text": text, "logprobs": []})),
            ];
            (item, events)
        }
        Answer::Call { tool, arguments } => {
            let mut item = json!({
                "type": "function_call", "id": id, "call_id": format!("call_{n}"), "name": tool,
                "arguments": arguments.to_string(), "status": "completed",
            });
            // A tool in a namespace is called by both names.
            for space in
                body["tools"].as_array().into_iter().flatten().filter(|tool| tool["type"] == "namespace")
            {
                if space["tools"].as_array().into_iter().flatten().any(|inner| inner["name"] == *tool) {
                    item["namespace"] = space["name"].clone();
                }
            }
            let about = json!({"item_id": id, "output_index": 0});
            let begun = with(&item, json!({"status": "in_progress", "arguments": ""}));
            let all = arguments.to_string();
            let events = vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
                with(&about, json!({"type": "response.function_call_arguments.delta", "delta": all})),
                with(
                    &about,
                    json!({"type": "response.function_call_arguments.done", "arguments": all, "name": tool}),
                ),
            ];
            (item, events)
        }
    };
    if !streams {
        return Response::Json(200, response("completed", json!([item])));
    }
    let mut events =
        vec![json!({"type": "response.created", "response": response("in_progress", json!([]))})];
    events.append(&mut between);
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": response("completed", json!([item]))}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    named(events)
}

/// An object with the fields of another in place of its own.
fn with(object: &Value, fields: Value) -> Value {
    let mut object = object.clone();
    for (name, value) in fields.as_object().into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

fn chat(body: &Value, n: u64, answer: Answer, streams: bool) -> Response {
    let (message, finish) = match answer {
        Answer::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Answer::Call { tool, arguments } => {
            let function = json!({"name": tool, "arguments": arguments.to_string()});
            let call =
                json!({"index": 0, "id": format!("call_{n}"), "type": "function", "function": function});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
        }
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let document = |object: &str, choices: Value| {
        let (id, model) = (format!("chatcmpl-{n}"), &body["model"]);
        json!({"id": id, "object": object, "created": 0, "model": model, "choices": choices})
    };
    if !streams {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        return Response::Json(
            200,
            with(&document("chat.completion", json!([choice])), json!({"usage": usage})),
        );
    }
    let chunk = |choices: Value| document("chat.completion.chunk", choices);
    let delta =
        |delta: Value, finish: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]));
    let events = [
        delta(message, Value::Null).to_string(),
        delta(json!({}), json!(finish)).to_string(),
        with(&chunk(json!([])), json!({"usage": usage})).to_string(),
        "[DONE]".to_owned(),
    ];
    Response::Events(events.into_iter().map(|data| (None, data)).collect())
}

fn gemini(body: &Value, _: u64, answer: Answer, streams: bool) -> Response {
    let part = match answer {
        // It asks itself such questions between turns.
        _ if body["generationConfig"]["responseMimeType"] == "application/json" => {
            let reply = json!({
                "reasoning": "-", "next_speaker": "user", "complexity_reasoning": "-", "complexity_score": 1,
                "model_choice": "flash",
            });
            json!({"text": reply.to_string()})
        }
        Answer::Text(text) => json!({"text": text}),
        Answer::Call { tool, arguments } => json!({"functionCall": {"name": tool, "args": arguments}}),
    };
    let reply = json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "stub",
    });
    match streams {
        true => Response::Events(vec![(None, reply.to_string())]),
        false => Response::Json(200, reply),
    }
}
