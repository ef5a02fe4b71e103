//! Models behind Ollama's own interface.

mod answer;
mod request;

pub use answer::Lines;
pub use request::request_body;
