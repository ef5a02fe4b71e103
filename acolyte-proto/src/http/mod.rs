//! HTTP and server-sent events, without sockets: the URLs of the endpoints, the body of a chat, and
//! the frames of its stream.
//!
//! A chat over HTTP is `POST /v1/chat/stream` with a [`ChatRequest`](crate::frame::ChatRequest) as
//! its body, and a stream of [`StreamFrame`]s as its response. It has no queue and no task; hanging
//! up aborts it.

mod body;
mod stream;
mod url;

pub(crate) use crate::limits::{RPC_PATH, STATUS_PATH, STREAM_PATH};
pub use body::read_body;
#[cfg(feature = "server")]
pub(crate) use body::refusal;
#[cfg(feature = "server")]
pub(crate) use stream::{KEEP_ALIVE, push_data};
pub use stream::{StreamDecoder, StreamError, StreamFrame};
#[cfg(feature = "ws")]
pub(crate) use url::rpc_url;
#[cfg(feature = "sse")]
pub(crate) use url::{status_url, stream_url};

/// The content type of a stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";
/// The body of the `401` response to a missing or wrong key.
pub(crate) const UNAUTHORIZED: &str = "Unauthorized";
/// The body of the `404` response, also to a wrong method.
pub(crate) const NOT_FOUND: &str = "Not Found";
/// The body of the `400` response to a `GET` of the WebSocket's path that is not an upgrade.
pub(crate) const UPGRADE_FAILED: &str = "WebSocket upgrade failed";
