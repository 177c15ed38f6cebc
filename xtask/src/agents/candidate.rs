//! The agents that are tried: how each is installed, configured and started.

use anyhow::Result;
use fs_err as fs;
use serde_json::json;

use super::stage::Stage;
use super::trial::Trial;

/// Variables of the environment.
type Variables = Vec<(&'static str, String)>;

/// An agent that is tried.
pub(super) struct Candidate {
    /// The name of its preset.
    pub(super) name: &'static str,
    /// The npm package, with the version that this was written for.
    pub(super) package: &'static str,
    /// Its program.
    pub(super) program: &'static str,
    /// Writes its settings: the model on loopback, no account, no questions.
    pub(super) configure: fn(&Stage) -> Result<Variables>,
    /// One turn without a terminal, in a new session. `{prompt}` is replaced.
    pub(super) headless: &'static [&'static str],
    /// A session in a terminal.
    pub(super) open: &'static [&'static str],
    /// What its screen shows when it waits for a prompt.
    pub(super) ready: &'static str,
    /// Trials that are not made, each with the reason.
    pub(super) not_tried: &'static [(Trial, &'static str)],
}

/// All of them.
pub(super) const CANDIDATES: &[Candidate] = &[
    Candidate {
        name: "claude",
        package: "@anthropic-ai/claude-code@2.1.326",
        program: "claude",
        configure: claude,
        headless: &["claude", "-p", "--allowedTools", "Bash", "--", "{prompt}"],
        open: &["claude", "--permission-mode", "default", "--allowedTools", "Bash"],
        ready: "? for shortcuts",
        not_tried: &[],
    },
    Candidate {
        name: "codex",
        package: "@openai/codex@0.169.0",
        program: "codex",
        configure: codex,
        headless: &["codex", "exec", "--skip-git-repo-check", "{prompt}"],
        open: &["codex"],
        ready: "? for shortcuts",
        not_tried: &[],
    },
    Candidate {
        name: "opencode",
        package: "opencode-ai@1.18.33",
        program: "opencode",
        configure: opencode,
        headless: &["opencode", "run", "{prompt}"],
        open: &["opencode"],
        ready: "Ask anything",
        not_tried: &[],
    },
];

fn claude(stage: &Stage) -> Result<Variables> {
    let project = stage.project().display().to_string();
    let settings = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {project: {"hasTrustDialogAccepted": true}},
    });
    fs::write(stage.home().join(".claude.json"), settings.to_string())?;
    Ok(vec![
        ("ANTHROPIC_BASE_URL", stage.model.url()),
        ("ANTHROPIC_API_KEY", "dummy".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
    ])
}

fn codex(stage: &Stage) -> Result<Variables> {
    let folder = stage.home().join(".codex");
    fs::create_dir_all(&folder)?;
    let settings = format!(
        "model = \"stub-model\"\nmodel_provider = \"stub\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"{}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n[projects.{:?}]\ntrust_level = \"trusted\"\n",
        stage.model.url(),
        stage.project().display().to_string(),
    );
    fs::write(folder.join("config.toml"), settings)?;
    Ok(vec![("STUB_KEY", "dummy".into())])
}

fn opencode(stage: &Stage) -> Result<Variables> {
    let folder = stage.home().join(".config").join("opencode");
    fs::create_dir_all(&folder)?;
    let settings = json!({
        "model": "stub/stub-model",
        "autoupdate": false,
        "permission": {"bash": "allow"},
        "provider": {"stub": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{}/v1", stage.model.url()), "apiKey": "dummy"},
            "models": {"stub-model": {}},
        }},
    });
    fs::write(folder.join("opencode.json"), settings.to_string())?;
    let off =
        ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
    Ok(off.into_iter().map(|name| (name, "1".to_owned())).collect())
}
