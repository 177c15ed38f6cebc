//! Webhooks against a real server: what is posted, how it is signed, and what each answer means.
//!
//! The signature is checked by an independent implementation, the Python package `standardwebhooks`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use hearback_tests::{Ran, Snapshot, World, bin, eventually, python, run};
use serde_json::{Value, json};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const WITHIN: Duration = Duration::from_secs(20);

/// What was posted.
struct Posted {
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
    /// The command lines of all processes at that moment, where there is `/proc`.
    command_lines: Vec<u8>,
}

/// A server on this machine that answers its n-th request with the n-th of these, and further ones with the last.
struct Server {
    url: String,
    posted: Receiver<Posted>,
}

impl Server {
    fn new(answers: &'static [&'static str]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, posted) = channel();
        thread::spawn(move || {
            for (n, stream) in listener.incoming().flatten().enumerate() {
                let Some(posted) = read(&stream) else { continue };
                let answer = answers[n.min(answers.len() - 1)];
                let _ =
                    write!(&stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                if sender.send(posted).is_err() {
                    return;
                }
            }
        });
        Server { url, posted }
    }

    #[track_caller]
    fn next(&self) -> Posted {
        self.posted.recv_timeout(WITHIN).expect("something is posted in time")
    }
}

fn read(stream: &TcpStream) -> Option<Posted> {
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Posted { line: line.trim_end().to_owned(), headers, body, command_lines: command_lines() })
}

fn command_lines() -> Vec<u8> {
    // Under Wine there is that of its host.
    let proc = if cfg!(windows) { r"Z:\proc" } else { "/proc" };
    if !std::path::Path::new(proc).exists() {
        hearback_tests::skipped("the command lines of other processes cannot be seen here");
    }
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    processes.flat_map(|process| fs::read(process.path().join("cmdline")).unwrap_or_default()).collect()
}

fn configure(world: &World, config: &str) {
    world.run(["reconcile"]).ok();
    fs::write(world.home().join("config.toml"), config).unwrap();
}

/// Becomes the sink itself, with one delivery.
fn sink(world: &World, url: &str, variables: &[(&str, &str)]) -> Ran {
    let delivery = world.scratch("delivery");
    fs::write(&delivery, "{\"specversion\":\"1.0\",\"id\":\"x.end\"}\n").unwrap();
    let mut command = world.command(["__sink", "webhook", url, "HOOK_SECRET"]);
    command.env_remove("HOOK_SECRET").envs(variables.iter().copied());
    command.stdin(fs::File::open(delivery).unwrap().into_parts().0);
    run(command)
}

#[test]
fn each_answer_of_a_server_is_an_exit_code() {
    let world = World::new();
    for (answer, code, said) in [
        ("200 OK", 0, ""),
        ("410 Gone", 69, "status 410: this address takes no events\n"),
        ("404 Not Found", 69, "status 404: this address takes no events\n"),
        ("429 Too Many Requests", 1, "status 429: too many requests\n"),
        ("503 Service Unavailable", 1, "status 503\n"),
        (
            "302 Found\r\nlocation: /elsewhere",
            1,
            "status 302: redirects are not followed; set `url` to the final address\n",
        ),
    ] {
        let server = Server::new(Vec::leak(vec![answer]));
        let ran = sink(&world, &server.url, &[("HOOK_SECRET", SECRET)]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), said), "{answer}");
        assert_eq!(server.next().headers["webhook-id"], "x.end");
        assert!(server.posted.try_recv().is_err(), "{answer}: asked once");
    }
    // A proxy is for the world outside.
    let server = Server::new(&["200 OK"]);
    let proxy =
        [("HOOK_SECRET", SECRET), ("http_proxy", "http://127.0.0.1:1"), ("ALL_PROXY", "http://127.0.0.1:1")];
    assert_eq!(sink(&world, &server.url, &proxy).code, Some(0));
}

#[test]
fn retry_after_is_kept_to_within_a_bound() {
    let world = World::new();
    let server = Server::new(&[
        "429 Too Many Requests\r\nretry-after: 86400",
        "429 Too Many Requests",
        "204 No Content",
    ]);
    let sink = format!("[sink.hook]\nurl = '{}'\nsecret_env = 'HOOK_SECRET'\n", server.url);
    configure(&world, &format!("retry_first = '10ms'\nretry_most = '2s'\nattempts = 2\n{sink}"));
    let launch = || {
        let mut launch = world.command(["launch", "--session", "s", "--sink", "hook", "--"]);
        launch.arg(bin("exit-with")).arg("0").env("HOOK_SECRET", SECRET);
        run(launch).ok()
    };
    let id = launch();
    server.next();
    let asked = Instant::now();
    server.next();
    let waited = asked.elapsed();
    // A day would be too long; two seconds is the longest pause, and ten milliseconds would be its own.
    assert!((Duration::from_millis(1500)..WITHIN).contains(&waited), "{waited:?}");
    eventually("it is given up", || (world.show(&id)["follow_up"]["state"] == "dead_letter").then_some(()));
    assert_eq!(world.show(&id)["follow_up"]["attempts"], 2, "each of them was an attempt");
    let mut again = world.command(["followups", "retry", &id]);
    again.env("HOOK_SECRET", SECRET);
    run(again).ok();
    server.next();
    eventually("it is delivered", || (world.show(&id)["follow_up"]["state"] == "delivered").then_some(()));
}

#[test]
fn nothing_is_posted_in_the_clear_or_without_a_secret() {
    let world = World::new();
    let server = Server::new(&["200 OK"]);
    let short = "whsec_c2hvcnQ=";
    for (url, variables, said) in [
        ("http://192.0.2.1/hook", [("HOOK_SECRET", SECRET)], "is not encrypted"),
        ("ftp://127.0.0.1/hook", [("HOOK_SECRET", SECRET)], "has to begin with `https://`"),
        (
            &server.url,
            [("OTHER", SECRET)],
            "the variable `HOOK_SECRET`, which `secret_env` names, is not set",
        ),
        (&server.url, [("HOOK_SECRET", short)], "the variable `HOOK_SECRET` holds no valid secret"),
        ("http://127.0.0.1:1/hook", [("HOOK_SECRET", SECRET)], "the post failed"),
    ] {
        let ran = sink(&world, url, &variables);
        assert_eq!((ran.code, ran.stderr.lines().count()), (Some(1), 1), "{url}: {ran:?}");
        assert!(ran.stderr.contains(said) && !ran.stderr.contains(short), "{url}: {ran:?}");
    }
    assert!(server.posted.try_recv().is_err(), "nothing was posted");

    configure(&world, "[sink.hook]\nurl = 'http://example.org/hook'\nsecret_env = 'HOOK_SECRET'\n");
    let listed = world.run(["sink", "list"]);
    assert!(
        listed.stderr.contains("[sink.hook] in ")
            && listed.stderr.contains("config.toml:1:7 is invalid and was ignored: `url` is not encrypted"),
        "{listed:?}"
    );
    assert!(!listed.ok().lines().any(|name| name == "hook"));
}

#[test]
fn a_silent_server_is_waited_for_until_the_timeout() {
    let world = World::new();
    // Accepted by the system, and read by no program.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", mute.local_addr().unwrap());
    configure(
        &world,
        &format!("[sink.hook]\nurl = '{url}'\nsecret_env = 'HOOK_SECRET'\ntimeout = '500ms'\n"),
    );
    let mut test = world.command(["sink", "test", "hook"]);
    test.env("HOOK_SECRET", SECRET);
    let ran = run(test);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "hook: the sink did not answer in time\n"));
}

/// What the other implementation makes of a request: `ok`, or why it was refused.
fn judged(package: &python::Package, posted: &Posted) -> String {
    const JUDGE: &str = "
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
asked = json.load(open(sys.argv[1], encoding='utf-8'))
try:
    Webhook(asked['secret']).verify(asked['body'], asked['headers'])
    print('ok')
except WebhookVerificationError as error:
    print(error)
";
    let body = str::from_utf8(&posted.body).unwrap();
    let asked = json!({ "secret": SECRET, "body": body, "headers": posted.headers }).to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asked");
    fs::write(&path, asked).unwrap();
    package.run(JUDGE, &path).ok()
}

#[test]
fn a_webhook_is_signed_so_that_others_believe_it_and_keeps_its_identity() {
    let package = python::Package::fetch(env!("CARGO_TARGET_TMPDIR"), "standardwebhooks==1.1.0");
    let Some(package) = package else { return };
    let world = World::new();
    let server = Server::new(&["503 Service Unavailable", "204 No Content"]);
    configure(
        &world,
        &format!(
            "retry_first = '10ms'\nretry_most = '50ms'\n[sink.hook]\nurl = '{}'\nsecret_env = 'HOOK_SECRET'\n",
            server.url
        ),
    );
    let mut launch = world.command(["launch", "--session", "s", "--sink", "hook", "--"]);
    launch.arg(bin("show-env")).arg("HOOK_SECRET").env("HOOK_SECRET", SECRET);
    let id = run(launch).ok();

    let (first, mut second) = (server.next(), server.next());
    for posted in [&first, &second] {
        assert_eq!(posted.line, "POST /hook HTTP/1.1");
        assert_eq!(posted.headers["content-type"], "application/cloudevents+json");
        assert_eq!(posted.headers["webhook-id"], format!("{id}.end"));
        assert_eq!(judged(&package, posted), "ok");
        let event: Value = serde_json::from_slice(&posted.body).unwrap();
        assert_eq!((&event["id"], &event["subject"]), (&json!(format!("{id}.end")), &json!(id)));
        assert_eq!(
            event["data"]["output"]["head"].as_str().unwrap().lines().next(),
            Some("HOOK_SECRET unset")
        );
        let secret = SECRET.strip_prefix("whsec_").unwrap().as_bytes();
        for shown in [&posted.command_lines, &posted.body] {
            assert!(!shown.windows(secret.len()).any(|window| window == secret), "the secret is shown");
        }
    }
    let attempt =
        |posted: &Posted| serde_json::from_slice::<Value>(&posted.body).unwrap()["data"]["attempt"].clone();
    assert_eq!((attempt(&first), attempt(&second)), (json!(1), json!(2)));
    eventually("the receipt is there", || {
        (world.show(&id)["follow_up"]["state"] == "delivered").then_some(())
    });
    assert!(Snapshot::of(world.home()).holding(SECRET.as_bytes()).is_empty());

    // What was changed on its way, or kept to be sent later, is refused.
    second.body.push(b' ');
    assert_eq!(judged(&package, &second), "No matching signature found");
    second.body.pop();
    let sent: i64 = second.headers["webhook-timestamp"].parse().unwrap();
    second.headers.insert("webhook-timestamp".into(), (sent + 1).to_string());
    assert_eq!(judged(&package, &second), "No matching signature found");
    second.headers.insert("webhook-timestamp".into(), (sent - 400).to_string());
    assert_eq!(judged(&package, &second), "Message timestamp too old");
}
