//! An agent that speaks ConnectOnion: its tools, its work, its page.

pub mod calculator;
mod lists;
pub mod page;
mod spent;
pub mod tools;
mod worker;

pub use lists::Lists;
pub use spent::SpentFile;
pub use worker::{SYSTEM, Worker};
