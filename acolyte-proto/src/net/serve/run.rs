//! [`ChatReply`]: one chat, from an [`Agent`](super::Agent)'s point of view.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use http::request::Parts;
use rpc_core::Refused;
use rpc_core::net::{Cancellation, Handle};
use rpc_core::sync::Mutex;

use super::queue::{NotAdded, ResponseQueue, STEP_TOO_LARGE};
use crate::codec::encode_into;
use crate::error::{AppError, code};
use crate::event::{ChecklistTag, Event, ToolCall, ToolResult};
use crate::id::{RpcId, TaskId};
use crate::server::ServerConn;
use crate::tool_calls::ToolCalls;

/// Why an event was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The chat sends no more. Stop working.
    #[error("the chat has ended")]
    Stopped,
    /// The event cannot be sent: it is `error`, which ends a chat; it is the output or result of a
    /// tool that was not called before; or it is not JSON. The same event would be refused again.
    #[error("the event cannot be sent: {0}")]
    Invalid(String),
}

/// A handle to one running chat. Cheap to clone.
#[derive(Clone)]
pub struct ChatReply {
    pub(super) origin: Arc<Origin>,
    pub(super) cancellation: Cancellation,
}

/// The peer, and the head of its upgrade request.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: Option<SocketAddr>,
    pub(super) parts: Arc<Parts>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, parts: Arc<Parts>) -> Self {
        Self {
            address: Some(address).filter(|address| !address.ip().is_unspecified()),
            parts,
        }
    }
}

/// The origin of a chat, and the destination of its steps.
pub(super) struct Origin {
    pub(super) client: Client,
    /// The name under which checklists are sent.
    pub(super) checklist: ChecklistTag,
    pub(super) output: Output,
}

/// The destination of a chat's steps.
pub(super) enum Output {
    /// To the machine of a WebSocket.
    Connection {
        handle: Handle<ServerConn>,
        id: RpcId,
        task_id: TaskId,
    },
    /// Into the body of an HTTP answer.
    Body {
        queue: Arc<ResponseQueue>,
        /// The calls that outputs and results of tools must refer to.
        tools: Mutex<ToolCalls>,
    },
}

impl ChatReply {
    /// Returns the request's id, for logs; `None` over HTTP.
    #[must_use]
    pub fn id(&self) -> Option<&RpcId> {
        match &self.origin.output {
            Output::Connection { id, .. } => Some(id),
            Output::Body { .. } => None,
        }
    }

    /// Returns the id of the task, whose state the server tracks; `None` over HTTP, where chats are
    /// not tasks.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        match &self.origin.output {
            Output::Connection { task_id, .. } => Some(task_id),
            Output::Body { .. } => None,
        }
    }

    /// Returns the client's address; `None` if the transport has none.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.origin.client.address
    }

    /// Returns the upgrade request, or the request of a chat over HTTP: headers, URI and extensions.
    /// Empty over other transports.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.origin.client.parts
    }

    /// Sends a step at once; steps sent without a wait between them leave together. While the
    /// client reads more slowly than the chat produces steps, this waits, until the write timeout
    /// closes the connection.
    ///
    /// # Errors
    /// [`EmitError`]. A step that is too large for a message ends the chat with an error.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was sent.
    pub async fn emit(&self, event: &Event) -> Result<(), EmitError> {
        if matches!(event, Event::Error(_)) {
            let why = "`error` is the end of a chat; return it".to_owned();
            return Err(EmitError::Invalid(why));
        }
        match &self.origin.output {
            Output::Connection {
                handle,
                id,
                task_id,
            } => write(handle, id, task_id, event).await,
            Output::Body { queue, tools } => {
                let renamed = self.origin.checklist.rename(event);
                let written = renamed.as_ref().unwrap_or(event);
                let stray = |why: &str| NotAdded::Refused(Refused::invalid("event", why));
                loop {
                    let added = {
                        let mut tools = tools.lock();
                        let add = || queue.add(|buffer| encode_into(written, buffer));
                        tools.sent(event, stray, add)
                    };
                    match added {
                        Ok(()) => return Ok(()),
                        Err(NotAdded::Full) => queue.room().await,
                        Err(NotAdded::Stopped) => return Err(EmitError::Stopped),
                        Err(NotAdded::Refused(refused)) => return Err(invalid(&refused)),
                    }
                }
            }
        }
    }

    /// Sends more of the model's text, as [`emit`](Self::emit) does.
    ///
    /// # Errors
    /// [`EmitError::Stopped`] if the chat was aborted or its client has left: stop the work.
    ///
    /// # Cancel safety
    /// As for [`emit`](Self::emit).
    pub async fn text(&self, text: &str) -> Result<(), EmitError> {
        self.emit(&Event::text(text)).await
    }

    /// Announces the call of a tool, does its work, and reports its result, or the code and the
    /// detail of its failure.
    ///
    /// # Errors
    /// [`EmitError`], as for [`emit`](Self::emit). The outcome of the work is inside.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work; the client gets no result then.
    pub async fn tool<T>(
        &self,
        call: ToolCall,
        work: impl Future<Output = Result<T, AppError>>,
    ) -> Result<Result<T, AppError>, EmitError> {
        let (id, name) = (call.id.clone(), call.name.clone());
        self.emit(&Event::ToolCall(call)).await?;
        let outcome = work.await;
        let mut result = ToolResult::ok(id, name);
        if let Err(error) = &outcome {
            result = ToolResult::failed(result.id, result.name);
            result.code.clone_from(&error.code);
            result.detail.clone_from(&error.detail);
        }
        self.emit(&Event::ToolResult(result)).await?;
        Ok(outcome)
    }

    /// Returns whether the chat was aborted: then start nothing more, in particular no tool.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Waits until the chat is aborted.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn cancelled(&self) {
        self.cancellation.clone().cancelled().await;
    }

    /// Like [`cancelled`](Self::cancelled), as a value to pass on to what the chat starts.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }
}

/// Writes a step to the machine as soon as there is room. A step that is too large for a message
/// ends the chat with an error.
async fn write(
    handle: &Handle<ServerConn>,
    id: &RpcId,
    task_id: &TaskId,
    event: &Event,
) -> Result<(), EmitError> {
    let written = handle.retry(|conn| {
        // The client may have used the id again.
        if !conn.is_running(id, task_id) {
            return Some(Err(EmitError::Stopped));
        }
        match conn.event(id, event) {
            Ok(()) => Some(Ok(())),
            Err(Refused::QueueFull) => None,
            Err(Refused::TooLarge { .. }) => match conn.fail(id, &AppError::failed(STEP_TOO_LARGE))
            {
                Err(Refused::QueueFull) => None,
                _ => Some(Err(EmitError::Stopped)),
            },
            Err(refused @ (Refused::Encode { .. } | Refused::Invalid { .. })) => {
                Some(Err(invalid(&refused)))
            }
            Err(_) => Some(Err(EmitError::Stopped)),
        }
    });
    written.await
}

/// Lets an agent end with `?` once its client is gone.
impl From<EmitError> for AppError {
    fn from(error: EmitError) -> Self {
        let code = matches!(error, EmitError::Stopped).then_some(code::ABORTED.into());
        Self {
            code,
            ..Self::failed(error.to_string())
        }
    }
}

impl From<Refused> for AppError {
    fn from(error: Refused) -> Self {
        Self::failed(error.to_string())
    }
}

fn invalid(refused: &Refused) -> EmitError {
    EmitError::Invalid(refused.to_string())
}

rpc_core::debug_fields!([] ChatReply, this => {
    id: this.id(),
    task_id: this.task_id(),
    is_cancelled: this.is_cancelled(),
});
