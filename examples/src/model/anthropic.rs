//! Models behind the Anthropic Messages API.

mod answer;
#[cfg(feature = "llm")]
mod client;
mod request;
#[cfg(all(test, feature = "llm"))]
mod tests;

pub use answer::Events;
#[cfg(feature = "llm")]
pub use client::{Anthropic, AnthropicConfig};
pub use request::request_body;
