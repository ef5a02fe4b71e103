//! Models behind the OpenAI chat-completion interface, of any provider.

mod answer;
#[cfg(feature = "llm")]
mod client;
#[cfg(all(test, feature = "llm"))]
mod tests;
mod think;

pub use answer::Chunks;
#[cfg(feature = "llm")]
pub use client::{OpenAi, OpenAiConfig};
