//! `hearback top` on a real screen. Without tmux, only what it says without a terminal is tried.

use hearback_tests::{World, args};

#[test]
fn without_a_terminal_top_says_what_to_use_instead() {
    let world = World::new();
    for words in [&["top"][..], &["top", "--all-sessions"]] {
        let ran = world.run(words);
        ran.refuses(2)
            .says("`top` needs a terminal")
            .says("hearback list --watch")
            .says("hearback list --json");
    }
    let ran = world.run(args!["top", "--json"]);
    assert!(ran.exits(2).stdout.contains("\"kind\":\"usage\""), "{ran:?}");
    assert!(!world.home().join("jobs").exists() || world.run(["list"]).ok().is_empty());
}

// Not on Windows: tmux.
#[cfg(target_os = "linux")]
mod on_a_screen {
    use hearback_tests::{Outbox, Tmux, World, args, bin, eventually, run};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use std::process::Command;

    fn top() -> String {
        format!("{} top", bin("hearback").display())
    }

    /// A job that prints a line, and another one when the gate is opened.
    fn grows(world: &World, label: &str) -> String {
        world.launch(args![
            "--label",
            label,
            "--",
            bin("act"),
            "print",
            "the first line",
            "hold",
            world.scratch("go"),
            "print",
            "the second line",
            "hold",
            world.scratch("never")
        ])
    }

    fn ended(world: &World, label: &str, code: &str) -> String {
        let id =
            world.launch(args!["--label", label, "--", bin("exit-with"), code, "--print", "its own words"]);
        world.run(["wait", &id]);
        id
    }

    /// The row of a job, without its marks of selection.
    fn row<'a>(screen: &'a str, id: &str) -> Option<&'a str> {
        screen.lines().find(|line| !line.starts_with("──") && line.contains(&id[9..]))
    }

    #[track_caller]
    fn assert_fits(screen: &str, columns: usize) {
        let widest = screen.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns), "{screen}");
    }

    /// The shell is back, on its own screen, with its own modes.
    #[track_caller]
    fn assert_clean(tmux: &Tmux<'_>) {
        eventually("the shell's screen is back", || (tmux.says("#{alternate_on}") == "0").then_some(()));
        tmux.until("before it");
        tmux.command("stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo -e isig | sort | paste -sd+");
        let screen = tmux.until("echo+icanon+isig\n");
        assert_eq!(tmux.says("#{cursor_flag}"), "1", "the cursor is shown");
        assert!(!screen.contains("Enter output"), "nothing of the picture is left: {screen}");
    }

    #[test]
    fn jobs_and_a_growing_output_are_shown_and_a_kill_asks_first() {
        let world = World::new();
        let Some(tmux) = Tmux::new(&world, 80, 24) else { return };
        let (held, failed) = (grows(&world, "held"), ended(&world, "broken", "3"));
        let done = ended(&world, "fine", "0");
        tmux.command("echo before it");
        tmux.command(&top());
        let screen = tmux.until("the first line");
        assert!(screen.starts_with("hearback: 1 running, 2 ended\n"), "{screen}");
        let places: Vec<_> =
            [&held, &done, &failed].map(|id| screen.find(row(&screen, id).unwrap())).to_vec();
        assert!(places.is_sorted(), "what runs comes first, then the newest end: {screen}");
        assert!(!screen.contains("the second line"), "{screen}");
        fs_err::write(world.scratch("go"), "").unwrap();
        tmux.until("the second line");
        // A new job is seen without a key.
        let newest = ended(&world, "newest", "0");
        tmux.until(&newest[9..]);

        tmux.press("Down");
        let screen = tmux.until(&format!("── {}", &newest[9..]));
        assert!(screen.contains("its own words") && !screen.contains("the first line"), "{screen}");
        tmux.press("k");
        tmux.until("has ended");
        tmux.press("Home");
        tmux.until(&format!("── {}", &held[9..]));
        tmux.press("k");
        tmux.until(&format!("kill {} and all it started? y/n", &held[9..]));
        tmux.press("n");
        tmux.until_gone("y/n");
        assert_eq!(world.show(&held)["state"], "running", "a no kills nothing");
        tmux.press("k");
        tmux.until("y/n");
        tmux.press("y");
        tmux.until("0 running, 4 ended");
        assert_eq!(world.show(&held)["outcome"]["kind"], "killed");
        let screen = tmux.until(&format!("job {} killed", &held[9..]));
        assert!(row(&screen, &held).unwrap().contains("killed"), "{screen}");
        tmux.press("q");
        assert_clean(&tmux);
    }

    #[test]
    fn jobs_are_filtered_help_is_shown_and_40_columns_are_enough() {
        let world = World::new();
        let Some(tmux) = Tmux::new(&world, 80, 24) else { return };
        let (held, failed) = (grows(&world, "日本語 nightly"), ended(&world, "broken", "3"));
        let hostile = ended(&world, "\u{1b}[2Jhostile\u{1b}]0;title\u{7}", "0");
        tmux.command("echo before it");
        tmux.command(&top());
        tmux.until("the first line");
        tmux.type_text("/BROKEN exit");
        let screen = tmux.until("/BROKEN exit");
        assert!(row(&screen, &failed).is_some() && row(&screen, &held).is_none(), "{screen}");
        tmux.press("Enter");
        let screen = tmux.until("1 match `BROKEN exit`");
        assert!(screen.contains("its own words"), "the first that is left is selected: {screen}");
        // What is pasted is no key: `k` and `y` would kill.
        tmux.press("Escape");
        tmux.until(&held[9..]);
        tmux.press("Home");
        tmux.paste("ky");
        tmux.type_text("/q?!");
        tmux.until("no jobs match");
        tmux.press("Escape");
        tmux.until("the first line");
        assert_eq!(world.show(&held)["state"], "running");
        for (filter, found) in [("nightly", &held), ("running", &held), (&hostile[9..], &hostile)] {
            tmux.type_text(&format!("/{filter}"));
            tmux.press("Enter");
            let screen = tmux.until(&format!("1 match `{filter}`"));
            assert!(row(&screen, found).is_some(), "{filter}: {screen}");
            tmux.press("Escape");
            tmux.until_gone("match `");
        }

        tmux.resize(40, 15);
        let screen = tmux.until("q quit  ? help  / filter  Enter output\n");
        assert_fits(&screen, 40);
        for id in [&held, &failed, &hostile] {
            assert!(row(&screen, id).is_some(), "{screen}");
        }
        tmux.press("?");
        let screen = tmux.until("suspend");
        assert!(screen.contains("q        quit; the jobs continue"), "{screen}");
        assert_fits(&screen, 40);
        tmux.press("?");
        tmux.until(&held[9..]);
        tmux.press("Home");
        tmux.until("the first line");
        tmux.press("Enter");
        let screen = tmux.until_gone(&failed[9..]);
        assert!(screen.contains("the first line"), "the output has the screen: {screen}");
        tmux.resize(20, 4);
        tmux.until("q quit  ? help\n");
        tmux.resize(100, 30);
        tmux.until("m message");
        assert!(!tmux.says("#{pane_title}").contains("title"), "a label sets no title");
        tmux.press("C-c");
        assert_clean(&tmux);
    }

    #[test]
    fn jobs_that_are_not_on_the_screen_are_counted() {
        let world = World::new();
        for n in 1..=8 {
            ended(&world, &format!("job-{n}"), "0");
        }
        let Some(tmux) = Tmux::new(&world, 40, 14) else { return };
        tmux.command(&top());
        // Five rows: half of the screen, without the heading of the table.
        let screen = tmux.until("8 ended (3 below)");
        assert_fits(&screen, 40);
        for _ in 0..6 {
            tmux.press("Down");
        }
        tmux.until("8 ended (↑2 ↓1)");
        tmux.press("End");
        tmux.until("8 ended (3 above)");
        tmux.press("Home");
        tmux.type_text("/job-2");
        tmux.until_gone("below)");
        tmux.press("C-c");
    }

    #[test]
    fn a_dead_letter_is_retried() {
        let outbox = Outbox::with("attempts = 1\n", "", &["error"]);
        let world = &outbox.world;
        let Some(tmux) = Tmux::new(world, 80, 24) else { return };
        let id = world.launch(args!["--session", "s", "--sink", "fixture", "--", bin("exit-with"), "4"]);
        outbox.until(&id, &["dead_letter"]);
        tmux.command("echo before it");
        tmux.command(&format!("{} --session s", top()));
        let screen = tmux.until("follow-up: dead letter, sink `fixture`, 1 attempt");
        assert!(screen.starts_with("hearback: 0 running, 1 ended in session `s`\n"), "{screen}");
        assert!(row(&screen, &id).unwrap().contains("dead letter"), "{screen}");
        // The sink takes it from now on.
        outbox.tell("0");
        tmux.press("r");
        tmux.until("delivered");
        assert_eq!(world.show(&id)["follow_up"]["state"], "delivered");
        tmux.press("r");
        tmux.until("is no dead letter: delivered");
        tmux.press("q");
        assert_clean(&tmux);
    }

    #[test]
    fn an_answer_is_shown_and_read_and_a_session_gets_a_message() {
        let outbox = Outbox::pull();
        let world = &outbox.world;
        let Some(tmux) = Tmux::new(world, 80, 24) else { return };
        let words = args![
            "ask",
            "-s",
            "p",
            "--new",
            "--prompt",
            "x",
            "--",
            bin("act"),
            "answer",
            "Two are flaky.",
            "rest"
        ];
        let asked = world.run(words).ok();
        let held = grows(world, "held");
        tmux.command("echo before it");
        tmux.command(&top());
        tmux.until("the first line");
        world.run(["kill", &held]).ok();
        tmux.press("a");
        tmux.until("has no answer: `launch` started it");
        world.run(["kill", &asked]).ok();
        tmux.type_text(&format!("/{}", &asked[9..]));
        tmux.press("Enter");
        tmux.until("│ Two are flaky.");
        tmux.press("a");
        tmux.until("is marked as read");
        assert_eq!(world.show(&asked)["follow_up"]["state"], "read");
        // Without a sink there is no way to the session, and the line says so.
        tmux.press("m");
        tmux.until("to p:");
        tmux.type_text("hello q");
        tmux.until("to p: hello q");
        tmux.press("Enter");
        tmux.until("no sink");
        tmux.press("q");
        assert_clean(&tmux);
    }

    #[test]
    fn the_terminal_is_given_back_to_the_shell_by_ctrl_z_and_a_signal() {
        let world = World::new();
        let Some(tmux) = Tmux::new(&world, 80, 24) else { return };
        let held = grows(&world, "held");
        tmux.command("echo before it");
        tmux.command(&top());
        tmux.until("the first line");
        tmux.press("C-z");
        assert_clean(&tmux);
        tmux.command("fg");
        tmux.until("the first line");
        // It is as alive as before, and the keys are its own.
        fs_err::write(world.scratch("go"), "").unwrap();
        tmux.until("the second line");
        tmux.press("?");
        tmux.until("suspend");
        for signal in [Signal::SIGTERM, Signal::SIGHUP] {
            let pid = Pid::from_raw(tmux.foreground().try_into().unwrap());
            kill(pid, signal).unwrap();
            assert_clean(&tmux);
            tmux.command(&top());
            tmux.until("the second line");
        }
        tmux.press("q");
        assert_clean(&tmux);
        assert_eq!(world.show(&held)["state"], "running");
    }

    /// A clock that cannot be read makes Rust panic, in every thread that waits.
    const NO_CLOCK: &str = r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        int clock_gettime(clockid_t which, struct timespec *now)
        {
            if (access("FILE", F_OK) == 0) {
                errno = EINVAL;
                return -1;
            }
            return (int)syscall(SYS_clock_gettime, which, now);
        }
    "#;

    #[test]
    fn the_terminal_is_given_back_after_a_panic() {
        let world = World::new();
        let Some(tmux) = Tmux::new(&world, 80, 24) else { return };
        grows(&world, "held");
        let (source, library, broken) =
            (world.scratch("clock.c"), world.scratch("clock.so"), world.scratch("broken"));
        fs_err::write(&source, NO_CLOCK.replace("FILE", broken.to_str().unwrap())).unwrap();
        let mut cc = Command::new("cc");
        cc.args(args!["-shared", "-fPIC", "-o", &library, source]);
        run(cc).ok();
        tmux.command("echo before it");
        tmux.command(&format!("RUST_BACKTRACE=0 LD_PRELOAD={} {}; echo code $?", library.display(), top()));
        tmux.until("the first line");
        fs_err::write(&broken, "").unwrap();
        let screen = tmux.until("code 101");
        assert!(screen.contains("panicked at"), "the message is seen: {screen}");
        assert_clean(&tmux);
    }

    /// How often the threads of a process have gone to sleep by themselves.
    fn sleeps(pid: u32) -> u64 {
        let threads = fs_err::read_dir(format!("/proc/{pid}/task")).unwrap();
        let counts = threads.map(|thread| {
            let status = fs_err::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let count =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            count.trim().parse::<u64>().unwrap()
        });
        counts.sum()
    }

    #[test]
    fn an_idle_top_wakes_up_for_the_clock_alone() {
        const WATCHED: u64 = 4;
        let world = World::new();
        let Some(tmux) = Tmux::new(&world, 80, 24) else { return };
        grows(&world, "held");
        tmux.command(&top());
        tmux.until("the first line");
        let pid = tmux.foreground();
        let before = sleeps(pid);
        // That little happens can only be seen by watching for a while.
        std::thread::sleep(std::time::Duration::from_secs(WATCHED));
        let times = sleeps(pid) - before;
        // One thread draws, and one sees whether another job is selected.
        assert!(times <= 4 * WATCHED, "{times} times in {WATCHED} s");
    }
}
