//! [`load`]: loading the plugins of a configuration.

use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::limits::TOOL_TIMEOUT;

use super::{Tool, Tools, builtin};

/// The prefix of a built-in tool's path.
const BUILTIN: &str = "builtin:";

rpc_core::config! {
    /// Limits on one call of a plugin.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PluginLimits {
        /// How long a call may take, including the wait for its turn. Default 30 s.
        pub deadline: Duration = TOOL_TIMEOUT => with_deadline,
        /// Most bytes of memory, counted in whole pages of 64 KiB. The initial memory of a plugin
        /// may be added once. Default 64 MiB.
        pub memory: u64 = 64 << 20 => with_memory,
        /// Most bytes of an output. Default 1 MiB.
        pub output: usize = 1 << 20 => with_output,
        /// Most concurrent calls, at least one. Further ones wait until their deadline. Default 8.
        pub concurrency: usize = 8 => with_concurrency,
    }
}

/// A plugin in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginEntry {
    /// The name.
    pub name: String,
    /// `builtin:` and the name of a built-in tool, or the path of a module: binary WebAssembly or
    /// its text form. A relative path is relative to the working directory.
    pub path: String,
    /// Its capabilities: `http:HOST`. Default none.
    pub capabilities: Vec<String>,
    /// Limits on a call. Without effect on a built-in tool.
    pub limits: PluginLimits,
}

impl PluginEntry {
    /// Creates a plugin without capabilities.
    pub fn new(name: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            capabilities: Vec::new(),
            limits: PluginLimits::default(),
        }
    }
}

/// The reason why a plugin cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// It is a WebAssembly module, and this program cannot run one.
    #[error("this build cannot run WebAssembly: build it with '--features wasm'")]
    NoWasm,
    /// There is no such built-in tool.
    #[error("there is no built-in tool {0:?}, only echo and clock")]
    UnknownBuiltin(String),
    /// The file cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's error.
        why: String,
    },
    /// The file is not a WebAssembly module, or needs imports that the gateway does not have.
    #[error("not a module that can run here: {0}")]
    Invalid(String),
    /// A capability is unknown.
    #[error("bad capability {capability:?}: {why}")]
    Capability {
        /// The text in the configuration.
        capability: String,
        /// The reason.
        why: &'static str,
    },
    /// It has no function that the gateway calls.
    #[error("the module exports neither handle_tool_call nor parse_incoming")]
    NoExports,
    /// Its description is invalid.
    #[error("describe failed: {0}")]
    Describe(String),
    /// Its tool has a name that model services refuse.
    #[error("bad tool name {0:?}: it takes 1 to 64 of a-z, A-Z, 0-9, _ and -")]
    ToolName(String),
    /// Another plugin has its name.
    #[error("there is a plugin of this name already")]
    DuplicatePlugin,
    /// Another plugin has a tool of the same name, so that the model could not tell them apart.
    #[error("its tool {tool:?} has the same name as the tool of plugin {owner:?}")]
    DuplicateTool {
        /// The name.
        tool: String,
        /// The plugin that has it.
        owner: String,
    },
}

/// A warning about a plugin. The gateway still starts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadWarning {
    /// The plugin of this name is skipped.
    #[error("plugin {0:?} is skipped: {1}")]
    Skipped(String, PluginError),
    /// The plugin is loaded, but this capability has no effect.
    #[error("plugin {0:?}: the capability {1:?} has no effect")]
    NoEffect(String, String),
}

/// Loads plugins in order. An invalid one is skipped with a warning.
///
/// Compiling a large module takes a while; it runs on its own thread. Needs a Tokio runtime, which
/// plugins use for HTTP requests as long as they live.
///
/// # Cancel safety
/// Dropping the future unloads the loaded plugins.
pub async fn load(entries: impl IntoIterator<Item = PluginEntry>) -> (Tools, Vec<LoadWarning>) {
    let mut tools = Tools::new();
    let mut warnings = Vec::new();
    for entry in entries {
        let loaded = match entry.path.strip_prefix(BUILTIN) {
            Some(which) => builtin(which, &entry.name),
            None => module(&entry, &mut warnings).await,
        };
        if let Err(error) = loaded.and_then(|tool| tools.add(tool)) {
            warnings.push(LoadWarning::Skipped(entry.name, error));
        }
    }
    (tools, warnings)
}

#[cfg(feature = "wasm")]
async fn module(
    entry: &PluginEntry,
    warnings: &mut Vec<LoadWarning>,
) -> Result<Arc<dyn Tool>, PluginError> {
    use crate::gateway::plugin::WasmPlugin;

    let plugin = WasmPlugin::load(entry).await?;
    for capability in plugin.without_effect() {
        let name = entry.name.clone();
        warnings.push(LoadWarning::NoEffect(name, capability.clone()));
    }
    Ok(Arc::new(plugin))
}

#[cfg(not(feature = "wasm"))]
#[allow(clippy::unused_async, reason = "the same shape as with the feature")]
async fn module(_: &PluginEntry, _: &mut Vec<LoadWarning>) -> Result<Arc<dyn Tool>, PluginError> {
    Err(PluginError::NoWasm)
}
