//! [`ClientFrame`]: a request and its id.

use rpc_core::{DecodeError, Limits, json, tagged};

use super::chat::ChatRequest;
use crate::error::FrameError;
use crate::id::{RpcId, TaskId};

tagged! {
    /// One frame of a client: `{"id", "type", "payload"}`. Acolyte specification, *RPC baseline*.
    ///
    /// ```
    /// use acolyte_proto::frame::{ClientFrame, Request};
    /// use acolyte_proto::limits::defaults;
    ///
    /// let text = r#"{"id":"rpc_0a1b2c3d","type":"status.get"}"#;
    /// let frame = ClientFrame::decode(text, &defaults())?;
    /// assert_eq!((frame.id.as_str(), frame.request), ("rpc_0a1b2c3d", Request::StatusGet));
    /// # Ok::<(), acolyte_proto::error::FrameError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct ClientFrame {
        /// The request's id: every answer carries it.
        "id" => pub id: RpcId,
        /// The request.
        .. => pub request: Request,
    }
}

tagged! {
    /// A request of a client. Acolyte specification, *RPC baseline*.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Request by "type" in "payload" {
        /// Requests the server's status.
        "status.get" => StatusGet,
        /// Starts a chat, or queues it.
        "chat.start" => ChatStart(Box<ChatRequest>) in "request",
        /// Aborts a chat of this connection, by the id of its request.
        "chat.abort" => ChatAbort(RpcId) in "requestId",
        /// Requests the state of a task, of any connection.
        "task.status" => TaskStatus(TaskId) in "taskId",
    }
}

impl ClientFrame {
    /// Creates a frame from a request and its id.
    #[must_use]
    pub const fn new(id: RpcId, request: Request) -> Self {
        Self { id, request }
    }

    /// Decodes a request, strictly: a request that [`ChatRequest::decode`] refuses is refused, and
    /// so is an unknown type. Other members of the frame and of its payload are ignored.
    ///
    /// # Errors
    /// [`FrameError`], which knows the id to [reply to](FrameError::reply_to).
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, FrameError> {
        let checked = |frame: Self| match &frame.request {
            Request::Unknown { .. } => Err(DecodeError::bad_value("type", "a known type")),
            Request::ChatStart(request) => request.validate().map(|()| frame),
            _ => Ok(frame),
        };
        let frame = json::decode_js(text, limits).and_then(checked);
        frame.map_err(|error| FrameError::of::<Request>(text, limits, error))
    }
}
