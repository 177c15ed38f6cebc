//! One story through every door: command line, MCP, library, `serve`, and the packages for Python and TypeScript.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hearback_tests::node::Node;
use hearback_tests::{Era, McpClient, World, bin, eventually, misfits, python, run};
use serde_json::{Value, json};

/// Everybody in this story is the same session, so that everybody sees the same jobs.
const SESSION: &str = "story";

/// A way to hearback. It answers with a document, or with an error that has `kind` and `message`.
trait Door {
    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value>;
}

/// Puts a command into the world and the session of the story.
fn settle(world: &World, deny: Option<&str>, mut command: Command) -> Command {
    world.settle(&mut command);
    command.env("HEARBACK_SESSION", SESSION).env("HEARBACK", bin("hearback"));
    if let Some(deny) = deny {
        command.env("HEARBACK_DENY", deny);
    }
    command
}

struct CommandLine<'a> {
    world: &'a World,
    deny: Option<&'a str>,
}

impl Door for CommandLine<'_> {
    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let mut command = settle(self.world, self.deny, Command::new(bin("hearback")));
        command.args([method, "--json"]);
        let words = |name: &str| params[name].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        match method {
            "launch" => {
                command.args(["--notify", "never", "--label", params["label"].as_str().unwrap(), "--"]);
                command.args(words("command"))
            }
            "wait" => command.args(words("jobs")),
            _ => command.arg(params["job"].as_str().unwrap()),
        };
        let ran = run(command);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        match &document["error"] {
            Value::Null if method == "wait" => Ok(json!({ "jobs": [document] })),
            Value::Null => Ok(document),
            error => Err(error.clone()),
        }
    }
}

impl Door for McpClient {
    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let arguments = match method {
            "launch" => json!({
                "argv": params["command"],
                "label": params["label"],
                "notify_on_complete": false,
            }),
            _ => params,
        };
        let mut result = McpClient::call(self, method, arguments);
        let mut document = result["structuredContent"].take();
        match method {
            _ if result["isError"] == true => Err(document["error"].take()),
            "launch" => Ok(document["job"].take()),
            "wait" => Ok(json!({ "jobs": document["ended"] })),
            _ => Ok(document),
        }
    }
}

/// A program that reads a request a line and answers: `serve`, and those in `tests/doors`.
struct Lines {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Lines {
    fn start(mut command: Command) -> Lines {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Lines { child, stdin, stdout }
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
    }
}

impl Door for Lines {
    fn call(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        if method == "launch" {
            params["notify"] = json!("never");
        }
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.stdin.as_mut().unwrap(), "{request}").unwrap();
        let mut answer = self.line();
        if answer["error"].is_null() {
            return Ok(answer["result"].take());
        }
        let mut error = answer["error"].take();
        // `serve` has the kind where JSON-RPC wants it.
        if let Some(data) = error.get("data") {
            error["kind"] = data["kind"].clone();
        }
        Err(error)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

/// Every door there is here, by its name.
fn doors<'a>(world: &'a World, deny: Option<&'a str>) -> Option<BTreeMap<&'static str, Box<dyn Door + 'a>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let python = python::interpreter()?;
    let node = Node::fetch(env!("CARGO_TARGET_TMPDIR"))?;
    let mut doors: BTreeMap<&'static str, Box<dyn Door>> = BTreeMap::new();
    doors.insert("command line", Box::new(CommandLine { world, deny }));
    let hearback = |arg: &str| {
        let mut command = settle(world, deny, Command::new(bin("hearback")));
        command.arg(arg);
        command
    };
    doors.insert("mcp", Box::new(McpClient::start(hearback("mcp"), Era::Legacy)));
    doors.insert("library", Box::new(Lines::start(settle(world, deny, Command::new(bin("door"))))));
    let mut serve = Lines::start(hearback("serve"));
    assert_eq!(serve.line()["method"], "hello");
    doors.insert("serve", Box::new(serve));
    let mut in_python = settle(world, deny, Command::new(python));
    in_python.arg(root.join("tests/doors/door.py")).env("PYTHONPATH", root.join("packages/python/src"));
    in_python.env("PYTHONDONTWRITEBYTECODE", "1");
    doors.insert("python", Box::new(Lines::start(in_python)));
    let package = world.scratch("typescript");
    let module = package.join("src/index.js");
    if !module.exists() {
        node.compile_package(&package);
    }
    let mut in_node = settle(world, deny, node.command());
    in_node.arg(root.join("tests/doors/door.mjs")).arg(module);
    doors.insert("typescript", Box::new(Lines::start(in_node)));
    Some(doors)
}

#[test]
fn scenario_146_a_job_that_is_launched_through_one_door_is_the_same_through_all() {
    let world = World::new();
    let Some(mut doors) = doors(&world, None) else { return };
    let mut schema = world.json(["schema"]);
    schema["$ref"] = schema["properties"]["job"]["$ref"].take();
    for key in ["properties", "required", "type"] {
        schema.as_object_mut().unwrap().remove(key);
    }
    let command = json!([bin("exit-with"), "3", "--print", "hello"]);
    let names: Vec<_> = doors.keys().copied().collect();
    for launcher in &names {
        let params = json!({ "command": command, "label": format!("by {launcher}") });
        let launched = doors.get_mut(launcher).unwrap().call("launch", params).unwrap();
        let id = launched["id"].as_str().unwrap_or_else(|| panic!("{launcher}: {launched}")).to_owned();
        for (name, door) in &mut doors {
            let waited = door.call("wait", json!({ "jobs": [id] })).unwrap();
            assert_eq!(waited["jobs"][0]["id"], id, "launched by {launcher}, awaited by {name}: {waited}");
        }
        // Nothing more happens to it, so that everybody looks at the same.
        eventually("the job is settled", || {
            world.job_dir(&id).starts_with(world.home().join("history")).then_some(())
        });
        let expected = world.json(["show", &id, "--json"]);
        assert_eq!(expected["outcome"], json!({ "kind": "exited", "code": 3 }), "{expected:#}");
        assert_eq!(expected["session"], SESSION);
        for (name, door) in &mut doors {
            let shown = door.call("show", json!({ "job": id })).unwrap();
            assert_eq!(shown, expected, "launched by {launcher}, shown by {name}");
            assert_eq!(misfits(&schema, &shown), [""; 0], "{name}");
        }
    }
}

#[test]
fn scenario_146_every_door_refuses_with_the_same_error() {
    let world = World::new();
    let Some(mut doors) = doors(&world, Some("launch")) else { return };
    let launch = |command: Value| ("launch", json!({ "command": command, "label": "x" }));
    let unknown = "zzzzzzzzzzzzzzzz";
    for (kind, (method, params)) in [
        ("unknown_job", ("show", json!({ "job": unknown }))),
        ("denied", launch(json!([bin("exit-with"), "0"]))),
    ] {
        let errors: BTreeMap<_, _> = doors
            .iter_mut()
            .map(|(name, door)| {
                let error = door.call(method, params.clone()).unwrap_err();
                (*name, json!({ "kind": error["kind"], "message": error["message"] }))
            })
            .collect();
        let expected = &errors["command line"];
        assert_eq!(expected["kind"], kind);
        assert!(errors.values().all(|error| error == expected), "{errors:#?}");
    }
    // What is wrong with a request is said in the words of its own door.
    for (name, door) in &mut doors {
        let (method, params) = launch(json!([]));
        let error = door.call(method, params).unwrap_err();
        assert_eq!(error["kind"], "usage", "{name}: {error}");
    }
    assert_eq!(world.json(["list", "--all", "--json"])["jobs"], json!([]), "no door launched anything");
}
