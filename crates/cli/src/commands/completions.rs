//! `hearback completions`

use clap::CommandFactory;

use crate::args::{Arguments, CompletionsArgs};
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<u32, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "hearback", &mut script);
    output.bytes(&script)?;
    Ok(0)
}
