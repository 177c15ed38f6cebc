//! The server: it reads lines, lets each request run in a thread of its own, and answers.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use hearback::core::{DOCUMENT_FORMAT, Session};
use hearback::documents::ErrorKind;
use hearback::documents::serve::{CancelParams, HelloDocument, Notification, PROTOCOL, RpcError};
use hearback::{CancelWait, Capability, Hearback, Job, Reading, SessionHost};
use serde::Serialize;
use serde_json::Value;

use super::events::Subscriptions;
use super::jobs;
use super::pipe::{AfterWrite, Pipe};
use super::rpc::{self, Request, Response};
use super::turns;
use crate::error::CliError;

/// So many requests run at the same time. Most that wait are `wait`.
const AT_ONCE: usize = 128;
/// When the host has closed its end, requests that run have so long to finish.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// The answer to a request.
pub(super) struct Answer {
    value: Value,
    after: Option<AfterWrite>,
    /// What the thread of the request does next.
    then: Option<Box<dyn FnOnce() + Send>>,
}

impl Answer {
    pub(super) fn new(document: &impl Serialize) -> Self {
        Self { value: serde_json::to_value(document).unwrap_or(Value::Null), after: None, then: None }
    }

    /// What comes after the answer.
    pub(super) fn then(self, then: impl FnOnce() + Send + 'static) -> Self {
        Self { then: Some(Box::new(then)), ..self }
    }

    /// Only what was written counts as read.
    pub(super) fn read_by(mut self, hearback: &Arc<Hearback>, by: Option<Session>, jobs: Vec<Job>) -> Self {
        let hearback = Arc::clone(hearback);
        self.after = Some(Box::new(move || {
            for job in &jobs {
                // Then its owner is notified.
                let _ = hearback.mark_read(job, by.as_ref());
            }
        }));
        self
    }

    /// Keeps deliveries away until it was written.
    pub(super) fn holding(mut self, readings: Vec<Reading>) -> Self {
        let before = self.after.take();
        self.after = Some(Box::new(move || {
            if let Some(before) = before {
                before();
            }
            drop(readings);
        }));
        self
    }
}

/// Serves the host at the other end of standard input and output until it closes one of them.
pub(crate) fn run(hearback: Hearback) -> Result<u32, CliError> {
    let pipe = Pipe::start().map_err(CliError::Output)?;
    let server = Server {
        hearback: Arc::new(hearback),
        pipe,
        running: Running::default(),
        host: OnceLock::new(),
        subscriptions: Arc::default(),
    };
    let server = Arc::new(server);
    server.pipe.notify(&Notification::Hello(HelloDocument {
        format: DOCUMENT_FORMAT,
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        home: server.hearback.home().display().to_string(),
        pid: std::process::id(),
    }));
    let mut stdin = io::stdin().lock();
    while let Some(line) = read_line(&mut stdin).map_err(CliError::Stdin)? {
        if !line.iter().all(u8::is_ascii_whitespace) {
            server.take(&line);
        }
    }
    server.running.finish(FINISH_WITHIN);
    // What was answered is written before this process ends. What the host holds is not given back: it is gone, and its
    // turns are cut short as by a death.
    server.pipe.finish();
    std::process::exit(0)
}

/// Reads a line; of one that is too long, a part that is too long.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let most = u64::try_from(rpc::LINE_MAX).unwrap_or(u64::MAX).saturating_add(2);
    let mut line = Vec::new();
    input.take(most).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() > rpc::LINE_MAX {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

struct Server {
    hearback: Arc<Hearback>,
    pipe: Pipe,
    running: Running,
    /// What this process is for the sessions of its host, once a request needs it.
    host: OnceLock<Result<SessionHost, String>>,
    subscriptions: Arc<Subscriptions>,
}

impl Server {
    fn take(self: &Arc<Self>, line: &[u8]) {
        let Request { id, method, params } = match rpc::parse(line) {
            Ok(request) => request,
            Err(refused) => return self.pipe.say(&Response::new(&refused.id, Err(&refused.error)), None),
        };
        let Some(id) = id else {
            // A notification has no answer, and one that is not known is left alone.
            if method == "cancel"
                && let Ok(CancelParams { id }) = rpc::params(params)
            {
                self.running.cancel(&id);
            }
            return;
        };
        let Some(cancel) = self.running.begin(&id) else {
            let error = CliError::no(ErrorKind::Busy, format!("{AT_ONCE} requests are not answered yet"));
            return self.pipe.say(&Response::new(&id, Err(&RpcError::of(error.detail()))), None);
        };
        let (server, name, of) = (Arc::clone(self), id.to_string(), id.clone());
        let request = move || {
            let id = of;
            let running = Finish(&server.running, id.to_string());
            match server.answer(&method, params, &cancel) {
                Ok(Answer { value, after, then }) => {
                    server.pipe.say(&Response::new(&id, Ok(&value)), after);
                    // What follows is not the request any more, however long it takes.
                    drop(running);
                    if let Some(then) = then {
                        then();
                    }
                }
                Err(error) => server.pipe.say(&Response::new(&id, Err(&error)), None),
            }
        };
        if let Err(error) = Builder::new().spawn(request) {
            self.running.end(&name);
            let error = CliError::no(ErrorKind::Failed, format!("no thread for this request: {error}"));
            self.pipe.say(&Response::new(&id, Err(&RpcError::of(error.detail()))), None);
        }
    }

    fn answer(&self, method: &str, params: Value, cancel: &CancelWait) -> Result<Answer, RpcError> {
        let hearback = &self.hearback;
        let answer = match method {
            "launch" => jobs::launch(hearback, rpc::params(params)?),
            "list" => jobs::list(hearback, rpc::params(params)?),
            "show" => jobs::show(hearback, rpc::params(params)?),
            "output" => jobs::output(hearback, rpc::params(params)?),
            "wait" => jobs::wait(hearback, rpc::params(params)?, cancel),
            "kill" => jobs::kill(hearback, rpc::params(params)?),
            "send" => jobs::send(hearback, rpc::params(params)?),
            "events" => self.subscriptions.start(hearback, &self.pipe, rpc::params(params)?),
            "events.stop" => self.subscriptions.stop(rpc::params(params)?),
            _ => return self.answer_host(method, params, cancel),
        };
        answer.map_err(|error| RpcError::of(error.detail()))
    }
}

impl Server {
    fn answer_host(&self, method: &str, params: Value, cancel: &CancelWait) -> Result<Answer, RpcError> {
        let host = || self.host().map_err(|error| RpcError::of(error.detail()));
        let answer = match method {
            "attend" => turns::attend(host()?, rpc::params(params)?),
            "unattend" => turns::unattend(host()?, rpc::params(params)?),
            "turn.open" => turns::open(host()?, rpc::params(params)?, cancel),
            "turn.claim" => turns::claim(host()?, rpc::params(params)?),
            "turn.close" => turns::close(host()?, rpc::params(params)?),
            "ack" => turns::ack(host()?, rpc::params(params)?),
            "release" => turns::release(host()?, rpc::params(params)?),
            _ => return Err(rpc::unknown(method)),
        };
        answer.map_err(|error| RpcError::of(error.detail()))
    }

    /// The host, which watches the store from the first time on that it is needed.
    fn host(&self) -> Result<&SessionHost, CliError> {
        self.hearback.permissions().check(Capability::Turn)?;
        let host = self.host.get_or_init(|| {
            let pipe = self.pipe.clone();
            let tell = move |news| turns::notification(news).iter().for_each(|line| pipe.notify(line));
            self.hearback.host_sessions(tell).map_err(|error| error.to_string())
        });
        host.as_ref().map_err(|error| CliError::no(ErrorKind::Store, error.clone()))
    }
}

/// The requests that are not answered yet, by their ids.
#[derive(Default)]
struct Running {
    requests: Mutex<HashMap<String, CancelWait>>,
    changed: Condvar,
}

impl Running {
    fn requests(&self) -> MutexGuard<'_, HashMap<String, CancelWait>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request, unless there are too many.
    fn begin(&self, id: &Value) -> Option<CancelWait> {
        let mut requests = self.requests();
        if requests.len() >= AT_ONCE {
            return None;
        }
        let cancel = CancelWait::default();
        requests.insert(id.to_string(), cancel.clone());
        Some(cancel)
    }

    fn end(&self, id: &str) {
        self.requests().remove(id);
        self.changed.notify_all();
    }

    fn cancel(&self, id: &Value) {
        if let Some(cancel) = self.requests().get(&id.to_string()) {
            cancel.cancel();
        }
    }

    /// Ends what waits, and gives the rest some time.
    fn finish(&self, within: Duration) {
        let requests = self.requests();
        requests.values().for_each(CancelWait::cancel);
        let is_open = |requests: &mut HashMap<String, CancelWait>| !requests.is_empty();
        drop(self.changed.wait_timeout_while(requests, within, is_open));
    }
}

/// Ends a request, even if its thread panics.
struct Finish<'a>(&'a Running, String);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.end(&self.1);
    }
}
