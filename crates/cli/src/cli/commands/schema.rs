//! `hearback schema`

use crate::cli::documents::Documents;
use crate::cli::error::CliError;
use crate::cli::output::Output;

pub(crate) fn run(output: &Output) -> Result<u32, CliError> {
    let schema = schemars::schema_for!(Documents);
    let json = serde_json::to_string_pretty(&schema).map_err(|error| CliError::Output(error.into()))?;
    output.line(&json)?;
    Ok(0)
}
