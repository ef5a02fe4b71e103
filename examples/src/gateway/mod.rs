//! The parts of the AI gateway: its configuration, memory, tools and page.

pub mod config;
pub mod memory;
pub mod page;
pub mod store;
pub mod usage;
