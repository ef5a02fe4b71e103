//! [`AppError`] and [`ErrorDetail`], the failure of a chat; [`RpcError`], that of a request;
//! [`FrameError`].

mod chat;
mod frame;
mod mismatch;
mod rpc;

pub use chat::{AppError, ErrorDetail};
pub use frame::FrameError;
pub use mismatch::Mismatch;
pub use rpc::{ErrorKind, RpcError};
pub(crate) use rpc::{INVALID_MESSAGE, already_running, queue_full};

/// Codes that known servers use in `errorCode` and [`ErrorDetail::code`]. The set is open: expect
/// others, also those of an operating system such as `ENOENT`.
pub mod code {
    /// The chat was aborted. Sent by servers of this crate only.
    pub const ABORTED: &str = "E_ABORTED";
    /// The most common code by far.
    pub const UNKNOWN: &str = "E_UNKNOWN";
    /// Something took too long.
    pub const TIMEOUT: &str = "E_TIMEOUT";
    /// A tool found no such file.
    pub const FILE_NOT_FOUND: &str = "E_FILE_NOT_FOUND";
    /// A budget of tokens or of tool calls is used up.
    pub const BUDGET_EXHAUSTED: &str = "E_BUDGET_EXHAUSTED";
    /// The chat named no model that the server knows.
    pub const MODEL_NOT_CONFIGURED: &str = "E_MODEL_NOT_CONFIGURED";
    /// The model's provider cannot be used.
    pub const MODEL_PROVIDER_UNAVAILABLE: &str = "E_MODEL_PROVIDER_UNAVAILABLE";
    /// A tool was asked to leave the workspace.
    pub const SANDBOX_VIOLATION: &str = "E_SANDBOX_VIOLATION";
}
