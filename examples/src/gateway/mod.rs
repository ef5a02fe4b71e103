//! The parts of the AI gateway: its configuration, memory, tools and page.

pub mod page;
