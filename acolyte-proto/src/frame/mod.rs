//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.

mod chat;
mod client;
mod history;
mod open;
mod reply;
mod server;
mod status;
pub(crate) mod task;
mod time;

pub use chat::{ChatRequest, Skill};
pub use client::{ClientFrame, Request};
pub use history::{HistoryItem, HistoryKind, Role};
pub use open::Extra;
pub(crate) use open::keep_extra;
pub use reply::{Reply, ReplyUsage};
pub use server::{AbortResult, Answer, Refusal, ServerFrame};
pub use status::Status;
