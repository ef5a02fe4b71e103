//! The parts of the AI gateway: its configuration, memory, tools and page.

pub mod config;
#[doc(hidden)]
pub mod fuzzing;
pub mod memory;
pub mod store;
pub mod usage;
