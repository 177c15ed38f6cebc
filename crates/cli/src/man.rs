//! Man pages: one for the program and one for each command. Only in a build that is made to write them.

use std::path::Path;

use clap::Command;

use crate::error::CliError;
use crate::help;

/// Writes the pages of all commands into a folder, which has to exist.
pub(crate) fn write(folder: &Path) -> Result<u32, CliError> {
    let mut command = help::command();
    command.build();
    write_pages(&command, "hearback", folder)?;
    Ok(0)
}

fn write_pages(command: &Command, name: &str, folder: &Path) -> Result<(), CliError> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).map_err(CliError::Output)?;
    fs_err::write(folder.join(format!("{name}.1")), text).map_err(CliError::Output)?;
    let below =
        command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    for command in below {
        write_pages(command, &format!("{name}-{}", command.get_name()), folder)?;
    }
    Ok(())
}
