//! [`ServerEvent`]: what happened on a connection.

use rpc_core::CloseReason;

use crate::error::FrameError;
use crate::frame::ChatRequest;
use crate::id::{RpcId, TaskId};
use crate::task::TaskState;

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A chat's task is in this state now; `accepted` is the first. For the
    /// [registry](crate::task::TaskRegistry) of all connections.
    Task {
        /// The task.
        task_id: TaskId,
        /// Its state.
        state: TaskState,
    },
    /// A chat starts: work on it, one at a time. Bring it to its end with
    /// [`done`](super::ServerConn::done) or [`fail`](super::ServerConn::fail).
    Start {
        /// The chat.
        id: RpcId,
        /// Its task.
        task_id: TaskId,
        /// What is asked for.
        request: Box<ChatRequest>,
    },
    /// The running chat was aborted: stop the work on it *now*. Nothing more is sent for it. Say
    /// when the work has stopped, with [`done`](super::ServerConn::done) or
    /// [`fail`](super::ServerConn::fail): then the next chat starts.
    Abort {
        /// The chat.
        id: RpcId,
    },
    /// The work on an aborted chat has not stopped in time, and the next chat starts: drop it.
    GivenUp {
        /// The chat.
        id: RpcId,
    },
    /// The client asks how the server is: [`status`](super::ServerConn::status) answers.
    StatusGet {
        /// The request.
        id: RpcId,
    },
    /// The client asks for a task, of whatever connection:
    /// [`task_status`](super::ServerConn::task_status) answers.
    TaskStatus {
        /// The request.
        id: RpcId,
        /// The task.
        task_id: TaskId,
    },
    /// A message was no request, and was answered so.
    Warning(FrameError),
    /// A command was refused with [`Refused::QueueFull`](rpc_core::Refused::QueueFull), and frames
    /// have left since: try again.
    Writable,
    /// The connection has ended, and with it its chats. The last event.
    Closed(CloseReason),
}
