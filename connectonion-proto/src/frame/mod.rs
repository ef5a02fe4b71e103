//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.
//!
//! Every type is a plain `serde` type that owns its contents; texts are [`Str`](rpc_core::Str),
//! cheap to clone, and values that stay unread are [`Json`](rpc_core::Json), as they were sent.
//!
//! Conversations, payloads and lists stay raw: a [`Session`] of megabytes that is only passed on is
//! not parsed, and what was signed stays as it was sent. Types with a reader of their own say so.

mod chat;
mod client;
mod connect;
mod event;
mod input;
mod json;
mod number;
mod onboard;
mod reply;
mod response;
mod server;
mod session;
mod signed;
mod words;

pub use chat::{ChatItem, ChatItemKind};
pub use client::ClientFrame;
pub use connect::{AdminRequest, Connect, OnboardSubmit, SessionQuery};
pub(crate) use event::Replay;
pub use event::{
    ApprovalNeeded, AskField, AskUser, BatchItem, Compact, Complete, DiffPreview, Eval, EventKind,
    FilesReceived, Intent, LlmCall, ModeChanged, PlanReview, ReceivedFile, StreamEvent, TextDelta,
    Thinking, ToolBlocked, ToolCall, ToolResult, UlwTurnsReached, Usage, UserInput,
};
pub use input::{Attachment, Input};
pub use number::Number;
pub use onboard::{AdminResult, OnboardRequired, OnboardSuccess};
pub use reply::{Connected, ErrorFrame, Output, RuntimeInputAck, SessionState, SessionStatus};
pub use response::{Answer, Approval, ModeChange, PromptUpdate, Response, Ulw};
pub use server::ServerFrame;
pub use session::Session;
pub use signed::Signed;
pub use words::{AdminAction, Mode, OnboardMethod, Rejection, Scope, ToolStatus, UlwAction};
