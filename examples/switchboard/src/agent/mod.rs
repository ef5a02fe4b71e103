//! An agent that speaks ConnectOnion: its tools, its work, and what its host keeps.

pub mod calculator;
mod lists;
mod spent;
pub mod tools;
mod worker;

pub use lists::Lists;
pub use spent::SpentFile;
pub use worker::{SYSTEM, Worker};
