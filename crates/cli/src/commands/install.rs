//! `hearback monitor install`

use hearback::core::message::{clean_line, command_text};
use hearback::core::service::{Order, ServiceManager};
use hearback::core::{CommandLine, DOCUMENT_FORMAT};
use hearback::documents::{ErrorKind, InstallDocument, OrderDocument};
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
        return output.reply(document(service, false, &orders, &[]), None);
    }
    output.text(&service.text)?;
    output.say(&format!("write this to {}, then run:\n{}", shown_file(service), listed(&orders)));
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
        (true, true) => format!("This replaces {file}, {title}:\n\n{}", indented(&service.text)),
        (true, false) => format!("This creates {file}, {title}:\n\n{}", indented(&service.text)),
        (false, _) => format!("{file} is up to date.\n"),
    };
    if !agreed(&format!("{what}\nThen it runs:\n\n{}", listed(&orders)), yes, output)? {
        return Err(CliError::no(ErrorKind::Declined, "nothing was changed"));
    }
    let failed = hearback.install_monitor(service)?;
    let code = finish(service, &orders, &failed, output)?;
    if !output.is_json() {
        output.say("installed: a monitor runs now and after every login, and is restarted if it fails");
        if service.manager == ServiceManager::Systemd {
            output.say("it stops when you log out, unless you run `loginctl enable-linger`");
        }
        output.say("to remove it: hearback monitor install --remove");
    }
    Ok(code)
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
            return output.reply(document(service, false, &[], &[]), None);
        }
        output.say(&format!("nothing is installed for this store: {file} does not exist"));
        return Ok(0);
    }
    let orders = service.remove_orders();
    if !agreed(&format!("This removes {file}.\n\nIt runs:\n\n{}", listed(&orders)), yes, output)? {
        return Err(CliError::no(ErrorKind::Declined, "nothing was changed"));
    }
    let failed = hearback.remove_monitor(service)?;
    let code = finish(service, &orders, &failed, output)?;
    if !output.is_json() {
        output.say("removed: no monitor starts at login");
    }
    Ok(code)
}

/// Prints the document, and a warning for each command that failed.
fn finish(
    service: &MonitorService,
    orders: &[Order],
    failed: &[FailedOrder],
    output: &Output,
) -> Result<u32, CliError> {
    let error = (!failed.is_empty())
        .then(|| CliError::Manager(failed.iter().map(|failed| shown(&failed.order)).collect()));
    if output.is_json() {
        return output.reply(document(service, true, orders, failed), error.as_ref());
    }
    for FailedOrder { order, why, .. } in failed {
        output.warn(&format!("`{}` {why}", shown(order)));
    }
    error.map_or(Ok(0), Err)
}

fn document(
    service: &MonitorService,
    done: bool,
    orders: &[Order],
    failed: &[FailedOrder],
) -> InstallDocument {
    let error = |order: &Order| Some(failed.iter().find(|failed| failed.order == *order)?.why.clone());
    let commands = orders.iter().map(|order| OrderDocument { argv: order.argv.clone(), error: error(order) });
    InstallDocument {
        format: DOCUMENT_FORMAT,
        manager: service.manager,
        name: service.service.name.clone(),
        file: hearback::from_os(service.file.as_os_str()),
        text: service.text.clone(),
        done,
        commands: commands.collect(),
    }
}

fn shown_file(service: &MonitorService) -> String {
    clean_line(&service.file.display().to_string())
}

/// Shows what will be done, and asks for confirmation unless `yes`.
fn agreed(what: &str, yes: bool, output: &Output) -> Result<bool, CliError> {
    if !output.is_json() {
        output.say(what);
    }
    if yes {
        return Ok(true);
    }
    match output.confirm("Continue? [y/N] ") {
        Some(true) => Ok(true),
        Some(false) => {
            output.say("nothing was changed");
            Ok(false)
        }
        None => Err(CliError::Usage("cannot ask for confirmation without a terminal: pass `--yes`".into())),
    }
}

/// Warns about variables of this environment: a service manager starts the monitor without them.
fn warn_of_what_is_not_kept(hearback: &Hearback, output: &Output) {
    let settings = hearback.settings();
    for setting in settings.effective() {
        if let (SettingSource::Environment, Some(variable)) = (setting.source, setting.variable) {
            let name = setting.name;
            output.warn(&format!("the monitor will not see {variable}: set `{name}` in config.toml instead"));
        }
    }
    for name in settings.secrets.iter().filter(|name| std::env::var_os(name).is_some()) {
        output.warn(&format!(
            "the monitor will not see {name}: hearback writes no secret to a file; {SECRETS}"
        ));
    }
}

const SECRETS: &str = "if a sink needs it, set it in your service manager";

fn shown(order: &Order) -> String {
    command_text(&CommandLine::Argv(order.argv.iter().map(|word| word.as_str().into()).collect()))
}

fn listed(orders: &[Order]) -> String {
    orders.iter().map(|order| format!("    {}\n", clean_line(&shown(order)))).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("    {line}\n") }).collect()
}
