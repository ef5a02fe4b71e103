//! [`WasmPlugin`]: a tool in WebAssembly, run by Extism.
//!
//! Each call gets a fresh instance, so that calls share no state, and runs on a thread of the
//! plugin, so that a plugin that hangs delays only its own callers: they wait for one of its few
//! threads, at most until the deadline, and then fail with `busy`.
//!
//! # What a plugin gets
//! Memory, the clock, random numbers, and HTTP to the hosts in its capabilities. WASI is available,
//! because the toolchains of most languages need it, but without files, environment, arguments,
//! input and output.
//!
//! # When the deadline passes
//! Running code is stopped, and so is a request over HTTP. Two things are not stopped at once: code
//! that runs before the function that was called, such as the initialization of a language runtime,
//! ends when its allowance of instructions is used up (a few times the deadline); and a sleep
//! through WASI is not interrupted. The caller gets `timeout` at the deadline; only the thread
//! stays occupied.

mod capability;
mod describe;
mod http;
mod lane;
mod stop;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use snek_proto::llm::tool::ToolDefinition;

use self::describe::{Description, PluginKind};
use self::http::Http;
use self::lane::{Lanes, Module};
use super::tool::{
    ChannelAdapter, Incoming, PluginEntry, PluginError, PostError, Tool, ToolOutput,
};
use crate::bounded;

/// The function that describes a plugin.
const DESCRIBE: &str = "describe";
/// The function of a tool.
const CALL: &str = "handle_tool_call";
/// The functions of a channel adapter.
const INCOMING: &str = "parse_incoming";
const OUTGOING: &str = "format_outgoing";
/// Largest file of a module.
const MAX_MODULE: u64 = 64 << 20;

/// A loaded plugin.
pub struct WasmPlugin {
    name: String,
    description: Description,
    without_effect: Vec<String>,
    lanes: Lanes,
    http: Arc<Http>,
    deadline: Duration,
}

rpc_core::debug_fields!([] WasmPlugin, this => { name: this.name, description: this.description });

impl WasmPlugin {
    /// Loads a module and asks for its description. Without `describe`, its exports determine its
    /// kind, and it is not offered to the model.
    ///
    /// Needs a Tokio runtime, which its HTTP requests keep using.
    ///
    /// # Errors
    /// [`PluginError`]. Retrying helps if the file changes.
    ///
    /// # Cancel safety
    /// Dropping the future unloads the plugin.
    pub async fn load(entry: &PluginEntry) -> Result<Self, PluginError> {
        let granted = capability::parse(&entry.capabilities)?;
        let code = read(&entry.path).await?;
        let http = Arc::new(Http::new(granted.hosts)?);
        let lanes = Lanes::new(Module {
            code,
            http: Arc::clone(&http),
            limits: entry.limits,
        });
        let exports = lanes.inspect().await.map_err(PluginError::Invalid)?;
        let is_there = |name: &str| exports.contains(&name);
        if !is_there(CALL) && !is_there(INCOMING) {
            return Err(PluginError::NoExports);
        }
        let description = if is_there(DESCRIBE) {
            let answer = lanes.call(DESCRIBE, b"{}").await;
            let text = answer.map_err(|error| PluginError::Describe(error.to_string()))?;
            Description::parse(&text, &entry.name).map_err(PluginError::Describe)?
        } else if is_there(CALL) {
            Description::default()
        } else {
            Description::adapter()
        };
        let needed: &[&str] = match description.kind {
            PluginKind::Tool => &[CALL],
            PluginKind::ChannelAdapter => &[INCOMING, OUTGOING],
        };
        if let Some(missing) = needed.iter().find(|name| !is_there(name)) {
            let why = format!("its declared kind needs the export {missing}");
            return Err(PluginError::Describe(why));
        }
        Ok(Self {
            name: entry.name.clone(),
            description,
            without_effect: granted.without_effect,
            lanes,
            http,
            deadline: entry.limits.deadline,
        })
    }

    /// Returns the known capabilities without effect.
    pub fn without_effect(&self) -> &[String] {
        &self.without_effect
    }
}

#[async_trait]
impl Tool for WasmPlugin {
    fn name(&self) -> &str {
        &self.name
    }

    fn adapter(&self) -> Option<&dyn ChannelAdapter> {
        match self.description.kind {
            PluginKind::Tool => None,
            PluginKind::ChannelAdapter => Some(self),
        }
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        self.description.definition.as_ref()
    }

    async fn call(&self, input: &str) -> ToolOutput {
        match self.lanes.call(CALL, input.as_bytes()).await {
            Ok(output) => describe::output(output),
            Err(error) => ToolOutput::failed(&error.to_string()),
        }
    }
}

#[async_trait]
impl ChannelAdapter for WasmPlugin {
    async fn parse_incoming(&self, body: &[u8]) -> Result<Incoming, String> {
        let output = self.lanes.call(INCOMING, body).await;
        Incoming::parse(&output.map_err(|error| error.to_string())?)
    }

    async fn format_outgoing(&self, content: &str) -> Result<Vec<u8>, String> {
        let input = serde_json::json!({ "content": content }).to_string();
        let output = self.lanes.call(OUTGOING, input.as_bytes()).await;
        output.map_err(|error| error.to_string())
    }

    async fn post(&self, url: &str, body: Vec<u8>) -> Result<Vec<u8>, PostError> {
        let answer = tokio::time::timeout(self.deadline, self.http.post(url, body)).await;
        answer.unwrap_or_else(|_| Err(PostError::Failed("timeout".to_owned())))
    }
}

/// Reads a module's file. A relative path is relative to the working directory.
async fn read(path: &str) -> Result<Vec<u8>, PluginError> {
    let owned = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || bounded::file(Path::new(&owned), MAX_MODULE));
    let unreadable = |why: String| PluginError::Unreadable {
        path: path.to_owned(),
        why,
    };
    match reading.await {
        Ok(Ok(code)) => Ok(code),
        Ok(Err(error)) => Err(unreadable(error.to_string())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
