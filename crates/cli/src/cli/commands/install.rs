//! `hearback monitor install`

use std::path::{Path, PathBuf};
use std::time::Duration;

use hearback_core::message::{clean_line, command_text};
use hearback_core::port::process::{BoundedRun, ProcessControl};
use hearback_core::service::{Order, Service, ServiceManager};
use hearback_core::{CommandLine, DOCUMENT_FORMAT, Exit, JobId};
use hearback_platform::{Native, ServicePlace};

use crate::cli::args::InstallArgs;
use crate::cli::documents::{InstallDocument, OrderDocument};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::{Hearback, SettingSource, home};

/// How long a service manager may take to answer.
const WITHIN: Duration = Duration::from_secs(60);
/// How much is kept of what it says.
const SAID_MAX: usize = 16 * 1024;
const NAME: &str = "hearback-monitor";

pub(crate) fn run(hearback: &Hearback, args: &InstallArgs, output: &Output) -> Result<u32, CliError> {
    let plan = Plan::new(hearback)?;
    if args.print {
        return plan.print(output);
    }
    if Native::default().find_program(plan.manager.program()).is_none() {
        return Err(CliError::NoManagerProgram(plan.manager.program()));
    }
    if !args.remove {
        warn_of_what_is_not_kept(hearback, output);
        return plan.install(hearback, args.yes, output);
    }
    plan.remove(hearback, args.yes, output)
}

/// What there is to be installed.
struct Plan {
    manager: ServiceManager,
    service: Service,
    file: PathBuf,
    text: String,
    /// Whether the file says something else, or is not there.
    is_new: bool,
}

impl Plan {
    fn new(hearback: &Hearback) -> Result<Self, CliError> {
        let place = hearback_platform::service_place().ok_or(CliError::NoManager)?;
        let ServicePlace { manager, directory, user } = place;
        let unusual = home::unusual(hearback.home());
        let name = match unusual {
            None => NAME.to_owned(),
            // However somebody spells the way to it, it is one store.
            Some(_) => format!("{NAME}-{}", hearback_store::store_name(hearback.home())),
        };
        let path = std::env::var_os("PATH").filter(|path| !path.is_empty());
        let service = Service {
            name,
            program: unicode(&program()?)?,
            home: unusual.as_deref().map(unicode).transpose()?,
            path: path.map(|path| unicode(Path::new(&path))).transpose()?,
            user,
        };
        let file = match directory {
            Some(directory) => directory.join(manager.file_name(&service)),
            None => {
                hearback_store::service_path(&home::written(hearback.home()), &manager.file_name(&service))
            }
        };
        let text = manager.text(&service)?;
        let is_new = fs_err::read(&file).ok() != Some(manager.encode(&text));
        Ok(Self { manager, service, file, text, is_new })
    }

    fn print(&self, output: &Output) -> Result<u32, CliError> {
        if output.is_json() {
            self.document(false, &self.orders(), &[], output)?;
        } else {
            output.text(&self.text)?;
            output.say(&format!("this is for {}; then run:\n{}", self.shown_file(), listed(&self.orders())));
        }
        Ok(0)
    }

    fn install(&self, hearback: &Hearback, yes: bool, output: &Output) -> Result<u32, CliError> {
        let (orders, file) = (self.orders(), self.shown_file());
        let what = match (self.is_new, self.file.exists()) {
            (true, true) => {
                format!("{file} is replaced by {}:\n\n{}", self.manager.title(), indented(&self.text))
            }
            (true, false) => format!("{file} becomes {}:\n\n{}", self.manager.title(), indented(&self.text)),
            (false, _) => format!("{file} is as it should be.\n"),
        };
        if !agreed(&format!("{what}\nThis is run:\n\n{}", listed(&orders)), yes, output)? {
            return Ok(1);
        }
        if self.is_new {
            if let Some(folder) = self.file.parent() {
                fs_err::create_dir_all(folder).map_err(CliError::Install)?;
            }
            fs_err::write(&self.file, self.manager.encode(&self.text)).map_err(CliError::Install)?;
        }
        let failed = tell(hearback, &orders, output);
        self.finish(&orders, &failed, output)?;
        if !output.is_json() {
            output.say("installed: a monitor runs now, at every login, and again when it ends too early");
            if self.manager == ServiceManager::Systemd {
                output.say("it ends with your last login, unless `loginctl enable-linger` lets it stay");
            }
            output.say("undo it with: hearback monitor install --remove");
        }
        Ok(0)
    }

    fn remove(&self, hearback: &Hearback, yes: bool, output: &Output) -> Result<u32, CliError> {
        let (before, after) = self.manager.remove(&self.service);
        let orders = [&before[..], &after[..]].concat();
        if !self.file.exists() {
            if output.is_json() {
                self.document(false, &[], &[], output)?;
            } else {
                output
                    .say(&format!("nothing is installed for this store: there is no {}", self.shown_file()));
            }
            return Ok(0);
        }
        let what = format!("{} goes.\n\nThis is run:\n\n{}", self.shown_file(), listed(&orders));
        if !agreed(&what, yes, output)? {
            return Ok(1);
        }
        let mut failed = tell(hearback, &before, output);
        fs_err::remove_file(&self.file).map_err(CliError::Install)?;
        failed.extend(tell(hearback, &after, output));
        self.finish(&orders, &failed, output)?;
        if !output.is_json() {
            output.say("removed: no monitor is started at login any more");
        }
        Ok(0)
    }

    fn orders(&self) -> Vec<Order> {
        self.manager.install(&self.service, &self.file.to_string_lossy(), self.is_new)
    }

    /// Tells programs what was done, and everybody what was not.
    fn finish(&self, orders: &[Order], failed: &[Failed], output: &Output) -> Result<(), CliError> {
        if output.is_json() {
            self.document(true, orders, failed, output)?;
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(CliError::Manager(failed.iter().map(|failed| shown(&failed.order)).collect())),
        }
    }

    fn document(
        &self,
        done: bool,
        orders: &[Order],
        failed: &[Failed],
        output: &Output,
    ) -> Result<(), CliError> {
        let error = |order: &Order| Some(failed.iter().find(|failed| failed.order == *order)?.why.clone());
        output.document(&InstallDocument {
            format: DOCUMENT_FORMAT,
            manager: self.manager,
            name: self.service.name.clone(),
            file: hearback_platform::from_os(self.file.as_os_str()),
            text: self.text.clone(),
            done,
            commands: orders
                .iter()
                .map(|order| OrderDocument { argv: order.argv.clone(), error: error(order) })
                .collect(),
        })
    }

    fn shown_file(&self) -> String {
        clean_line(&self.file.display().to_string())
    }
}

/// An order that was not carried out.
struct Failed {
    order: Order,
    why: String,
}

/// Tells the manager, one after the other, whatever becomes of the one before: by hand they are tried like this, too.
fn tell(hearback: &Hearback, orders: &[Order], output: &Output) -> Vec<Failed> {
    let mut failed = Vec::new();
    for order in orders {
        let Some(why) = carry_out(hearback, order).filter(|_| order.needed) else { continue };
        output.warn(&format!("`{}` {why}", shown(order)));
        failed.push(Failed { order: order.clone(), why });
    }
    failed
}

/// Tells why it was not.
fn carry_out(hearback: &Hearback, order: &Order) -> Option<String> {
    let report = Native::default().run_bounded(&BoundedRun {
        argv: order.argv.iter().map(|word| word.as_str().into()).collect(),
        cwd: None,
        env: Vec::new(),
        stdin: Vec::new(),
        speaks_first: false,
        within: WITHIN,
        output_max: SAID_MAX,
        mark: JobId::mint(hearback.now().as_millis().unsigned_abs(), std::process::id().into()),
    });
    let report = match report {
        Err(error) => return Some(format!("was not run: {error}")),
        Ok(report) => report,
    };
    let how = match report.exit {
        Some(Exit::Exited { code: 0 }) => return None,
        Some(Exit::Exited { code }) => format!("failed with code {code}"),
        Some(Exit::Signaled { signal, .. }) => format!("was ended by signal {signal}"),
        Some(Exit::Unknown) | None => "took too long".to_owned(),
    };
    let said = String::from_utf8_lossy(&[report.stderr, report.stdout].concat()).trim().to_owned();
    Some(if said.is_empty() { how } else { format!("{how}: {said}") })
}

/// Shows what is going to be done, and asks, unless that was said before.
fn agreed(what: &str, yes: bool, output: &Output) -> Result<bool, CliError> {
    if !output.is_json() {
        output.say(what);
    }
    if yes {
        return Ok(true);
    }
    match output.ask("Do it? [y/N] ") {
        Some(true) => Ok(true),
        Some(false) => {
            output.say("nothing was changed");
            Ok(false)
        }
        None => Err(CliError::Usage("nobody can be asked here whether to do it: say `--yes`".into())),
    }
}

/// A manager starts a monitor with next to none of the variables that are set here.
fn warn_of_what_is_not_kept(hearback: &Hearback, output: &Output) {
    let settings = hearback.settings();
    for setting in settings.effective() {
        if let (SettingSource::Environment, Some(variable)) = (setting.source, setting.variable) {
            let name = setting.name;
            output
                .warn(&format!("the monitor will not know {variable}: set `{name}` in config.toml instead"));
        }
    }
    for name in settings.secrets.iter().filter(|name| std::env::var_os(name).is_some()) {
        output.warn(&format!(
            "the monitor will not know {name}, which is not written into any file: {SECRETS}"
        ));
    }
}

const SECRETS: &str = "tell it to your service manager yourself if sinks need it";

/// This program, by the path that stays when it is updated: the one on the PATH, or the one that was typed, rather than
/// where those lead today.
fn program() -> Result<PathBuf, CliError> {
    let me = std::env::current_exe().map_err(CliError::Install)?;
    let typed = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let on_path = typed.file_name().and_then(|name| Native::default().find_program(name.to_str()?));
    let candidates = [on_path, std::path::absolute(&typed).ok()];
    Ok(candidates.into_iter().flatten().find(|found| home::is_same(found, &me)).unwrap_or(me))
}

fn unicode(path: &Path) -> Result<String, CliError> {
    path.to_str().map(str::to_owned).ok_or_else(|| CliError::NotUnicode(path.to_owned()))
}

fn shown(order: &Order) -> String {
    command_text(&CommandLine::Argv(order.argv.iter().map(|word| word.as_str().into()).collect()))
}

fn listed(orders: &[Order]) -> String {
    orders.iter().map(|order| format!("    {}\n", clean_line(&shown(order)))).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("    {line}\n") }).collect()
}
