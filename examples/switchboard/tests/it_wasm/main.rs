//! Plugins in WebAssembly, loaded and called as the gateway does it. The modules are the texts in
//! `tests/plugins`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod calls;
mod hanging;
mod loading;
mod network;
mod wire;

use std::path::Path;
use std::time::Duration;

use switchboard::gateway::tool::{
    LoadWarning, PluginEntry, PluginLimits, ToolOutput, Tools, load as load_all,
};

fn entry(name: &str) -> PluginEntry {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins");
    let path = folder.join(format!("{name}.wat"));
    PluginEntry::new(name, path.to_string_lossy())
}

fn with_limits(entry: PluginEntry, limits: PluginLimits) -> PluginEntry {
    PluginEntry { limits, ..entry }
}

fn with_capabilities(entry: PluginEntry, capabilities: Vec<String>) -> PluginEntry {
    PluginEntry {
        capabilities,
        ..entry
    }
}

/// Limits that end a call that hangs soon.
fn impatient() -> PluginLimits {
    PluginLimits::default().with_deadline(Duration::from_millis(300))
}

/// Loads plugins that have to be fine.
async fn load(entries: impl IntoIterator<Item = PluginEntry>) -> Tools {
    let (tools, warnings) = load_all(entries).await;
    assert_eq!(warnings, []);
    tools
}

/// The texts of the warnings of one plugin, without the plugin's name.
async fn warnings(entry: PluginEntry) -> Vec<String> {
    let start = format!("plugin {:?}", entry.name);
    let (_, warnings) = load_all([entry]).await;
    let texts = warnings.iter().map(LoadWarning::to_string);
    texts
        .map(|text| text.strip_prefix(&start).expect("its name").to_owned())
        .collect()
}

fn failed(reason: &str) -> ToolOutput {
    ToolOutput::error(format!("tool execution failed: {reason}"))
}
