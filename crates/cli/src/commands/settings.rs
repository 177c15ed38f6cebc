//! `hearback settings`

use std::fmt::Write as _;

use hearback::core::DOCUMENT_FORMAT;
use hearback::core::message::clean_line;
use hearback::documents::SettingsDocument;
use hearback::{EffectiveSetting, Hearback, SettingSource};

use crate::error::CliError;
use crate::output::{FAINT, Output};

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
    output.text(&table(&effective))?;
    output.hint(&format!("settings file: {}", clean_line(&file.display().to_string())));
    Ok(0)
}

/// One line for each setting; defaults are dimmed.
fn table(settings: &[EffectiveSetting]) -> String {
    let rows: Vec<_> = settings
        .iter()
        .map(|setting| (setting, clean_line(setting.value.as_deref().unwrap_or("none"))))
        .collect();
    let names = rows.iter().map(|(setting, _)| setting.name.len()).max().unwrap_or(0);
    let values = rows.iter().map(|(_, value)| value.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (setting, value) in rows {
        let faint = if setting.source == SettingSource::Default { FAINT } else { anstyle::Style::new() };
        let line = format!("{:<names$}  {value:<values$}  {}", setting.name, setting.origin());
        let _ = writeln!(text, "{faint}{line}{faint:#}");
    }
    text
}
