//! The monitor as a service: the file that describes it, and the commands of the service manager. Only text, the same
//! on every system.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The exit code of a monitor that its service manager must start again.
pub const RESTART_EXIT_CODE: u32 = 85;

/// How long a manager waits before it restarts a monitor that crashed, in seconds.
const PAUSE_SECONDS: u32 = 2;

/// The arguments of the monitor: `--service` leaves restarts to the manager.
const ARGUMENTS: [&str; 3] = ["monitor", "run", "--service"];

/// The program that starts services at login, and restarts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ServiceManager {
    /// The user's own systemd.
    Systemd,
    /// launchd of macOS.
    Launchd,
    /// The Task Scheduler of Windows.
    TaskScheduler,
}

/// A monitor as a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The name of the service: letters, digits and hyphens.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its store, unless that is the default.
    pub home: Option<String>,
    /// The PATH on which it finds the programs of sinks. A manager sets almost no variables.
    pub path: Option<String>,
    /// The user that runs it: a number, on Windows a name.
    pub user: String,
}

/// A command of a service manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whether it must succeed. Stopping a service that does not run may fail.
    pub needed: bool,
}

/// Why a service cannot be described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// A value has control characters.
    #[error("`{}` cannot be written to a service description: it has control characters", .0.escape_debug())]
    Control(String),
}

impl ServiceManager {
    /// Its description for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Systemd => "a user unit of systemd",
            Self::Launchd => "an agent of launchd",
            Self::TaskScheduler => "a task of the Task Scheduler",
        }
    }

    /// The program that controls it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Systemd => "systemctl",
            Self::Launchd => "launchctl",
            Self::TaskScheduler => "schtasks",
        }
    }

    /// The name of the file that describes a service.
    pub fn file_name(self, service: &Service) -> String {
        let extension = match self {
            Self::Systemd => "service",
            Self::Launchd => "plist",
            Self::TaskScheduler => "xml",
        };
        format!("{}.{extension}", service.name)
    }

    /// The content of that file.
    ///
    /// # Errors
    ///
    /// When a value has control characters.
    pub fn text(self, service: &Service) -> Result<String, ServiceError> {
        let texts =
            [Some(&service.program), service.home.as_ref(), service.path.as_ref(), Some(&service.user)];
        if let Some(bad) = texts.into_iter().flatten().find(|text| text.chars().any(char::is_control)) {
            return Err(ServiceError::Control(bad.clone()));
        }
        Ok(match self {
            Self::Systemd => systemd(service),
            Self::Launchd => launchd(service),
            Self::TaskScheduler => task(service),
        })
    }

    /// Encodes that text for the file: `schtasks` wants UTF-16.
    pub fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Systemd | Self::Launchd => text.as_bytes().to_vec(),
            Self::TaskScheduler => {
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                units.flat_map(u16::to_le_bytes).collect()
            }
        }
    }

    /// The commands to run once the file is written. `is_new`: the file has changed, so a running monitor must be
    /// restarted.
    pub fn install(self, service: &Service, file: &str, is_new: bool) -> Vec<Order> {
        let (name, unit) = (&*service.name, self.file_name(service));
        let domain = format!("gui/{}", service.user);
        match self {
            Self::Systemd => vec![
                needed(["systemctl", "--user", "daemon-reload"]),
                needed(["systemctl", "--user", "enable", &unit]),
                needed(["systemctl", "--user", if is_new { "restart" } else { "start" }, &unit]),
            ],
            // launchd cannot load an agent twice.
            Self::Launchd if is_new => vec![
                optional(["launchctl", "bootout", &format!("{domain}/{name}")]),
                needed(["launchctl", "bootstrap", &domain, file]),
            ],
            Self::Launchd => vec![optional(["launchctl", "bootstrap", &domain, file])],
            Self::TaskScheduler => vec![
                needed(["schtasks", "/create", "/tn", name, "/xml", file, "/f"]),
                needed(["schtasks", "/run", "/tn", name]),
            ],
        }
    }

    /// The commands to run before the file is removed, and after.
    pub fn remove(self, service: &Service) -> (Vec<Order>, Vec<Order>) {
        let (name, unit) = (&*service.name, self.file_name(service));
        match self {
            Self::Systemd => (
                vec![needed(["systemctl", "--user", "disable", "--now", &unit])],
                vec![needed(["systemctl", "--user", "daemon-reload"])],
            ),
            Self::Launchd => {
                (vec![optional(["launchctl", "bootout", &format!("gui/{}/{name}", service.user)])], vec![])
            }
            Self::TaskScheduler => (
                vec![
                    optional(["schtasks", "/end", "/tn", name]),
                    needed(["schtasks", "/delete", "/tn", name, "/f"]),
                ],
                vec![],
            ),
        }
    }
}

fn needed<const N: usize>(argv: [&str; N]) -> Order {
    Order { argv: argv.map(str::to_owned).to_vec(), needed: true }
}

fn optional<const N: usize>(argv: [&str; N]) -> Order {
    Order { needed: false, ..needed(argv) }
}

impl Service {
    /// The variables that it needs, each with its value.
    fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [("HEARBACK_HOME", &self.home), ("PATH", &self.path)];
        named.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// A unit for the user's systemd. Jobs and other processes of the monitor survive when it stops.
fn systemd(service: &Service) -> String {
    let mut environment = String::new();
    for (name, value) in service.variables() {
        let _ = writeln!(environment, "Environment={}", systemd_word(&format!("{name}={value}")));
    }
    let arguments = ARGUMENTS.join(" ");
    // systemd accepts no quotes in the path of the program, even escaped ones, so a shell runs it. Only then `$` begins
    // a variable, and must be doubled.
    let command = match service.program.contains(['"', '\'', '\\']) {
        false => systemd_word(&service.program),
        true => {
            let program = systemd_word(&service.program).replace('$', "$$");
            format!(r#"/bin/sh -c "exec \"$$0\" \"$$@\"" {program}"#)
        }
    };
    format!(
        "# Written by `hearback monitor install`; `hearback monitor install --remove` removes it.\n\
         [Unit]\n\
         Description=hearback monitor\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         ExecStart={command} {arguments}\n\
         {environment}\
         Restart=on-failure\n\
         RestartSec={PAUSE_SECONDS}\n\
         RestartForceExitStatus={RESTART_EXIT_CODE}\n\
         SuccessExitStatus={RESTART_EXIT_CODE}\n\
         KillMode=process\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

fn systemd_word(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%"))
}

/// An agent for launchd, which restarts it until it exits with success.
fn launchd(service: &Service) -> String {
    let mut arguments = String::new();
    for word in [&*service.program].into_iter().chain(ARGUMENTS) {
        let _ = writeln!(arguments, "    <string>{}</string>", xml(word));
    }
    let mut environment = String::new();
    for (name, value) in service.variables() {
        let _ = writeln!(environment, "    <key>{name}</key>\n    <string>{}</string>", xml(value));
    }
    let name = &service.name;
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- Written by `hearback monitor install`, which can also remove it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{name}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{environment}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>{PAUSE_SECONDS}</integer>
  <key>AbandonProcessGroup</key>
  <true/>
</dict>
</plist>
"#
    )
}

/// A task that starts at the user's logon. The Task Scheduler does not restart a program that has exited, and sets no
/// variables; so the action is a PowerShell loop, and every Windows has PowerShell. conhost runs it without a window:
/// Windows Terminal, if it is the default, would show one even with a hidden window style.
fn task(service: &Service) -> String {
    let arguments = ARGUMENTS.join(" ");
    let mut script = String::new();
    for (name, value) in service.variables().filter(|(name, _)| *name != "PATH") {
        let _ = write!(script, "$env:{name} = {}; ", powershell_text(value));
    }
    let _ = write!(
        script,
        "do {{ $LASTEXITCODE = $null; & {} {arguments}; \
         if ($LASTEXITCODE -notin 0, {RESTART_EXIT_CODE}) {{ Start-Sleep {PAUSE_SECONDS} }} \
         }} while ($LASTEXITCODE -ne 0)",
        powershell_text(&service.program)
    );
    let (script, user) = (xml(&script), xml(&service.user));
    format!(
        r#"<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>hearback monitor; `hearback monitor install --remove` removes it.</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <UserId>{user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>5</Priority>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>--headless powershell.exe -NoProfile -NonInteractive -Command "{script}"</Arguments>
    </Exec>
  </Actions>
</Task>
"#
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text that reaches PowerShell unchanged: the Task Scheduler replaces `%NAME%` and `$(NAME)`, and the command line is
/// split at its quotes on the way. PowerShell treats curly quotes like straight ones.
fn powershell_text(text: &str) -> String {
    let mut quoted = String::new();
    for c in text.chars() {
        match c {
            '\'' | '"' | '%' | '$' | '\u{2018}'..='\u{201f}' => {
                let _ = write!(quoted, "'+[char]{}+'", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    let whole = format!("'{quoted}'");
    if whole.contains("[char]") { format!("({whole})") } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGERS: [ServiceManager; 3] =
        [ServiceManager::Systemd, ServiceManager::Launchd, ServiceManager::TaskScheduler];

    fn plain() -> Service {
        Service {
            name: "hearback-monitor".into(),
            program: "/home/you/.local/bin/hearback".into(),
            home: None,
            path: Some("/home/you/.local/bin:/usr/bin".into()),
            user: "1000".into(),
        }
    }

    fn odd() -> Service {
        Service {
            name: "hearback-monitor-0123abcd".into(),
            program: r#"/opt/it's "50%" of $HOME & <ünï>/hear back"#.into(),
            home: Some(r"C:\st%TEMP%ore $(Arg0)\".into()),
            path: None,
            user: r"AT&T\you".into(),
        }
    }

    #[test]
    fn a_monitor_is_described_to_each_manager() {
        insta::assert_snapshot!("systemd", ServiceManager::Systemd.text(&plain()).unwrap());
        insta::assert_snapshot!("launchd", ServiceManager::Launchd.text(&plain()).unwrap());
        let windows = Service {
            program: r"C:\Program Files\hearback\hearback.exe".into(),
            user: r"PC\you".into(),
            path: None,
            ..plain()
        };
        insta::assert_snapshot!("task", ServiceManager::TaskScheduler.text(&windows).unwrap());
    }

    #[test]
    fn signs_that_mean_something_to_a_manager_mean_themselves() {
        insta::assert_snapshot!("systemd_odd", ServiceManager::Systemd.text(&odd()).unwrap());
        insta::assert_snapshot!("launchd_odd", ServiceManager::Launchd.text(&odd()).unwrap());
        insta::assert_snapshot!("task_odd", ServiceManager::TaskScheduler.text(&odd()).unwrap());
        // What systemd takes in the path of a program is written as it is, but for what stands for something else.
        let signs = Service { program: "/opt/a b/100%$x/ü".into(), ..plain() };
        let text = ServiceManager::Systemd.text(&signs).unwrap();
        assert!(text.contains("\nExecStart=\"/opt/a b/100%%$x/ü\" monitor run --service\n"), "{text}");
    }

    #[test]
    fn what_no_file_could_say_is_refused() {
        let broken = Service { home: Some("/a\nExecStartPre=/bin/false".into()), ..plain() };
        for manager in MANAGERS {
            let error = manager.text(&broken).unwrap_err().to_string();
            assert!(error.contains(r"/a\nExec"), "{error}");
        }
    }

    #[test]
    fn a_manager_is_told_again_only_what_is_new() {
        let orders = |orders: Vec<Order>| -> Vec<String> {
            orders
                .into_iter()
                .map(|order| {
                    format!("{}{}", order.argv.join(" "), if order.needed { "" } else { " (or not)" })
                })
                .collect()
        };
        let mut told = String::new();
        for manager in MANAGERS {
            let file = manager.file_name(&plain());
            let (before, after) = manager.remove(&plain());
            for (what, said) in [
                ("new", manager.install(&plain(), &file, true)),
                ("again", manager.install(&plain(), &file, false)),
                ("remove", before),
                ("removed", after),
            ] {
                let _ = writeln!(told, "{what}: {}", orders(said).join("; "));
            }
        }
        insta::assert_snapshot!("orders", told);
    }

    #[test]
    fn a_task_is_written_in_the_encoding_that_it_names() {
        let bytes = ServiceManager::TaskScheduler.encode("<ü");
        assert_eq!(bytes, [0xff, 0xfe, b'<', 0, 0xfc, 0]);
        assert_eq!(ServiceManager::Systemd.encode("ü"), "ü".as_bytes());
    }
}
