//! `hearback settings`

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::documents::SettingsDocument;
use hearback::{EffectiveSetting, Hearback, SettingSource};

use crate::error::CliError;
use crate::output::{FAINT, Output};
use crate::table;

pub(crate) fn run(hearback: &Hearback, output: &Output) -> Result<u32, CliError> {
    let (settings, file) = (hearback.settings(), hearback.settings_file());
    let effective = settings.effective();
    if output.is_json() {
        output.document(&SettingsDocument {
            format: DOCUMENT_FORMAT,
            file: hearback::from_os(file.as_os_str()),
            settings: effective,
            warnings: settings.warnings.clone(),
        })?;
        return Ok(0);
    }
    output.text(&table::grid(&[], &rows(&effective), 1, output.width()))?;
    output.hint(&format!("settings file: {}", clean_line(&file.display().to_string())));
    Ok(0)
}

/// One row for each setting; defaults are dimmed.
fn rows(settings: &[EffectiveSetting]) -> Vec<Vec<String>> {
    let row = |setting: &EffectiveSetting| {
        let faint = if setting.source == SettingSource::Default { FAINT } else { anstyle::Style::new() };
        let value = clean_line(setting.value.as_deref().unwrap_or("none"));
        let cells = [setting.name.to_owned(), value, setting.origin().to_string()];
        cells.map(|cell| format!("{faint}{cell}{faint:#}")).into()
    };
    settings.iter().map(row).collect()
}
