//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.

mod call;
mod client;
mod event;
mod head;
mod method;
mod server;
mod types;

use rpc_core::DecodeError;
use rpc_core::json::DecodeErrorKind;

pub use call::{BudgetOf, Call, ChatHistory, ChatSend, MemorySearch, SessionRef};
pub use client::{ClientFrame, Request, Token};
pub use event::{StreamEvent, ToolResult, ToolUse, Usage};
pub use method::Method;
pub(crate) use server::Frequent;
pub use server::{Hello, ServerFrame};
pub use types::{BudgetStatus, BudgetUse, Cleared, Fact, Plugin, Session, Status, Turn};

/// Turns the error of content that must be an object into that of a frame.
fn no_object(error: DecodeError) -> DecodeError {
    match error.kind() {
        DecodeErrorKind::WrongType {
            member: "params" | "data",
            expected: "an object",
        } => error.with_kind(DecodeErrorKind::NotAnObject),
        _ => error,
    }
}
