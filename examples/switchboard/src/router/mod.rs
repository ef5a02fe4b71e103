//! The parts of the program `router`: a router that asks a language model, notes in a file, and
//! helpers to show messages and notifications.

pub mod model;
mod notes;
mod numbers;

pub use model::{Chooser, ModelRouter};
pub use notes::{Note, Notes, asks_for_notes};
pub use numbers::Numbers;
