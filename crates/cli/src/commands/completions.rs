//! `hearback completions`

use clap::CommandFactory;
use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::CompletionsDocument;

use crate::args::{Arguments, CompletionsArgs};
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<u32, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "hearback", &mut script);
    if output.is_json() {
        let script = String::from_utf8_lossy(&script).into_owned();
        let shell = args.shell.to_string();
        return output.reply(CompletionsDocument { format: DOCUMENT_FORMAT, shell, script }, None);
    }
    output.bytes(&script)?;
    Ok(0)
}
