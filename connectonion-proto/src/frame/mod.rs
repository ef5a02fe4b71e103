//! The frames of the wire, typed: [`ClientFrame`] from client to server, [`ServerFrame`] back.
//!
//! Every type is generic over its texts and its raw JSON values: borrowed from the frame (`Cow<str>`,
//! [`RawJson`](rpc_core::decode::RawJson)) as it is decoded, or pieces of one shared copy
//! ([`SharedStr`](rpc_core::decode::SharedStr), [`SharedJson`](rpc_core::decode::SharedJson)), the
//! default, in what applications get and give.
//!
//! Conversations, payloads and lists stay raw: a [`Session`] of megabytes that is passed on is not
//! read, and what was signed is there as it was sent. What has a type of its own says how it is read.

mod body;
mod chat;
mod client;
mod connect;
mod event;
mod input;
mod json;
mod keep;
mod number;
mod onboard;
mod reply;
mod response;
mod server;
mod session;
mod signed;
mod word;

pub use chat::{ChatItem, ChatItemKind, ToolItem};
pub use client::ClientFrame;
pub use connect::{AdminRequest, Connect, OnboardSubmit, SessionQuery};
pub use event::{
    AgentImage, ApprovalNeeded, AskField, AskUser, Assistant, BatchItem, BorrowedEvent, Compact,
    Complete, DiffPreview, Eval, EventKind, FilesReceived, Intent, LlmCall, LlmResult, ModeChanged,
    OtherEvent, PlanReview, ReceivedFile, SessionSync, StreamEvent, Thinking, ToolBlocked,
    ToolCall, ToolResult, UlwTurnsReached, Usage, UserInput,
};
pub use input::{Attachment, Input};
pub use json::Json;
pub use number::Number;
pub use onboard::{AdminResult, OnboardRequired, OnboardSuccess};
pub use reply::{
    Connected, ErrorFrame, Newer, Output, RuntimeInputAck, SessionState, SessionStatus,
};
pub use response::{Answer, Approval, ModeChange, PromptUpdate, Response, Ulw};
pub use rpc_core::decode::Unknown;
pub use server::ServerFrame;
pub use session::Session;
pub use signed::Signed;
pub use word::{
    AdminAction, Mode, OnboardMethod, Phase, Rejection, Scope, Standing, ToolStatus, Trigger,
    UlwAction, Vocabulary, Word,
};
