//! The parts of the AI gateway: its configuration, memory, tools, HTTP, and the engine.

pub mod backend;
pub mod config;
pub mod engine;
pub mod memory;
pub mod page_chats;
#[cfg(feature = "wasm")]
pub mod plugin;
pub mod setup;
pub mod site;
pub mod store;
pub mod tool;
pub mod usage;
#[doc(hidden)]
#[cfg(unix)]
pub mod usage_socket;
