//! Models behind OpenAI's Responses API.

mod answer;
mod request;

pub use answer::Events;
pub use request::request_body;
