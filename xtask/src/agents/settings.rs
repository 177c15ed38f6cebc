//! The settings of each agent: the model on loopback, no account, no questions, and hearback's MCP server where a trial
//! wants it.

use std::collections::BTreeMap;

use anyhow::Result;
use fs_err as fs;
use serde_json::{Value, json};

use super::stage::Stage;

/// Variables of the environment.
pub(super) type Variables = Vec<(&'static str, String)>;

/// Writes the settings of an agent.
pub(super) type Configure = fn(&Stage, Option<&McpServer>) -> Result<()>;

/// hearback as an MCP server. Its name is not that of a user's registration, which may be there as well.
pub(super) struct McpServer {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    /// Some agents give their servers no environment.
    pub(super) env: BTreeMap<String, String>,
}

impl McpServer {
    /// As most agents want it.
    fn registered(server: Option<&Self>) -> Value {
        let entry = |server: &Self| {
            let Self { command, args, env } = server;
            json!({"trial": {"command": command, "args": args, "env": env}})
        };
        server.map_or_else(|| json!({}), entry)
    }
}

/// Writes a file below the home directory.
fn write(stage: &Stage, below: &str, text: &str) -> Result<()> {
    let path = stage.home().join(below);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

fn project(stage: &Stage) -> String {
    stage.project().display().to_string()
}

pub(super) fn claude_variables(stage: &Stage) -> Variables {
    vec![
        ("ANTHROPIC_BASE_URL", stage.model.url()),
        ("ANTHROPIC_API_KEY", "dummy".into()),
        ("DISABLE_TELEMETRY", "1".into()),
        ("DISABLE_AUTOUPDATER", "1".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        // Otherwise the tools of MCP servers have to be searched for first.
        ("ENABLE_TOOL_SEARCH", "false".into()),
    ]
}

/// It puts its socket below one of these, and no folder can be made in a file.
pub(super) fn claude_without_socket(stage: &Stage) -> Variables {
    let file = stage.home().join(".claude.json").display().to_string();
    vec![("XDG_RUNTIME_DIR", file.clone()), ("TERMUX_VERSION", "1".into()), ("PREFIX", file)]
}

pub(super) fn claude(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    let settings = json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {project(stage): {"hasTrustDialogAccepted": true}},
        "mcpServers": McpServer::registered(server),
    });
    write(stage, ".claude.json", &settings.to_string())
}

pub(super) fn codex(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    let mut settings = format!(
        "model = \"stub-model\"\nmodel_provider = \"stub\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\n[model_providers.stub]\nname = \"stub\"\nbase_url = \"{}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n[projects.{:?}]\ntrust_level = \"trusted\"\n",
        stage.model.url(),
        project(stage),
    );
    if let Some(server) = server {
        let McpServer { command, args, env } = server;
        settings += &format!(
            "[mcp_servers.trial]\ncommand = {command:?}\nargs = {args:?}\n[mcp_servers.trial.env]\n"
        );
        settings.extend(env.iter().map(|(name, value)| format!("{name} = {value:?}\n")));
    }
    write(stage, ".codex/config.toml", &settings)
}

pub(super) fn opencode_variables(_: &Stage) -> Variables {
    let off =
        ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
    off.into_iter().map(|name| (name, "1".to_owned())).collect()
}

pub(super) fn opencode(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    let mcp = server.map_or_else(
        || json!({}),
        |server| {
            let command: Vec<_> = std::iter::once(&server.command).chain(&server.args).collect();
            json!({"trial": {"type": "local", "command": command, "environment": server.env}})
        },
    );
    let settings = json!({
        "model": "stub/stub-model",
        "autoupdate": false,
        "permission": {"bash": "allow"},
        "provider": {"stub": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{}/v1", stage.model.url()), "apiKey": "dummy"},
            "models": {"stub-model": {}},
        }},
        "mcp": mcp,
    });
    write(stage, ".config/opencode/opencode.json", &settings.to_string())
}

pub(super) fn qwen_variables(stage: &Stage) -> Variables {
    vec![
        ("OPENAI_BASE_URL", format!("{}/v1", stage.model.url())),
        ("OPENAI_API_KEY", "dummy".into()),
        ("OPENAI_MODEL", "stub-model".into()),
    ]
}

pub(super) fn qwen(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    write(stage, ".qwen/settings.json", &gemini_settings("openai", server))
}

pub(super) fn gemini_variables(stage: &Stage) -> Variables {
    vec![("GOOGLE_GEMINI_BASE_URL", stage.model.url()), ("GEMINI_API_KEY", "dummy".into())]
}

pub(super) fn gemini(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    write(stage, ".gemini/settings.json", &gemini_settings("gemini-api-key", server))
}

/// Qwen Code is a fork of gemini-cli.
fn gemini_settings(account: &str, server: Option<&McpServer>) -> String {
    json!({
        "security": {"auth": {"selectedType": account}, "folderTrust": {"enabled": false}},
        "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "mcpServers": McpServer::registered(server),
    })
    .to_string()
}

pub(super) fn copilot_variables(stage: &Stage) -> Variables {
    vec![
        ("COPILOT_OFFLINE", "true".into()),
        ("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", stage.model.url())),
        ("COPILOT_PROVIDER_API_KEY", "dummy".into()),
        ("COPILOT_MODEL", "stub-model".into()),
    ]
}

pub(super) fn copilot(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    write(stage, ".copilot/config.json", &json!({"trustedFolders": [project(stage)]}).to_string())?;
    let mut servers = McpServer::registered(server);
    if let Some(server) = servers.get_mut("trial") {
        server["tools"] = json!(["*"]);
    }
    write(stage, ".copilot/mcp-config.json", &json!({"mcpServers": servers}).to_string())
}

pub(super) fn goose_variables(stage: &Stage) -> Variables {
    vec![
        ("GOOSE_PROVIDER", "openai".into()),
        ("GOOSE_MODEL", "gpt-4o".into()),
        ("OPENAI_HOST", stage.model.url()),
        ("OPENAI_API_KEY", "dummy".into()),
        ("GOOSE_DISABLE_KEYRING", "1".into()),
        ("GOOSE_MODE", "auto".into()),
        ("GOOSE_TELEMETRY_ENABLED", "false".into()),
    ]
}

pub(super) fn goose(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    let Some(server) = server else { return Ok(()) };
    // JSON is YAML.
    let extension = json!({
        "enabled": true, "type": "stdio", "name": "trial", "cmd": server.command, "args": server.args,
        "envs": server.env, "timeout": 300,
    });
    write(stage, ".config/goose/config.yaml", &json!({"extensions": {"trial": extension}}).to_string())
}

pub(super) fn hermes(stage: &Stage, server: Option<&McpServer>) -> Result<()> {
    let settings = json!({
        "model": {
            "provider": "custom", "default": "stub-model", "base_url": format!("{}/v1", stage.model.url()),
            "api_key": "dummy",
        },
        "mcp_servers": McpServer::registered(server),
    });
    write(stage, ".hermes/config.yaml", &settings.to_string())
}
