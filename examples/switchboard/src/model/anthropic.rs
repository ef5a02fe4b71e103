//! Models behind the Anthropic Messages API.

mod answer;
mod request;
#[cfg(all(test, feature = "llm"))]
mod tests;

pub use answer::Events;
pub use request::request_body;

/// The version of the interface.
pub const VERSION: &str = "2023-06-01";
