//! Launches many jobs at once through the library, from many threads of one process.
//!
//! `swarm SUPERVISOR THREADS JOBS EXIT-WITH`: prints `ID CODE` for every job when all are launched, with
//! the code that the job has to exit with.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hearback::{Hearback, Options};

fn main() {
    let mut args = std::env::args_os().skip(1);
    let mut next = || args.next().expect("usage: swarm SUPERVISOR THREADS JOBS EXIT-WITH");
    let supervisor = next();
    let mut number = || next().to_str().and_then(|text| text.parse::<u32>().ok()).expect("a number");
    let (threads, jobs) = (number(), number());
    let program = next();
    let options = Options::default().supervisor(supervisor);
    let hearback = Hearback::open(options).expect("the store opens");
    let (taken, told) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let n = taken.fetch_add(1, Ordering::Relaxed);
                    if n >= jobs {
                        return;
                    }
                    let code = n % 256;
                    let argv = [program.clone(), code.to_string().into()];
                    let request = hearback::argv(argv).expect("there is a working directory");
                    let launched = hearback.launch(&request).expect("it is launched");
                    told.lock().expect("no thread panicked").push(format!("{} {code}", launched.id()));
                }
            });
        }
    });
    println!("{}", told.into_inner().expect("no thread panicked").join("\n"));
}
