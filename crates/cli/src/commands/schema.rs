//! `hearback schema`

use hearback::documents;

use crate::error::CliError;
use crate::output::Output;

pub(crate) fn run(output: &Output) -> Result<u32, CliError> {
    let schema = documents::schema();
    let json = serde_json::to_string_pretty(&schema).map_err(|error| CliError::Output(error.into()))?;
    output.line(&json)?;
    Ok(0)
}
