//! `hearback completions`

use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::CompletionsDocument;

use crate::args::CompletionsArgs;
use crate::complete;
use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<u32, CliError> {
    let shell = args.shell.to_string();
    let script = complete::script(&shell)
        .ok_or_else(|| CliError::Usage(format!("there are no completions for `{shell}`")))?;
    if output.is_json() {
        let script = String::from_utf8_lossy(&script).into_owned();
        return output.reply(CompletionsDocument { format: DOCUMENT_FORMAT, shell, script }, None);
    }
    output.bytes(&script)?;
    Ok(0)
}
