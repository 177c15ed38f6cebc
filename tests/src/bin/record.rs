//! `record ARG…`: appends its arguments to the file that `RECORD` names, as a line of JSON with its own name first, and
//! exits with `RECORD_CODE`, complaining if that is not 0. Stands in for a program by being called like it.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::env;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words: Vec<_> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words[0] = Path::new(&words[0]).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let witness = env::var_os("RECORD").expect("RECORD names a file");
    hearback_tests::witness(witness, serde_json::to_string(&words).expect("words can be written"));
    let code = env::var("RECORD_CODE").ok().and_then(|code| code.parse().ok()).unwrap_or(0);
    if code != 0 {
        eprintln!("{} has other plans", words[0]);
    }
    ExitCode::from(code)
}
