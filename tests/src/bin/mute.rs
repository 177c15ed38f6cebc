//! `mute FOLDER WITNESS`: mounts a file system that never answers (Linux, for tests with private mounts).
//!
//! A process that asks it anything waits, and cannot be killed: it sleeps uninterruptibly once its question was read.
//! Each question is a line `<opcode> <pid>` of the witness; a look-up is a 1. When this program ends, by a signal or
//! after 60 s, the kernel gives up on it, and the waiting processes get an error.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    fuse::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("mute: only for Linux");
    ExitCode::from(2)
}

#[cfg(target_os = "linux")]
mod fuse {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::process::{self, ExitCode};
    use std::time::Duration;
    use std::{env, thread};

    use hearback_tests::witness;
    use nix::mount::{MsFlags, mount};

    const INIT: u32 = 26;
    /// As much as the kernel insists on being able to ask at once, and more.
    const QUESTION_MAX: usize = 256 * 1024;

    pub(super) fn main() -> ExitCode {
        let args: Vec<_> = env::args_os().skip(1).collect();
        let [folder, seen] = args.as_slice() else {
            eprintln!("usage: mute FOLDER WITNESS");
            return ExitCode::from(2);
        };
        thread::spawn(|| {
            thread::sleep(Duration::from_secs(60));
            process::exit(0);
        });
        let mut device = fs_err::OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        mount(Some("mute"), folder.as_os_str(), Some("fuse"), MsFlags::empty(), Some(options.as_str()))
            .unwrap();
        let mut question = vec![0; QUESTION_MAX];
        // Unmounted, or aborted.
        while let Ok(length) = device.read(&mut question) {
            let word = |at: usize| u32::from_ne_bytes(question[at..at + 4].try_into().unwrap());
            let (opcode, pid) = (word(4), word(32));
            assert!(length >= 40, "a question has a header");
            if opcode == INIT {
                device.write_all(&welcome(&question[8..16])).unwrap();
            }
            witness(seen, format_args!("{opcode} {pid}"));
        }
        ExitCode::SUCCESS
    }

    /// The answer to the first question: which version is spoken, and how much may be said at once.
    fn welcome(unique: &[u8]) -> Vec<u8> {
        let (version, minor, max_write) = (7_u32, 31_u32, 4096_u32);
        let words = [version, minor, 0, 0, 0, max_write, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let length = 16 + 4 * u32::try_from(words.len()).unwrap();
        let mut answer = Vec::new();
        answer.extend(length.to_ne_bytes());
        answer.extend(0_i32.to_ne_bytes());
        answer.extend(unique);
        words.iter().for_each(|word| answer.extend(word.to_ne_bytes()));
        answer
    }
}
