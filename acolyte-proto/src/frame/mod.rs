//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.
//!
//! Decoded frames borrow from the text. `into_owned` copies what has to live longer.

mod chat;
mod client;
mod open;
mod reply;
mod server;
mod status;
mod task;

pub use chat::{ChatRequest, HistoryItem, HistoryKind, RequestFault, Role, Skill};
pub use client::{ClientFrame, Request};
pub use open::Extra;
pub(crate) use open::{owned, to_raw};
pub use reply::{PromptBreakdown, Reply, ReplyUsage};
pub use rpc_core::decode::Unknown;
pub use server::{Answer, ServerFrame};
pub use status::Status;
pub use task::{Task, TaskState};
