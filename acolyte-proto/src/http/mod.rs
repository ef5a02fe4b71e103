//! HTTP and server-sent events, as far as they need no socket: where the endpoints are, the body of a
//! chat, and the frames of its stream.
//!
//! A chat over HTTP is `POST /v1/chat/stream` with a [`ChatRequest`](crate::frame::ChatRequest) as its body,
//! and the stream of [`StreamFrame`]s that answers it: no queue, no task, no abort but hanging up.

mod body;
mod stream;
mod url;

pub use crate::limits::{HEALTH_PATH, RPC_PATH, SHUTDOWN_PATH, STATUS_PATH, STREAM_PATH};
pub use body::{BodyError, read_body};
#[cfg(feature = "server")]
pub(crate) use stream::push_data;
pub use stream::{
    KEEP_ALIVE, StreamDecoder, StreamError, StreamFrame, write_done, write_error, write_event,
};
pub use url::{rpc_url, status_url, stream_url};

/// The content type of a stream.
pub const EVENT_STREAM: &str = "text/event-stream";
/// The body of the `401` answer to a missing or wrong key.
pub const UNAUTHORIZED: &str = "Unauthorized";
/// The body of the `404` answer, also to a wrong method.
pub const NOT_FOUND: &str = "Not Found";
/// The body of the `400` answer to a `GET` of the WebSocket's path that is no upgrade.
pub const UPGRADE_FAILED: &str = "WebSocket upgrade failed";
/// The content type of those answers.
pub const PLAIN_TEXT: &str = "text/plain;charset=utf-8";
