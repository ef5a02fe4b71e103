//! [`ServerEvent`]: what a connection reports to the application.

use rpc_core::CloseReason;

use crate::error::FrameError;
use crate::frame::ChatRequest;
use crate::id::{RpcId, TaskId};
use crate::task::TaskState;

/// An event on a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The new state of a chat's task; `accepted` is the first. Pass it to the
    /// registry of all connections.
    Task {
        /// The task.
        task_id: TaskId,
        /// Its state.
        state: TaskState,
    },
    /// A chat starts: work on it, one at a time. End it with [`done`](super::ServerConn::done) or
    /// [`fail`](super::ServerConn::fail).
    Start {
        /// The chat.
        id: RpcId,
        /// Its task.
        task_id: TaskId,
        /// The request.
        request: Box<ChatRequest>,
    },
    /// The running chat was aborted: stop the work on it *now*. Nothing more is sent for it. Call
    /// [`done`](super::ServerConn::done) or [`fail`](super::ServerConn::fail) when the work has
    /// stopped: then the next chat starts.
    Abort {
        /// The chat.
        id: RpcId,
    },
    /// The work on an aborted chat has not stopped in time, and the next chat starts: drop the
    /// work.
    GivenUp {
        /// The chat.
        id: RpcId,
    },
    /// The client requests the status: answer with [`status`](super::ServerConn::status).
    StatusGet {
        /// The request.
        id: RpcId,
    },
    /// The client requests a task, of any connection: answer with
    /// [`task_status`](super::ServerConn::task_status).
    TaskStatus {
        /// The request.
        id: RpcId,
        /// The task.
        task_id: TaskId,
    },
    /// A message was not a valid request; it was answered with an error.
    Warning(FrameError),
    /// A command was refused with [`Refused::QueueFull`](rpc_core::Refused::QueueFull), and frames
    /// have left since: retry.
    Writable,
    /// The connection has ended, with all its chats. The last event.
    Closed(CloseReason),
}
