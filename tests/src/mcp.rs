//! A client of `hearback mcp` that speaks the protocol by hand, in either era.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::scaled;

/// Which protocol the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: a handshake, then requests.
    Legacy,
    /// 2026-07-28: every request says what it needs.
    Modern,
}

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client with a server process of its own.
#[derive(Debug)]
pub struct McpClient {
    /// The server.
    pub server: Child,
    era: Era,
    tasks: bool,
    stdin: Option<ChildStdin>,
    /// Whether answers are not read any more.
    deaf: Arc<AtomicBool>,
    messages: Receiver<Value>,
    /// Notifications that came while an answer was awaited.
    notifications: Vec<Value>,
    last: u64,
    /// What the client adds to the `_meta` of each request.
    pub meta: Value,
    /// What the server said of itself.
    pub about: Value,
}

impl McpClient {
    /// Starts the server and begins a conversation.
    #[track_caller]
    pub fn start(command: Command, era: Era) -> McpClient {
        McpClient::with(command, era, false)
    }

    /// The same as a client that follows tasks. It says so in both eras, as some clients do.
    #[track_caller]
    pub fn with_tasks(command: Command, era: Era) -> McpClient {
        McpClient::with(command, era, true)
    }

    #[track_caller]
    fn with(mut command: Command, era: Era, tasks: bool) -> McpClient {
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, messages) = channel();
        let deaf = Arc::new(AtomicBool::new(false));
        let is_deaf = Arc::clone(&deaf);
        let stdout = BufReader::new(server.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nothing but the protocol may be printed, so what is not JSON fails the test at its next look.
                let message = serde_json::from_str(&line)
                    .unwrap_or_else(|error| json!({ "not_protocol": line, "error": error.to_string() }));
                if is_deaf.load(Ordering::SeqCst) || sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = server.stdin.take();
        let mut client = McpClient {
            server,
            era,
            tasks,
            stdin,
            deaf,
            messages,
            notifications: Vec::new(),
            last: 0,
            meta: json!({}),
            about: Value::Null,
        };
        client.about = match era {
            Era::Modern => client.ask("server/discover", json!({})),
            Era::Legacy => {
                let about = client.ask(
                    "initialize",
                    json!({
                        "protocolVersion": "2025-11-25",
                        "capabilities": client.capabilities(),
                        "clientInfo": { "name": "test", "version": "1" },
                    }),
                );
                client.notify("notifications/initialized", json!({}));
                about
            }
        };
        client
    }

    fn capabilities(&self) -> Value {
        if self.tasks { json!({ "extensions": { TASKS: {} } }) } else { json!({}) }
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("the client is connected");
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, and returns its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        let mut meta = self.meta.clone();
        if self.era == Era::Modern {
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities();
        }
        params["_meta"] = meta;
        let id = self.last;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message, if one comes in time.
    #[track_caller]
    fn message(&self, within: Duration) -> Option<Value> {
        let message = self.messages.recv_timeout(within).ok()?;
        assert_eq!(message["jsonrpc"], "2.0", "standard output belongs to the protocol: {message}");
        Some(message)
    }

    /// The answer to a request: a result, or an error.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let Some(message) = self.message(Duration::from_secs(scaled(20, 60))) else {
                panic!("no answer to request {id}")
            };
            if message["id"] == id {
                return message;
            }
            assert!(message["method"].is_string(), "neither an answer nor a notification: {message}");
            self.notifications.push(message);
        }
    }

    /// Sends a request that has to succeed, and returns its result.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let mut answer = self.answer(id);
        assert!(answer["error"].is_null(), "{method} failed: {answer}");
        answer["result"].take()
    }

    /// Sends a request that has to fail, and returns the error.
    #[track_caller]
    pub fn fail(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let mut answer = self.answer(id);
        assert!(answer["error"].is_object(), "{method} succeeded: {answer}");
        answer["error"].take()
    }

    /// Calls a tool, and returns its result as it is.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool that has to succeed, and returns its document.
    #[track_caller]
    pub fn tool(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].take()
    }

    /// Calls a tool that has to fail, and returns the error of its document.
    #[track_caller]
    pub fn tool_error(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"]["error"].take()
    }

    /// The next notification, if one comes in time.
    #[track_caller]
    pub fn notification(&mut self, within: Duration) -> Option<Value> {
        if !self.notifications.is_empty() {
            return Some(self.notifications.remove(0));
        }
        self.message(within)
    }

    /// Closes the end of the pipe on which answers come. Requests can still be sent.
    pub fn deafen(&mut self) {
        self.deaf.store(true, Ordering::SeqCst);
        // Its answer is the last that is read.
        self.send("tools/list", json!({}));
        while self.messages.recv().is_ok() {}
    }

    /// Ends the server at once, as a crash would.
    pub fn kill(mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    /// Closes the connection, and returns the exit code of the server.
    #[track_caller]
    pub fn close(mut self) -> Option<i32> {
        self.stdin = None;
        self.server.wait().unwrap().code()
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// What does not fit a JSON Schema, in words; nothing if everything does. It knows the words that our schemas use.
pub fn misfits(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "$", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else { return };
    for (word, rule) in rules {
        match word.as_str() {
            "$ref" => {
                let target =
                    rule.as_str().and_then(|name| name.strip_prefix('#')).and_then(|path| root.pointer(path));
                check(root, target.expect("a reference has a target"), value, at, found);
            }
            "type" => {
                let fits = |name: &Value| match name.as_str().expect("a type has a name") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "null" => value.is_null(),
                    other => panic!("an unknown type: {other}"),
                };
                let fits = rule.as_array().map_or_else(|| fits(rule), |names| names.iter().any(fits));
                if !fits {
                    found.push(format!("{at}: {value} is not of type {rule}"));
                }
            }
            "const" if rule != value => found.push(format!("{at}: {value} is not {rule}")),
            "enum" if !rule.as_array().is_some_and(|words| words.contains(value)) => {
                found.push(format!("{at}: {value} is none of {rule}"));
            }
            "anyOf" | "oneOf" => {
                let choices = rule.as_array().expect("choices are a list");
                let each: Vec<_> = choices
                    .iter()
                    .map(|choice| {
                        let mut misfits = Vec::new();
                        check(root, choice, value, at, &mut misfits);
                        misfits
                    })
                    .collect();
                if each.iter().all(|misfits| !misfits.is_empty()) {
                    found.push(format!("{at}: no choice fits: {each:?}"));
                }
            }
            "required" => {
                for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        found.push(format!("{at}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in rule.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        check(root, inner, value, &format!("{at}.{name}"), found);
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}[{index}]"), found);
                }
            }
            _ => {}
        }
    }
}
