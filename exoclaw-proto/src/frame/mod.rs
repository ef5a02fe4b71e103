//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.
//!
//! Decoded frames borrow from the text. `into_owned` copies what has to live longer; `to_shared`
//! copies the frame's text once and cuts all pieces from it.

mod call;
mod client;
mod event;
mod method;
mod positional;
mod server;
mod types;

pub use call::{BorrowedCall, Call, ChatSend, OwnedCall, SessionRef};
pub use client::{ClientFrame, Request, Token};
pub use event::{BorrowedEvent, OwnedEvent, StreamEvent, ToolResult, ToolUse, Usage};
pub use method::Method;
pub(crate) use server::StreamFrame;
pub use server::{Hello, ServerFrame};
pub use types::{BudgetStatus, BudgetUse, Cleared, Fact, Plugin, Session, Status, Turn};
