//! `door`: the library as a door. Reads a request a line on standard input and writes its answer, as the programs in
//! `tests/doors` do for the packages of other languages.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::io::{BufRead, stdin};

use hearback::core::{JobView, NotifyPolicy};
use hearback::{FindError, Hearback, LaunchError, Options, Scope};
use serde_json::{Value, json};

fn main() {
    hearback::supervise_if_asked();
    let hearback = Hearback::open(Options::default()).expect("the store opens");
    for line in stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = match answer(&hearback, &asked["method"], &asked["params"]) {
            Ok(result) => json!({ "result": result }),
            Err((kind, message)) => json!({ "error": { "kind": kind, "message": message } }),
        };
        println!("{answer}");
    }
}

/// An error of the library by its variant, which is what other doors call its kind.
type Failure = (&'static str, String);

fn answer(hearback: &Hearback, method: &Value, params: &Value) -> Result<Value, Failure> {
    match method.as_str().unwrap() {
        "launch" => {
            let words = params["command"].as_array().unwrap();
            let request = hearback::argv(words.iter().map(|word| word.as_str().unwrap()))
                .map_err(|error| ("usage", error.to_string()))?;
            let request = request.label(params["label"].as_str().unwrap()).notify(NotifyPolicy::Never);
            let request = match hearback::current_session().unwrap() {
                Some(session) => request.session(session),
                None => request,
            };
            let launched = hearback.launch(&request).map_err(|error| match &error {
                LaunchError::Denied(_) => ("denied", error.to_string()),
                _ => ("not_started", error.to_string()),
            })?;
            Ok(json!({ "id": launched.id() }))
        }
        "show" => Ok(json!(find(hearback, &params["job"])?)),
        "wait" => {
            let mut jobs = Vec::new();
            for job in params["jobs"].as_array().unwrap() {
                let view = find(hearback, job)?;
                jobs.push(hearback.wait(&view.id).map_err(|error| ("failed", error.to_string()))?.view);
            }
            Ok(json!({ "jobs": jobs }))
        }
        other => panic!("the method `{other}` is not known"),
    }
}

fn find(hearback: &Hearback, job: &Value) -> Result<JobView, Failure> {
    let found = hearback.find(job.as_str().unwrap(), &Scope::current().unwrap());
    let id = found.map_err(|error| match &error {
        FindError::NotFound(_) | FindError::TooShort(_) => ("unknown_job", error.to_string()),
        _ => ("store", error.to_string()),
    })?;
    Ok(hearback.job(&id).unwrap().expect("it was found").view)
}
