//! `hearback monitor install`

use hearback::core::message::{clean_line, command_text};
use hearback::core::service::{Order, ServiceManager};
use hearback::core::{CommandLine, DOCUMENT_FORMAT};
use hearback::documents::{InstallDocument, OrderDocument};
use hearback::{FailedOrder, Hearback, MonitorService, SettingSource};

use crate::args::InstallArgs;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(hearback: &Hearback, args: &InstallArgs, output: &Output) -> Result<u32, CliError> {
    let service = hearback.monitor_service()?;
    if args.print {
        return print(&service, output);
    }
    service.check_manager()?;
    if args.remove {
        return remove(hearback, &service, args.yes, output);
    }
    warn_of_what_is_not_kept(hearback, output);
    install(hearback, &service, args.yes, output)
}

fn print(service: &MonitorService, output: &Output) -> Result<u32, CliError> {
    let orders = service.install_orders();
    if output.is_json() {
        document(service, false, &orders, &[], output)?;
    } else {
        output.text(&service.text)?;
        output.say(&format!("this is for {}; then run:\n{}", shown_file(service), listed(&orders)));
    }
    Ok(0)
}

fn install(
    hearback: &Hearback,
    service: &MonitorService,
    yes: bool,
    output: &Output,
) -> Result<u32, CliError> {
    let (orders, file, title) = (service.install_orders(), shown_file(service), service.manager.title());
    let what = match (service.is_new, service.file.exists()) {
        (true, true) => format!("{file} is replaced by {title}:\n\n{}", indented(&service.text)),
        (true, false) => format!("{file} becomes {title}:\n\n{}", indented(&service.text)),
        (false, _) => format!("{file} is as it should be.\n"),
    };
    if !agreed(&format!("{what}\nThis is run:\n\n{}", listed(&orders)), yes, output)? {
        return Ok(1);
    }
    let failed = hearback.install_monitor(service)?;
    finish(service, &orders, &failed, output)?;
    if !output.is_json() {
        output.say("installed: a monitor runs now, at every login, and again when it ends too early");
        if service.manager == ServiceManager::Systemd {
            output.say("it ends with your last login, unless `loginctl enable-linger` lets it stay");
        }
        output.say("undo it with: hearback monitor install --remove");
    }
    Ok(0)
}

fn remove(
    hearback: &Hearback,
    service: &MonitorService,
    yes: bool,
    output: &Output,
) -> Result<u32, CliError> {
    let file = shown_file(service);
    if !service.file.exists() {
        if output.is_json() {
            document(service, false, &[], &[], output)?;
        } else {
            output.say(&format!("nothing is installed for this store: there is no {file}"));
        }
        return Ok(0);
    }
    let orders = service.remove_orders();
    if !agreed(&format!("{file} goes.\n\nThis is run:\n\n{}", listed(&orders)), yes, output)? {
        return Ok(1);
    }
    let failed = hearback.remove_monitor(service)?;
    finish(service, &orders, &failed, output)?;
    if !output.is_json() {
        output.say("removed: no monitor is started at login any more");
    }
    Ok(0)
}

/// Tells programs what was done, and everybody what was not.
fn finish(
    service: &MonitorService,
    orders: &[Order],
    failed: &[FailedOrder],
    output: &Output,
) -> Result<(), CliError> {
    for FailedOrder { order, why } in failed {
        output.warn(&format!("`{}` {why}", shown(order)));
    }
    if output.is_json() {
        document(service, true, orders, failed, output)?;
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(CliError::Manager(failed.iter().map(|failed| shown(&failed.order)).collect())),
    }
}

fn document(
    service: &MonitorService,
    done: bool,
    orders: &[Order],
    failed: &[FailedOrder],
    output: &Output,
) -> Result<(), CliError> {
    let error = |order: &Order| Some(failed.iter().find(|failed| failed.order == *order)?.why.clone());
    let commands = orders.iter().map(|order| OrderDocument { argv: order.argv.clone(), error: error(order) });
    output.document(&InstallDocument {
        format: DOCUMENT_FORMAT,
        manager: service.manager,
        name: service.service.name.clone(),
        file: hearback::from_os(service.file.as_os_str()),
        text: service.text.clone(),
        done,
        commands: commands.collect(),
    })
}

fn shown_file(service: &MonitorService) -> String {
    clean_line(&service.file.display().to_string())
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

fn shown(order: &Order) -> String {
    command_text(&CommandLine::Argv(order.argv.iter().map(|word| word.as_str().into()).collect()))
}

fn listed(orders: &[Order]) -> String {
    orders.iter().map(|order| format!("    {}\n", clean_line(&shown(order)))).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("    {line}\n") }).collect()
}
