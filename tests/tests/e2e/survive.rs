//! A job survives what its record claims, and what it does not survive is not claimed.
#![cfg(any(target_os = "linux", windows))]

use std::path::Path;
use std::process::{Command, Stdio};

use fs_err as fs;
use hearback_tests::{KillOnDrop, Terminal, World, alive, bin, eventually, lines};
use serde_json::json;

/// A program that launches a job, writes down its id, and stays where it is.
fn launch_and_stay(world: &World, before: &[&Path], told: &Path, go: &Path, witness: &Path) -> Command {
    let (act, hearback, hold, never) = (bin("act"), bin("hearback"), bin("hold"), world.scratch("never"));
    let words = before.iter().copied().chain([&*act]).collect::<Vec<_>>();
    let mut command = Command::new(words[0]);
    world.settle(&mut command);
    command.args(&words[1..]).arg("run").arg(told).arg(hearback).args(["launch", "--"]);
    command.arg(hold).arg(go).args(["--code", "4", ";"]);
    command.arg("witness").arg(witness).arg("hold").arg(never);
    command.stdout(Stdio::null());
    command
}

/// Starts it as the head of what is nearest to a group of processes: on Windows, whatever confines it and lets a
/// process leave that asks, such as the Job Object of a terminal.
fn lead(world: &World, told: &Path, go: &Path, witness: &Path) -> KillOnDrop {
    #[cfg(unix)]
    let mut command = launch_and_stay(world, &[], told, go, witness);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(windows)]
    let mut command = launch_and_stay(world, &[&bin("confine"), Path::new("--lets-go")], told, go, witness);
    KillOnDrop(command.spawn().unwrap())
}

/// Kills a group with every process in it. A Job Object ends with the process that holds it.
fn end_group(leader: &mut KillOnDrop) {
    #[cfg(unix)]
    nix::sys::signal::killpg(
        nix::unistd::Pid::from_raw(leader.0.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    #[cfg(windows)]
    leader.0.kill().unwrap();
    leader.0.wait().unwrap();
}

#[test]
fn scenario_82_a_job_survives_all_that_its_record_claims() {
    let world = World::new();
    let go = world.scratch("go");
    let launched =
        world.json(["launch", "--json", "--", bin("hold").to_str().unwrap(), go.to_str().unwrap()]);
    let claims = launched["survives"].as_array().unwrap().clone();
    assert!(!claims.is_empty(), "{launched}");
    for claim in &claims {
        let claim = claim.as_str().unwrap();
        let (go, told) = (world.scratch(format!("{claim}-go")), world.scratch(format!("{claim}-told")));
        let witness = world.scratch(format!("{claim}-witness"));
        let stayed = || {
            let line = eventually("the launcher stays", || lines(&witness).into_iter().next());
            line.strip_prefix("start ").unwrap().parse::<u32>().unwrap()
        };
        let launcher = match claim {
            "parent" => {
                let mut parent =
                    KillOnDrop(launch_and_stay(&world, &[], &told, &go, &witness).spawn().unwrap());
                let launcher = stayed();
                parent.0.kill().unwrap();
                parent.0.wait().unwrap();
                launcher
            }
            "terminal" => {
                let terminal = Terminal::run(&launch_and_stay(&world, &[], &told, &go, &witness));
                let launcher = stayed();
                terminal.close();
                launcher
            }
            "process_group" => {
                let mut leader = lead(&world, &told, &go, &witness);
                let launcher = stayed();
                end_group(&mut leader);
                launcher
            }
            other => panic!("`{other}` is claimed, and nothing shows it"),
        };
        eventually("its launcher is gone", || (!alive(launcher)).then_some(()));
        let id = lines(&told).remove(0);
        assert_eq!(world.show(&id)["survives"], json!(claims), "every job claims the same");
        assert_eq!(world.show(&id)["state"], "running", "after the end of its {claim}");
        fs::write(&go, "").unwrap();
        assert_eq!(world.run(["wait", &id]).code, Some(4), "after the end of its {claim}");
    }
    fs::write(go, "").unwrap();
}

// Not on Windows: units of systemd, which are the kernel's groups of processes.
#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    use std::path::PathBuf;

    use hearback_tests::{Mount, run, with_private_mounts};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::Value;

    /// The kernel's groups of processes, mounted until the test is done with them.
    ///
    /// Outside of any world, because a world is removed with all that is in it, and this is the machine's.
    struct Groups(PathBuf);

    impl Groups {
        /// Mounts them in the private mounts of a test; nothing where that is not permitted.
        fn mount() -> Option<Groups> {
            let groups =
                Groups(std::env::temp_dir().join(format!("hearback-test-groups-{}", std::process::id())));
            fs::create_dir(&groups.0).unwrap();
            let mut mount = Command::new("mount");
            mount.args(["-t", "cgroup2", "cgroup2"]).arg(&groups.0);
            (run(mount).code == Some(0)).then_some(groups)
        }
    }

    impl Drop for Groups {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    /// A group of processes as a service manager makes one for each unit, removed at the end.
    struct Unit(PathBuf);

    impl Unit {
        /// Makes one of this kind, `service` or `scope`, in the hierarchy that is mounted at `groups`.
        fn new(groups: &Path, kind: &str) -> Unit {
            Unit::named(groups, format!("hearback-test-{}.{kind}", std::process::id()))
        }

        fn named(groups: &Path, name: String) -> Unit {
            let unit = Unit(groups.join(name));
            fs::create_dir(&unit.0).unwrap();
            unit
        }

        fn name(&self) -> &str {
            self.0.file_name().unwrap().to_str().unwrap()
        }

        /// hearback with these arguments, started by a member of the unit.
        fn command(&self, world: &World, args: &[&str]) -> Command {
            let mut command = Command::new("sh");
            world.settle(&mut command);
            command.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(self.0.join("cgroup.procs"));
            command.arg(bin("hearback")).args(args);
            command
        }

        /// Ends everything in it until there is nothing, as stopping the unit does.
        fn stop(&self) {
            eventually("the unit is empty", || {
                let members = lines(self.0.join("cgroup.procs"));
                for member in &members {
                    // Only our own job ever entered it; a process that is gone by now needs no signal.
                    let _ = kill(Pid::from_raw(member.parse().unwrap()), Signal::SIGKILL);
                }
                members.is_empty().then_some(())
            });
        }
    }

    impl Drop for Unit {
        fn drop(&mut self) {
            self.stop();
            // The kernel lets go of the last member a moment after it has ended.
            eventually("the unit is removed", || std::fs::remove_dir(&self.0).is_ok().then_some(()));
        }
    }

    #[test]
    fn scenario_82_a_job_in_a_unit_ends_with_it_and_says_so_before() {
        with_private_mounts(|| {
            let world = World::new();
            let Some(groups) = Groups::mount() else {
                hearback_tests::skipped("no groups of processes can be made here");
                return;
            };
            let (go, hold) = (world.scratch("go"), bin("hold"));
            let launch =
                ["launch", "--json", "--session", "s", "--", hold.to_str().unwrap(), go.to_str().unwrap()];
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();

            let service = Unit::new(&groups.0, "service");
            let launched = run(service.command(&world, &launch));
            let bound = json(&launched.ok());
            assert_eq!(bound["survives"], json!(["terminal", "process_group"]), "{bound}");
            assert_eq!(bound["bound_to"], service.name(), "{bound}");
            let told = format!("warning: the job runs inside {}, and ends when that stops", service.name());
            assert!(launched.stderr.contains(&told), "{launched:?}");
            let id = bound["id"].as_str().unwrap();
            assert_eq!(world.show(id)["bound_to"], service.name());
            assert!(world.run(["show", id]).ok().contains(&format!("ends with  {}", service.name())));
            let quiet = run(service
                .command(&world, &["launch", "--quiet", "--", hold.to_str().unwrap(), go.to_str().unwrap()]));
            assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");

            // A scope has no main process with which it would end, and a job can be given one of its own.
            let scope = Unit::new(&groups.0, "scope");
            let launched = run(scope.command(&world, &launch));
            let free = json(&launched.ok());
            assert_eq!(free["survives"], json!(["parent", "terminal", "process_group"]), "{free}");
            assert_eq!(
                (free["bound_to"].as_str(), launched.stderr.as_str()),
                (Some(scope.name()), ""),
                "{free}"
            );

            // The service manager restarts the host.
            let target = u32::try_from(bound["pid"].as_u64().unwrap()).unwrap();
            service.stop();
            assert!(!alive(target));
            assert_eq!(world.show(id)["outcome"], json!({"kind": "lost", "reason": "supervisor_died"}));
            let id = free["id"].as_str().unwrap();
            assert_eq!(world.show(id)["state"], "running", "outside the service, the job lives on");
            fs::write(&go, "").unwrap();
            assert_eq!(world.run(["wait", id]).code, Some(0));
        });
    }

    #[test]
    fn doctor_names_the_unit_and_the_way_out_of_it() {
        with_private_mounts(|| {
            let world = World::new();
            let Some(groups) = Groups::mount() else {
                hearback_tests::skipped("no groups of processes can be made here");
                return;
            };
            let told = |unit: &Unit, name: &str| -> Value {
                let told: Value =
                    serde_json::from_str(&run(unit.command(&world, &["doctor", "--json"])).ok()).unwrap();
                let check = told["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
                check.unwrap_or_else(|| panic!("no `{name}` in {told}")).clone()
            };
            let service = Unit::new(&groups.0, "service");
            let check = told(&service, "survives_service");
            assert_eq!(check["level"], "warn");
            assert!(check["message"].as_str().unwrap().contains(service.name()), "{check}");
            assert!(check["tip"].as_str().unwrap().contains("systemd-run --scope"), "{check}");

            // A machine that systemd runs, with a login manager that ends what is left of a login.
            let _run = Mount::new("tmpfs", "mode=755", "/run");
            let _etc = Mount::new("tmpfs", "mode=755", "/etc/systemd");
            fs::create_dir_all("/run/systemd/system").unwrap();
            let set = |text: &str| {
                fs::create_dir_all("/etc/systemd/logind.conf.d").unwrap();
                fs::write("/etc/systemd/logind.conf.d/50-test.conf", text).unwrap();
            };
            let login = Unit::named(&groups.0, format!("session-{}.scope", std::process::id()));
            assert_eq!(told(&login, "survives_service")["level"], "ok");
            assert_eq!(told(&login, "logout")["level"], "ok");
            set("[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n");
            let check = told(&login, "logout");
            assert_eq!(check["level"], "warn");
            assert!(check["tip"].as_str().unwrap().contains("loginctl enable-linger"), "{check}");
            set("[Login]\nKillUserProcesses=no\n");
            assert_eq!(told(&login, "logout")["level"], "ok");
        });
    }
}
