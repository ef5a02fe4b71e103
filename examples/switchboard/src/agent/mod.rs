//! An agent that speaks ConnectOnion: its tools, its work, and what its host keeps.

pub mod tools;
mod trust_lists;
mod used_signatures;
mod worker;

pub use trust_lists::Lists;
pub use used_signatures::SpentFile;
pub use worker::{SYSTEM, Worker};
