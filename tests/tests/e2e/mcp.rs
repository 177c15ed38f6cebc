//! `hearback mcp`, spoken to by hand in both eras of the protocol. `cargo xtask mcp` does the same with real clients.

use std::time::Duration;

use hearback_tests::{Era, McpClient, Outbox, bin, eventually, misfits, scaled};
use serde_json::{Value, json};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// What only an unsolicited message would break: how long to listen for one.
const SILENCE: Duration = Duration::from_millis(300);

fn soon() -> Duration {
    Duration::from_secs(scaled(20, 60))
}

fn program(name: &str) -> String {
    bin(name).to_str().expect("paths of the tests are text").to_owned()
}

/// A world whose sink wakes the session.
fn waking() -> Outbox {
    Outbox::with("", "turn = true", &[])
}

fn client(outbox: &Outbox, era: Era) -> McpClient {
    McpClient::start(outbox.command_as("s", &["mcp"]), era)
}

fn follower(outbox: &Outbox) -> McpClient {
    McpClient::with_tasks(outbox.command_as("s", &["mcp"]), Era::Modern)
}

/// The arguments of a launch that ends when its gate is released.
fn held(outbox: &Outbox, gate: &str) -> Value {
    json!({ "argv": [program("hold"), outbox.gate(gate), "--print", "so far", "--code", "3"] })
}

fn id(launched: &Value) -> String {
    launched["job"]["id"].as_str().unwrap_or_else(|| panic!("no job: {launched}")).to_owned()
}

fn record(id: &str) -> String {
    format!("hearback://jobs/{id}")
}

#[test]
fn scenario_12_the_description_of_the_launch_documents_the_notification() {
    let outbox = Outbox::new(&[]);
    for era in ERAS {
        let mut client = client(&outbox, era);
        let tools = client.ask("tools/list", json!({}));
        let launch = &tools["tools"][0];
        assert_eq!(launch["name"], "launch");
        let option = &launch["inputSchema"]["properties"]["notify_on_complete"];
        assert_eq!((&option["type"], &option["default"]), (&json!("boolean"), &json!(true)), "{option}");
        let words = option["description"].as_str().unwrap();
        assert!(words.contains("Default: true") && words.contains("Use false only"), "{words}");
        assert!(
            !launch["inputSchema"]["required"]
                .as_array()
                .is_some_and(|all| all.contains(&json!("notify_on_complete")))
        );
    }
}

#[test]
fn scenario_13_a_call_passes_its_options_to_the_launcher_unchanged() {
    let outbox = Outbox::new(&[]);
    for era in ERAS {
        let mut client = client(&outbox, era);
        for (wanted, policy) in [
            (json!({}), "auto"),
            (json!({ "notify_on_complete": true }), "auto"),
            (json!({ "notify_on_complete": false }), "never"),
        ] {
            let mut arguments = json!({
                "argv": [program("show-env"), "GREETING"],
                "env": { "GREETING": "hello" },
                "cwd": outbox.world.home(),
                "label": "a label",
                "timeout_s": 77,
                "idle_timeout_s": 66,
            });
            arguments.as_object_mut().unwrap().extend(wanted.as_object().unwrap().clone());
            let launched = client.tool("launch", arguments);
            let job = outbox.world.show(&id(&launched));
            assert_eq!(job["follow_up"]["policy"], policy, "{wanted}");
            assert_eq!((&job["session"], &job["label"]), (&json!("s"), &json!("a label")));
            assert_eq!((&job["timeout_ms"], &job["idle_timeout_ms"]), (&json!(77_000), &json!(66_000)));
            assert_eq!(job["cwd"], json!(outbox.world.home()));
            let waited = client.tool("wait", json!({ "jobs": [id(&launched)] }));
            assert_eq!(waited["ended"][0]["outcome"]["code"], 0, "{waited}");
            let printed = client.tool("output", json!({ "job": id(&launched) }));
            assert!(printed["parts"][0]["text"].as_str().unwrap().contains("hello"), "{printed}");
        }
    }
}

#[test]
fn scenario_136_every_answer_fits_the_schema_of_its_tool() {
    for era in ERAS {
        let outbox = Outbox::pull();
        let mut client = client(&outbox, era);
        let tools = client.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["launch", "list", "show", "output", "wait", "kill", "follow_ups"]);
        let mut fits = |tool: &str, arguments: Value, is_error: bool| -> Value {
            let result = client.call(tool, arguments.clone());
            assert_eq!(result["isError"], is_error, "{tool} {arguments}: {result}");
            assert!(!result["content"][0]["text"].as_str().unwrap().is_empty(), "{result}");
            let schema = &tools.iter().find(|row| row["name"] == tool).unwrap()["outputSchema"];
            let misfits = misfits(schema, &result["structuredContent"]);
            assert!(misfits.is_empty(), "{tool} {arguments}: {misfits:#?}");
            result["structuredContent"].clone()
        };
        let job = id(&fits("launch", held(&outbox, "gate"), false));
        fits("wait", json!({ "jobs": [job], "timeout_s": 0 }), false);
        fits("show", json!({ "job": job }), false);
        fits("output", json!({ "job": job, "tail": 1 }), false);
        let argv = json!({ "argv": [program("exit-with"), "0"] });
        let other = id(&fits("launch", argv, false));
        fits("wait", json!({ "jobs": [other, job], "until": "any" }), false);
        fits("kill", json!({ "job": job, "reason": "no longer wanted" }), false);
        fits("kill", json!({ "job": job }), false);
        let third = id(&fits("launch", json!({ "argv": [program("exit-with"), "7"] }), false));
        outbox.until(&third, &["pending"]);
        fits("list", json!({}), false);
        fits("list", json!({ "state": "failed", "limit": 1 }), false);
        assert_eq!(fits("follow_ups", json!({}), false)["pending"][0]["id"], *third);
        let next = fits("follow_ups", json!({ "action": "next" }), false);
        assert_eq!(next["next"]["data"]["job"]["id"], *third);
        let closed =
            fits("follow_ups", json!({ "action": "ack", "deliveries": [next["next"]["id"]] }), false);
        assert_eq!(closed["closed"][0]["changed"], true);
        fits("follow_ups", json!({ "action": "next", "wait_s": 0 }), false);
        fits("output", json!({ "job": third, "head": 5 }), false);
        for (tool, arguments, kind) in [
            ("launch", json!({}), "usage"),
            ("launch", json!({ "command": " " }), "usage"),
            ("launch", json!({ "argv": ["there-is-no-such-program"] }), "not_found"),
            ("launch", json!({ "argv": ["x"], "cwd": "relative" }), "usage"),
            ("launch", json!({ "argv": ["x"], "unknown": 1 }), "usage"),
            ("show", json!({ "job": "00000000" }), "unknown_job"),
            ("output", json!({ "job": third, "head": 1, "tail": 1 }), "usage"),
            ("wait", json!({ "jobs": [] }), "usage"),
            ("kill", json!({ "job": 7 }), "usage"),
            ("follow_ups", json!({ "action": "ack" }), "usage"),
        ] {
            assert_eq!(fits(tool, arguments.clone(), true)["error"]["kind"], kind, "{tool} {arguments}");
        }
    }
}

// Trap 6 of the SDK: a field that may be absent becomes a list of types, which some model providers refuse.
#[test]
fn scenario_136_no_schema_has_a_list_of_types() {
    fn look(value: &Value, path: &str) {
        match value {
            Value::Object(object) => {
                assert!(
                    !object.get("type").is_some_and(Value::is_array),
                    "a list of types at {path}: {value}"
                );
                object.iter().for_each(|(key, inner)| look(inner, &format!("{path}/{key}")));
            }
            Value::Array(items) => items.iter().for_each(|item| look(item, path)),
            other => assert_ne!(other, "null", "at {path}"),
        }
    }
    let outbox = Outbox::new(&[]);
    let tools = client(&outbox, Era::Modern).ask("tools/list", json!({}));
    look(&tools, "");
    assert!(
        tools.to_string().len() < 64 * 1024,
        "a client reads all of it: {} bytes",
        tools.to_string().len()
    );
}

// Trap 5 of the SDK: the server introduces itself as its library.
#[test]
fn the_server_says_who_it_is_and_not_which_library_it_uses() {
    let outbox = Outbox::new(&[]);
    for era in ERAS {
        let client = client(&outbox, era);
        let about = match era {
            Era::Legacy => &client.about["serverInfo"],
            Era::Modern => &client.about["_meta"]["io.modelcontextprotocol/serverInfo"],
        };
        assert_eq!(about["name"], "hearback", "{}", client.about);
        assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
        assert!(client.about["instructions"].as_str().unwrap().contains("do not poll"));
        assert_eq!(client.close(), Some(0));
    }
}

#[test]
fn a_launch_says_truly_whether_the_session_is_woken() {
    const WOKEN: &str = "You will be woken in this session when it ends: end your turn, do not poll.";
    let says = |outbox: &Outbox, session: Option<&str>, arguments: &[&str], more: Value| {
        let arguments = [&["mcp"], arguments].concat();
        let command = match session {
            Some(session) => outbox.command_as(session, &arguments),
            None => outbox.world.command(&arguments),
        };
        let mut launch = json!({ "argv": [program("hold"), outbox.gate("never")] });
        launch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut client = McpClient::start(command, Era::Modern);
        let result = client.call("launch", launch);
        let document = &result["structuredContent"];
        let next = document["next"].as_str().unwrap().to_owned();
        assert!(result["content"][0]["text"].as_str().unwrap().ends_with(&next), "{result}");
        assert_eq!(next.lines().count(), 1);
        client.tool("kill", json!({ "job": id(document) }));
        (document["wakes_you"].as_bool().unwrap(), next)
    };
    let outbox = waking();
    assert_eq!(says(&outbox, Some("s"), &[], json!({})), (true, WOKEN.to_owned()));
    let quiet = json!({ "notify_on_complete": false });
    for (outbox, session, arguments, more) in [
        // Nothing is asked for, or there is no session to wake.
        (&outbox, Some("s"), &[][..], quiet),
        (&outbox, None, &[], json!({})),
        // The sink takes the news, but starts no turn.
        (&Outbox::new(&[]), Some("s"), &[], json!({})),
        // It is kept until it is fetched.
        (&Outbox::pull(), Some("s"), &[], json!({})),
    ] {
        let (wakes, next) = says(outbox, session, arguments, more);
        assert!(!wakes && next.starts_with("No process will wake you") && next.contains("`wait`"), "{next}");
    }
    // The program of the agent is not there.
    outbox.write_settings("[sink.absent]\ncommand = [\"there-is-no-such-agent\"]\nturn = true\n");
    let (wakes, next) = says(&outbox, Some("s"), &["--sink", "absent"], json!({}));
    assert!(!wakes && next.contains("`there-is-no-such-agent` was not found"), "{next}");
}

#[test]
fn the_session_comes_from_the_request_and_bounds_what_is_seen() {
    let outbox = Outbox::pull();
    let mut client = McpClient::start(outbox.world.command(["mcp"]), Era::Legacy);
    let mut jobs = Vec::new();
    for (key, session) in [("threadId", "019a-codex"), ("hearback/session", "mine")] {
        client.meta = json!({ key: session });
        let job = id(&client.tool("launch", json!({ "argv": [program("exit-with"), "0"] })));
        assert_eq!(outbox.world.show(&job)["session"], session);
        let listed = client.tool("list", json!({}));
        let seen: Vec<_> = listed["jobs"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect();
        assert_eq!(seen, [json!(job)], "only its own");
        jobs.push(job);
    }
    for tool in ["show", "output", "kill"] {
        assert_eq!(client.tool_error(tool, json!({ "job": jobs[0] }))["kind"], "unknown_job", "{tool}");
    }
    client.fail("resources/read", json!({ "uri": record(&jobs[0]) }));
    for invalid in [json!(""), json!(7)] {
        client.meta = json!({ "hearback/session": invalid });
        let error = client.tool_error("list", json!({}));
        assert_eq!(error["kind"], "usage", "without a session it would see everything: {error}");
    }
}

#[test]
fn the_rules_of_the_library_hold_for_every_call() {
    let outbox = waking();
    let denied = |words: &str| {
        let mut command = outbox.command_as("s", &["mcp"]);
        command.env("HEARBACK_DENY", words);
        McpClient::start(command, Era::Modern)
    };
    let launch = json!({ "argv": [program("exit-with"), "0"] });
    let error = denied("launch").tool_error("launch", launch.clone());
    assert_eq!(error["kind"], "denied");
    assert!(error["tip"].as_str().unwrap().contains("HEARBACK_DENY"));
    assert_eq!(denied("notify").tool_error("launch", launch.clone())["kind"], "denied");
    let quiet = json!({ "argv": [program("exit-with"), "0"], "notify_on_complete": false });
    let job = id(&denied("notify").tool("launch", quiet));
    assert_eq!(denied("kill").tool_error("kill", json!({ "job": job }))["kind"], "denied");
    let ack = json!({ "action": "ack", "deliveries": [job] });
    assert_eq!(denied("ack").tool_error("follow_ups", ack)["kind"], "denied");
    let mut command = outbox.command_as("s", &["mcp"]);
    command.env("HEARBACK_DEPTH", "1000");
    let error = McpClient::start(command, Era::Legacy).tool_error("launch", launch);
    assert_eq!(error["kind"], "chain_limit", "{error}");
}

#[test]
fn scenario_137_a_client_that_follows_a_task_is_told_by_it_and_the_sink_is_not_used() {
    let outbox = waking();
    let mut client = follower(&outbox);
    let task = client.call("launch", held(&outbox, "gate"));
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert_eq!(
        task["statusMessage"],
        "You will be woken in this session when it ends: end your turn, do not poll."
    );
    let job = task["taskId"].as_str().unwrap().to_owned();
    assert!(is_held(&outbox, &job), "the task holds the notification back");
    outbox.release("gate");
    outbox.world.run(["wait", &job, "--peek"]);
    // A client asks again only when its interval has passed. The sink gives it the time.
    std::thread::sleep(Duration::from_millis(task["pollIntervalMs"].as_u64().unwrap()));
    let told = client.ask("tasks/get", json!({ "taskId": job }));
    assert_eq!(told["status"], "completed", "{told}");
    let text = told["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("A background job that you launched has ended.") && text.contains("so far"),
        "{text}"
    );
    assert_eq!(told["result"]["structuredContent"]["job"]["outcome"]["code"], 3);
    let schema = client.ask("tools/list", json!({}))["tools"][0]["outputSchema"].clone();
    assert_eq!(misfits(&schema, &told["result"]["structuredContent"]), [""; 0]);
    outbox.until(&job, &["read"]);
    assert_eq!(outbox.calls(), [], "told once");
}

// Trap 2 of the SDK: a notification without a subscription passes, and a client of the newer era sees an event twice.
#[test]
fn scenario_137_a_client_that_subscribes_is_notified_reads_and_the_sink_is_not_used() {
    for era in ERAS {
        let outbox = waking();
        let mut client = client(&outbox, era);
        let job = id(&client.tool("launch", held(&outbox, "gate")));
        let uri = record(&job);
        let listening = match era {
            Era::Legacy => {
                client.ask("resources/subscribe", json!({ "uri": uri }));
                None
            }
            Era::Modern => {
                let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
                let listening = client.send("subscriptions/listen", filter);
                let first = client.notification(soon()).unwrap();
                assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
                // The acknowledgment comes before the watch.
                client.tool("show", json!({ "job": job }));
                Some(listening)
            }
        };
        eventually("the subscription holds the notification back", || is_held(&outbox, &job).then_some(()));
        outbox.release("gate");
        let changed = client.notification(soon()).expect("the end is news");
        assert_eq!(changed["method"], "notifications/resources/updated");
        assert_eq!(changed["params"]["uri"], *uri);
        let tag = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(tag.as_u64(), listening, "{changed}");
        let read = client.ask("resources/read", json!({ "uri": uri }));
        let view: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(view["outcome"]["code"], 3);
        outbox.until(&job, &["read"]);
        assert_eq!(outbox.calls(), [], "told once, {era:?}");
        assert_eq!(client.notification(SILENCE), None, "and notified once");
    }
}

/// Whether a process holds the lock of readers.
fn is_held(outbox: &Outbox, job: &str) -> bool {
    let lock = outbox.world.job_dir(job).join("reader.lock");
    std::fs::File::open(lock).is_ok_and(|file| file.try_lock().is_err())
}

#[test]
fn scenario_137_a_client_that_waits_is_told_by_the_wait_and_the_sink_is_not_used() {
    for era in ERAS {
        let outbox = waking();
        let mut client = client(&outbox, era);
        let job = id(&client.tool("launch", held(&outbox, "gate")));
        let waiting = client.send("tools/call", json!({ "name": "wait", "arguments": { "jobs": [job] } }));
        eventually("the wait holds the notification back", || is_held(&outbox, &job).then_some(()));
        outbox.release("gate");
        assert_eq!(client.answer(waiting)["result"]["structuredContent"]["complete"], true);
        // A client that goes as soon as it has its answer has been told.
        assert_eq!(client.close(), Some(0));
        outbox.until(&job, &["read"]);
        assert_eq!(outbox.calls(), [], "told once");
    }
}

#[test]
fn scenario_137_when_the_client_is_gone_the_sink_of_the_session_is_used_once() {
    // Killed, or gone in good order; following a task, waiting, or neither.
    let outbox = waking();
    let mut jobs = Vec::new();
    for (n, kills) in [true, false].into_iter().enumerate() {
        let mut client = follower(&outbox);
        let task = client.call("launch", held(&outbox, &format!("task-{n}")));
        jobs.push((task["taskId"].as_str().unwrap().to_owned(), format!("task-{n}")));
        if kills {
            client.kill()
        } else {
            assert_eq!(client.close(), Some(0))
        }
        let mut client = self::client(&outbox, Era::Legacy);
        let job = id(&client.tool("launch", held(&outbox, &format!("wait-{n}"))));
        client.send("tools/call", json!({ "name": "wait", "arguments": { "jobs": [job] } }));
        eventually("the wait holds the notification back", || is_held(&outbox, &job).then_some(()));
        jobs.push((job, format!("wait-{n}")));
        if kills { client.kill() } else { assert_eq!(client.close(), Some(0)) }
    }
    for (job, gate) in &jobs {
        outbox.release(gate);
        outbox.until(job, &["delivered"]);
        assert_eq!(outbox.calls_of(job).len(), 1, "{gate}");
    }
}

#[test]
fn scenario_137_a_client_that_asks_for_nothing_is_woken_through_the_sink() {
    for era in ERAS {
        let outbox = waking();
        let mut client = client(&outbox, era);
        let launched = client.tool("launch", held(&outbox, "gate"));
        assert_eq!(launched["wakes_you"], true);
        let job = id(&launched);
        outbox.release("gate");
        outbox.until(&job, &["delivered"]);
        assert_eq!(outbox.calls_of(&job).len(), 1);
        assert_eq!(client.notification(SILENCE), None, "nothing that was not asked for");
    }
}

// Trap 3 of the SDK: the bundled tasks live in memory, for five minutes.
#[test]
fn scenario_138_another_server_answers_for_a_task_and_cancelling_it_ends_the_job() {
    let outbox = waking();
    let mut first = follower(&outbox);
    let task = first.call("launch", held(&outbox, "gate"));
    // The store keeps it for longer than any client follows it: no time to live, and certainly not five minutes.
    assert_eq!(task["ttlMs"], Value::Null, "{task}");
    assert_eq!(task["pollIntervalMs"], 1000);
    let job = task["taskId"].as_str().unwrap().to_owned();
    first.kill();
    let mut second = follower(&outbox);
    let seen = second.ask("tasks/get", json!({ "taskId": job }));
    assert_eq!((&seen["status"], &seen["ttlMs"]), (&json!("working"), &Value::Null), "{seen}");
    second.ask("tasks/cancel", json!({ "taskId": job }));
    assert_eq!(second.ask("tasks/get", json!({ "taskId": job }))["status"], "cancelled");
    let job = outbox.world.show(&job);
    assert_eq!(job["outcome"]["kind"], "killed", "{job}");
    assert_eq!(outbox.calls(), [], "its own session cancelled it");
    // A job of the command line is a task as well, and one that is not ours is none.
    let other = outbox.launch(&[], "exit-with", &["4"]);
    outbox.world.run(["wait", &other, "--peek"]);
    assert_eq!(second.ask("tasks/get", json!({ "taskId": other }))["status"], "completed");
    let foreign = outbox.world.launch(["--session", "t", "--", &program("exit-with"), "4"]);
    assert_eq!(second.fail("tasks/get", json!({ "taskId": foreign }))["code"], -32602);
    assert_eq!(second.fail("tasks/cancel", json!({ "taskId": foreign }))["code"], -32602);
}

#[test]
fn scenario_138_a_task_whose_job_was_killed_by_somebody_else_says_by_whom() {
    let outbox = waking();
    let mut client = follower(&outbox);
    let task = client.call("launch", held(&outbox, "gate"));
    let job = task["taskId"].as_str().unwrap();
    outbox.world.run(["kill", job, "--reason", "too hot"]).ok();
    let told = client.ask("tasks/get", json!({ "taskId": job }));
    assert_eq!(told["status"], "completed", "nobody cancelled the task: {told}");
    assert!(told["result"]["content"][0]["text"].as_str().unwrap().contains("too hot"), "{told}");
}

#[test]
fn what_wakes_a_model_names_the_way_by_which_it_launched() {
    let outbox = waking();
    let mut client = client(&outbox, Era::Modern);
    let by_tool = id(&client.tool("launch", json!({ "argv": [program("exit-with"), "0"] })));
    let by_command = outbox.launch(&[], "exit-with", &["0"]);
    for (job, way) in [
        (&by_tool, format!("more: call the tools `output` and `show` of hearback with job {by_tool}")),
        (&by_command, format!("more: hearback logs {by_command}; hearback show {by_command}")),
    ] {
        outbox.until(job, &["delivered"]);
        assert!(all_saved(&outbox).contains(&way), "{way}");
    }
}

/// Everything that the sink has read.
fn all_saved(outbox: &Outbox) -> String {
    let files = fs_err::read_dir(&outbox.saved).unwrap().map(|file| file.unwrap().path());
    files.map(|path| fs_err::read_to_string(path).unwrap()).collect()
}

#[test]
fn a_launch_without_notification_is_no_task() {
    let outbox = waking();
    let mut client = follower(&outbox);
    let arguments = json!({ "argv": [program("exit-with"), "0"], "notify_on_complete": false });
    assert_eq!(client.tool("launch", arguments)["wakes_you"], false);
}

// Trap 1 of the SDK: a client of the older era that declares tasks is answered with one.
#[test]
fn tasks_do_not_leak_into_the_older_era() {
    let outbox = waking();
    // The client says in its handshake that it follows tasks, as some do.
    let mut client = McpClient::with_tasks(outbox.command_as("s", &["mcp"]), Era::Legacy);
    assert_eq!(client.about["capabilities"]["extensions"], Value::Null, "{}", client.about);
    let launched = client.tool("launch", json!({ "argv": [program("exit-with"), "0"] }));
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let error = client.fail(method, json!({ "taskId": id(&launched), "inputResponses": {} }));
        assert_eq!(error["code"], -32601, "{method}: {error}");
    }
}

// Trap 2 of the SDK: a notification without a subscription passes.
#[test]
fn nothing_is_notified_that_was_not_subscribed_to() {
    let outbox = Outbox::pull();
    let mut client = client(&outbox, Era::Legacy);
    let followed = id(&client.tool("launch", held(&outbox, "followed")));
    let given_up = id(&client.tool("launch", held(&outbox, "given-up")));
    for job in [&followed, &given_up] {
        client.ask("resources/subscribe", json!({ "uri": record(job) }));
    }
    client.ask("resources/unsubscribe", json!({ "uri": record(&given_up) }));
    outbox.release("given-up");
    outbox.world.run(["wait", &given_up, "--peek"]);
    outbox.release("followed");
    let changed = client.notification(soon()).unwrap();
    assert_eq!(changed["params"]["uri"], record(&followed));
    assert_eq!(client.notification(SILENCE), None);
    let unknown = client.fail("resources/subscribe", json!({ "uri": record("0000000000000000") }));
    assert_eq!(unknown["code"], -32002, "{unknown}");
}

#[test]
fn a_log_is_a_resource_that_says_when_it_grows() {
    for era in ERAS {
        let outbox = Outbox::pull();
        let mut client = client(&outbox, era);
        let job = id(&client.tool("launch", held(&outbox, "gate")));
        let uri = format!("{}/log", record(&job));
        let listed = client.ask("resources/list", json!({}));
        let listed: Vec<_> =
            listed["resources"].as_array().unwrap().iter().map(|row| row["uri"].clone()).collect();
        assert_eq!(listed, [json!(record(&job)), json!(uri)]);
        assert_eq!(
            client.ask("resources/templates/list", json!({}))["resourceTemplates"].as_array().unwrap().len(),
            2
        );
        let printed = eventually("the job prints", || {
            let read = client.ask("resources/read", json!({ "uri": uri }));
            let text = read["contents"][0]["text"].as_str().unwrap().to_owned();
            (!text.is_empty()).then_some(text)
        });
        assert!(printed.contains("so far"), "{printed}");
        match era {
            Era::Legacy => drop(client.ask("resources/subscribe", json!({ "uri": uri }))),
            Era::Modern => {
                client.send(
                    "subscriptions/listen",
                    json!({ "notifications": { "resourceSubscriptions": [uri] } }),
                );
                assert!(client.notification(soon()).is_some(), "an acknowledgment");
                client.tool("show", json!({ "job": job }));
            }
        }
        // Reading a log is not reading how the job ended.
        outbox.release("gate");
        assert_eq!(client.notification(soon()).unwrap()["params"]["uri"], *uri);
        client.ask("resources/read", json!({ "uri": uri }));
        outbox.until(&job, &["pending"]);
    }
}

// Trap 4 of the SDK: a cancelled request goes on.
#[test]
fn scenario_139_cancelling_a_wait_ends_the_wait_and_not_the_job() {
    for era in ERAS {
        let outbox = waking();
        let mut client = client(&outbox, era);
        let job = id(&client.tool("launch", held(&outbox, "gate")));
        let arguments = json!({ "jobs": [job], "timeout_s": 600 });
        let waiting = client.send("tools/call", json!({ "name": "wait", "arguments": arguments }));
        eventually("it waits", || is_held(&outbox, &job).then_some(()));
        client.notify("notifications/cancelled", json!({ "requestId": waiting, "reason": "enough" }));
        eventually("the wait is over", || (!is_held(&outbox, &job)).then_some(()));
        assert_eq!(client.tool("show", json!({ "job": job }))["state"], "running");
        assert_eq!(client.notification(SILENCE), None, "a cancelled request has no answer");
        // It was told to no one, so the session is woken.
        outbox.release("gate");
        outbox.until(&job, &["delivered"]);
        assert_eq!(outbox.calls_of(&job).len(), 1);
        assert_eq!(client.close(), Some(0));
    }
}

#[test]
fn scenario_139_nothing_but_the_protocol_is_printed() {
    let outbox = Outbox::pull();
    outbox.write_settings("no_such_setting = 1\n");
    for flags in [&["mcp"][..], &["mcp", "--json"], &["-vvv", "mcp"]] {
        let mut command = outbox.command_as("s", flags);
        command.stderr(std::process::Stdio::null());
        // The client takes every line for a message, and fails at one that is none.
        let mut client = McpClient::start(command, Era::Legacy);
        let job = id(&client.tool("launch", json!({ "argv": [program("exit-with"), "0"] })));
        client.tool("wait", json!({ "jobs": [job] }));
        assert_eq!(client.notification(SILENCE), None);
        assert_eq!(client.close(), Some(0), "{flags:?}");
    }
    // A store that cannot be opened is an error on standard error.
    let mut command = outbox.command_as("s", &["mcp", "--json"]);
    command.env("HEARBACK_DENY", "nonsense");
    let ran = hearback_tests::run(command);
    assert_eq!((ran.stdout.as_str(), ran.stderr.contains("nonsense")), ("", true), "{ran:?}");
}

#[test]
fn an_answer_that_could_not_be_written_was_told_to_no_one() {
    let outbox = waking();
    let mut client = client(&outbox, Era::Modern);
    let job = id(&client.tool("launch", held(&outbox, "gate")));
    client.send("tools/call", json!({ "name": "wait", "arguments": { "jobs": [job] } }));
    eventually("it waits", || is_held(&outbox, &job).then_some(()));
    // The reader of its answers is gone, while its requests still come.
    client.deafen();
    outbox.release("gate");
    outbox.until(&job, &["delivered"]);
    assert_eq!(outbox.calls_of(&job).len(), 1);
}
