//! `hearback exit-codes`

use hearback::core::DOCUMENT_FORMAT;
use hearback::documents::{ExitCodeDocument, ExitCodesDocument};

use crate::error::CliError;
use crate::help;
use crate::output::Output;

pub(crate) fn run(output: &Output) -> Result<u32, CliError> {
    if !output.is_json() {
        return output.text(&help::exit_codes(output.width())).map(|()| 0);
    }
    let codes = help::EXIT_CODES.iter().flat_map(|part| {
        let of = part.of.replace('`', "");
        part.codes.iter().map(move |(code, meaning)| ExitCodeDocument {
            of: of.clone(),
            code: (*code).to_owned(),
            meaning: (*meaning).to_owned(),
        })
    });
    output.reply(ExitCodesDocument { format: DOCUMENT_FORMAT, codes: codes.collect() }, None)
}
