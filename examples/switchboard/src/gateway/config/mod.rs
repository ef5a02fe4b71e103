//! [`Config`]: the gateway's configuration, from one TOML file.

mod load;
mod nats;
mod read;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use exoclaw_proto::limits::{DEFAULT_PORT, MAX_TOOL_ROUNDS};
use rpc_core::store::Fsync;
use serde::Deserialize;

use crate::model::options::ModelArgs;

pub use load::{Loaded, Origin, PATH_VARIABLE};
pub use nats::NatsSettings;

/// The contents of the file. What it leaves out has the default of the field.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Config {
    /// `[gateway]`: the socket and the files.
    #[serde(default = "read::no_gateway")]
    pub gateway: GatewayConfig,
    /// `[agent]`: the model and its instructions.
    pub agent: AgentConfig,
    /// `[[plugins]]`: tools, in the order of the file. Names are unique.
    pub plugins: Vec<PluginConfig>,
    /// `[[bindings]]`: which chats belong to which agent, in the order of the file.
    pub bindings: Vec<BindingConfig>,
    /// `[budgets]`: limits in tokens.
    pub budgets: BudgetConfig,
    /// `[memory]`: what a model gets of the past.
    pub memory: MemoryConfig,
    /// `[nats]`: what this gateway shares with others.
    pub nats: NatsSettings,
}

rpc_core::config! {
    /// `[gateway]`.
    #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct GatewayConfig {
        /// `port`: the port to listen at; 0 chooses a free one. Default [`DEFAULT_PORT`].
        #[serde(deserialize_with = "read::within::<_, u16, _, 0, 65535>")]
        pub port: u16 = DEFAULT_PORT,
        /// `bind`: the address to listen at. Default `127.0.0.1`.
        #[serde(deserialize_with = "read::host")]
        pub bind: String = "127.0.0.1".to_owned(),
        /// `allowed_origins`: web origins that may connect, besides those of this machine.
        pub allowed_origins: Vec<String> = Vec::new(),
        /// `allowed_hosts`: host names under which the gateway is reached, besides loopback names.
        pub allowed_hosts: Vec<String> = Vec::new(),
        /// `max_connections`: most open connections; the next one is refused. Default 16,384, or
        /// fewer if the system allows fewer open files.
        #[serde(deserialize_with = "read::within::<_, usize, _, 1, 1_000_000>")]
        pub max_connections: usize = 16_384,
        /// `data_dir`: the folder for conversations and usage. Default: the folder of the file, or
        /// `~/.exoclaw` if there is no file.
        #[serde(rename = "data_dir", default = "read::own_folder")]
        pub data: DataDir = DataDir::Memory,
        /// `fsync`: when what is stored in the folder is on the disk: `always`, `never`, or a time like `1s`.
        /// Default always, before it is acknowledged.
        #[serde(deserialize_with = "read::fsync")]
        pub fsync: Fsync = Fsync::Always,
        /// `extensions`: whether to serve methods beyond the specification. Default no.
        pub extensions: bool = false,
    }
}

/// The place of the gateway's persistent data. Exhaustive: a folder or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DataDir {
    /// Nowhere: `data_dir = ":memory:"`, or there is no home folder to put it in.
    #[default]
    Memory,
    /// In this folder, which is created if it is missing.
    Folder(PathBuf),
}

rpc_core::config! {
    /// `[agent]`.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(from = "read::AgentKeys")]
    pub struct AgentConfig {
        /// `id`: the name of the agent in session keys. Default `default`.
        pub id: String = "default".to_owned(),
        /// `provider`, `model`, `base_url`, `api_key`, `key_file`, `max_tokens`, `temperature`,
        /// `context_tokens` and `model_timeout`: the model. The environment goes before them.
        pub model: ModelArgs = ModelArgs::default(),
        /// `system_prompt`: instructions for the model.
        pub system_prompt: Option<String> = None,
        /// `soul_path`: a file with the character of the agent, read again when it changes.
        pub soul_path: Option<PathBuf> = None,
        /// `tools`: the tools that the model may use. Empty: all tools of the plugins.
        pub tools: Vec<String> = Vec::new(),
        /// `catch_all`: whether chats that match no binding go to this agent. Default yes.
        pub catch_all: bool = true,
        /// `max_tool_rounds`: how often in one answer the model may call tools. Default 10.
        pub max_tool_rounds: usize = MAX_TOOL_ROUNDS,
    }
}

/// One of `[[plugins]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct PluginConfig {
    /// `name`: the name of the plugin in `plugin.list`.
    #[serde(deserialize_with = "read::filled")]
    pub name: String,
    /// `path`: the place of its code.
    #[serde(rename = "path")]
    pub source: PluginSource,
    /// `capabilities`: what it may reach, like `http:api.example.org`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// `timeout_seconds`: how long a call may take. Default: that of the plugin host.
    #[serde(
        rename = "timeout_seconds",
        default,
        deserialize_with = "read::time::<_, 1, 3_600_000>"
    )]
    pub timeout: Option<Duration>,
    /// `memory_mb`: how many MiB an instance may use. Default: that of the plugin host.
    #[serde(default, deserialize_with = "read::within::<_, u32, _, 1, 4096>")]
    pub memory_mb: Option<u32>,
}

/// The place of a plugin's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// In the gateway: `builtin:NAME`.
    Builtin(String),
    /// In a file. A relative path starts at the folder of the configuration.
    File(PathBuf),
}

/// One of `[[bindings]]`: chats that equal all its properties belong to the agent. It has at least
/// one property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct BindingConfig {
    /// `agent_id`: the agent.
    #[serde(deserialize_with = "read::filled")]
    pub agent_id: String,
    /// `channel`: the channel of the chat.
    #[serde(default, deserialize_with = "read::filled")]
    pub channel: Option<String>,
    /// `account_id`: the account within the channel.
    #[serde(default, deserialize_with = "read::filled")]
    pub account_id: Option<String>,
    /// `peer_id`: the other side of the chat.
    #[serde(default, deserialize_with = "read::filled")]
    pub peer_id: Option<String>,
    /// `guild_id`: the guild or server.
    #[serde(default, deserialize_with = "read::filled")]
    pub guild_id: Option<String>,
    /// `team_id`: the team.
    #[serde(default, deserialize_with = "read::filled")]
    pub team_id: Option<String>,
}

/// `[budgets]`: most tokens, read and written together. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct BudgetConfig {
    /// `session`: of one session, for ever.
    #[serde(deserialize_with = "read::within::<_, u64, _, 0, { i64::MAX }>")]
    pub session: Option<u64>,
    /// `daily`: of the gateway in one day of UTC.
    #[serde(deserialize_with = "read::within::<_, u64, _, 0, { i64::MAX }>")]
    pub daily: Option<u64>,
    /// `monthly`: of the gateway in one month of UTC.
    #[serde(deserialize_with = "read::within::<_, u64, _, 0, { i64::MAX }>")]
    pub monthly: Option<u64>,
}

rpc_core::config! {
    /// `[memory]`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct MemoryConfig {
        /// `episodic_window`: how many of the last turns a model gets. By default as many as it has room for.
        #[serde(deserialize_with = "read::within::<_, usize, _, 0, 100>")]
        pub episodic_window: Option<usize> = None,
        /// `semantic`, or `semantic_enabled` as the known gateway calls it: whether the model is asked after a turn
        /// what is worth knowing later. Default yes.
        #[serde(alias = "semantic_enabled")]
        pub semantic: bool = true,
    }
}
