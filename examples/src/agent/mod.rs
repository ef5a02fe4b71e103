//! An agent that speaks ConnectOnion: its tools, its work, its page.

pub mod calculator;
mod folder;
pub mod page;
pub mod tools;
mod worker;

pub use folder::{Folder, MAX_FILE};
pub use worker::{SYSTEM, Worker};
