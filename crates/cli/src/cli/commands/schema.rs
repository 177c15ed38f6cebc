//! `hearback schema`

use schemars::generate::SchemaSettings;

use crate::cli::documents::Documents;
use crate::cli::error::CliError;
use crate::cli::output::Output;

pub(crate) fn run(output: &Output) -> Result<u32, CliError> {
    // What is printed, and not what would be understood: a list that is left out when it is empty is not required.
    let settings = SchemaSettings::default().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Documents>();
    let json = serde_json::to_string_pretty(&schema).map_err(|error| CliError::Output(error.into()))?;
    output.line(&json)?;
    Ok(0)
}
