//! The parts of the AI gateway: its configuration, memory, tools and page.

#[cfg(feature = "wasm")]
pub mod plugin;
pub mod tool;
