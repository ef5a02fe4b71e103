//! Models behind the OpenAI chat-completion interface, of any provider.

mod answer;
mod request;
#[cfg(all(test, feature = "llm"))]
mod tests;

pub use answer::Chunks;
pub use request::request_body;
