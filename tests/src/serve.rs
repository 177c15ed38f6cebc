//! A host that speaks the protocol of `hearback serve` by hand.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::scaled;

/// A host with a server process of its own.
#[derive(Debug)]
pub struct ServeClient {
    /// The server.
    pub server: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// What came while something else was awaited.
    kept: Vec<Value>,
    last: u64,
    /// Every request and every line that was read, in order.
    pub lines: Vec<Value>,
}

impl ServeClient {
    /// Starts the server, and hears its hello.
    #[track_caller]
    pub fn start(mut command: Command) -> ServeClient {
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, messages) = channel();
        let stdout = BufReader::new(server.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nothing but the protocol may be printed, so what is not JSON fails the test at its next look.
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "not_protocol": line }));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = server.stdin.take();
        let mut client =
            ServeClient { server, stdin, messages, kept: Vec::new(), last: 0, lines: Vec::new() };
        client.hears("hello");
        client
    }

    /// Writes a line, whatever it is.
    pub fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the host is connected");
        // A server that has ended is found by the answer that does not come.
        let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
    }

    /// Sends a request, and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.write(&request.to_string());
        self.lines.push(request);
        self.last
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// The first message that `is_it`, of those that were kept or come in time. Others are kept.
    fn first(&mut self, is_it: impl Fn(&Value) -> bool, within: Duration) -> Option<Value> {
        if let Some(found) = self.kept.iter().position(&is_it) {
            return Some(self.kept.remove(found));
        }
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).ok()?;
            assert_eq!(message["jsonrpc"], "2.0", "standard output belongs to the protocol: {message}");
            self.lines.push(message.clone());
            if is_it(&message) {
                return Some(message);
            }
            self.kept.push(message);
        }
    }

    fn long() -> Duration {
        Duration::from_secs(scaled(20, 60))
    }

    /// The answer to a request: a result, or an error.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let is_it = |message: &Value| message["method"].is_null() && message["id"] == id;
        self.first(is_it, Self::long()).unwrap_or_else(|| panic!("no answer to request {id}"))
    }

    /// Sends a request that has to succeed, and returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
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

    /// The parameters of the next notification of this name, which has to come.
    #[track_caller]
    pub fn hears(&mut self, method: &str) -> Value {
        self.hears_within(method, Self::long()).unwrap_or_else(|| panic!("no notification `{method}`"))
    }

    /// The same, if it comes in time.
    pub fn hears_within(&mut self, method: &str, within: Duration) -> Option<Value> {
        let mut message = self.first(|message| message["method"] == method, within)?;
        Some(message["params"].take())
    }

    /// Ends the server at once, as a crash would. What it had written is returned.
    pub fn kill(mut self) -> Vec<Value> {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        while let Ok(message) = self.messages.recv() {
            self.kept.push(message);
        }
        std::mem::take(&mut self.kept)
    }

    /// Closes the connection, and returns the exit code of the server.
    #[track_caller]
    pub fn close(&mut self) -> Option<i32> {
        self.stdin = None;
        self.server.wait().unwrap().code()
    }
}

impl Drop for ServeClient {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
