//! One WebSocket connection from its upgrade to its end, with its running chat.

use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::{AbortHandle, abortable};
use rpc_core::net::telemetry::{CallOutcome, CallSpan, Side, server_call};
use rpc_core::net::{Cancellation, Canceller, ConnectionHandler, Handle, Running, time};
use rpc_core::{CloseFrame, CloseReason, Machine, Refused};

use super::agent::Agent;
use super::daemon::Daemon;
use super::queue::End;
use super::run::{ChatReply, Client, Origin, Output};
use crate::error::AppError;
use crate::frame::ChatRequest;
use crate::id::{RpcId, TaskId};
use crate::net::SYSTEM;
use crate::server::{SHUTTING_DOWN, ServerConn, ServerEvent};
use crate::task::TaskState;

/// Starts and ends the work on the chats of one connection.
pub(super) struct Handler<A> {
    pub(super) shared: Arc<Daemon<A>>,
    pub(super) client: Client,
    pub(super) handle: Handle<ServerConn>,
    /// The last started chat.
    pub(super) work: Option<Work>,
}

pub(super) struct Work {
    id: RpcId,
    /// Asks the agent to stop.
    canceller: Canceller,
    /// Drops the work.
    abort: AbortHandle,
}

impl<A: Agent> ConnectionHandler for Handler<A> {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, tasks: &mut Running) -> Option<CloseReason> {
        match event {
            ServerEvent::Start {
                id,
                task_id,
                request,
            } => self.start(id, task_id, *request, tasks),
            ServerEvent::Abort { id } => {
                CallSpan::new(Side::Server, SYSTEM, "chat.abort").end(CallOutcome::Ok);
                if let Some(work) = self.work.as_ref().filter(|work| work.id == id) {
                    work.canceller.cancel();
                    // A step that waits for room is not wanted any more.
                    self.handle.notify();
                }
            }
            ServerEvent::GivenUp { id } => {
                if let Some(work) = self.work.take_if(|work| work.id == id) {
                    work.abort.abort();
                }
            }
            ServerEvent::StatusGet { id } => {
                let (shared, handle) = (Arc::clone(&self.shared), self.handle.clone());
                tasks.push(async move {
                    let status = pin!(shared.status());
                    let status = server_call(SYSTEM, "status.get", status, |_| true).await;
                    write(&handle, |conn| conn.status(&id, &status)).await;
                });
            }
            ServerEvent::TaskStatus { id, task_id } => {
                CallSpan::new(Side::Server, SYSTEM, "task.status").end(CallOutcome::Ok);
                let task = self.shared.tasks.lock().get(&task_id).cloned();
                let handle = self.handle.clone();
                tasks.push(async move {
                    write(&handle, |conn| conn.task_status(&id, task.as_ref())).await;
                });
            }
            ServerEvent::Task { task_id, state } => {
                let mut tasks = self.shared.tasks.lock();
                let before = tasks.get(&task_id).map(|task| task.state);
                let waited = before.is_some_and(|it| it != TaskState::Running);
                if state == TaskState::Cancelled && waited {
                    // It is no work that could count itself.
                    CallSpan::new(Side::Server, SYSTEM, "chat.start").end(CallOutcome::Cancelled);
                }
                let noted = tasks.note(&task_id, state, SystemTime::now());
                drop(tasks);
                if let Err(error) = noted {
                    tracing::warn!(%task_id, %error, "the state of a task was not recorded");
                }
            }
            ServerEvent::Warning(error) => tracing::debug!(%error, "a message was refused"),
            ServerEvent::Writable => self.handle.notify(),
            ServerEvent::Closed(reason) => return Some(reason),
        }
        None
    }

    /// Accepts no more chats, and lets the running one end.
    fn shut_down(&mut self, tasks: &mut Running) {
        self.handle.with(ServerConn::stop_taking);
        let (handle, timeout) = (self.handle.clone(), self.shared.shutdown_timeout);
        tasks.push(async move {
            let frame = CloseFrame::new(CloseFrame::GOING_AWAY, SHUTTING_DOWN);
            handle.drain(timeout, frame).await;
        });
    }
}

impl<A: Agent> Handler<A> {
    fn start(&mut self, id: RpcId, task_id: TaskId, request: ChatRequest, tasks: &mut Running) {
        let (canceller, cancellation) = Cancellation::new();
        let origin = Origin {
            client: self.client.clone(),
            checklist: self.shared.connection.checklist,
            output: Output::Connection {
                handle: self.handle.clone(),
                id: id.clone(),
                task_id,
            },
        };
        let run = ChatReply {
            origin: Arc::new(origin),
            cancellation,
        };
        let (shared, handle, chat) = (Arc::clone(&self.shared), self.handle.clone(), id.clone());
        let work = async move {
            let end = shared.work(run, request).await;
            write(&handle, |conn| write_end(conn, &chat, &end)).await;
        };
        let (work, abort) = abortable(work);
        tasks.push(async move {
            // It has ended or was given up; the machine knows.
            let _ = work.await;
        });
        self.work = Some(Work {
            id,
            canceller,
            abort,
        });
    }
}

/// Writes as soon as there is room. Other refusals are permanent: the chat or the client is gone.
async fn write(
    handle: &Handle<ServerConn>,
    mut write: impl FnMut(&mut ServerConn) -> Result<(), Refused>,
) {
    let written = handle.retry(|conn| (write(conn) != Err(Refused::QueueFull)).then_some(()));
    written.await;
}

/// Ends a chat.
fn write_end(conn: &mut ServerConn, id: &RpcId, end: &End) -> Result<(), Refused> {
    let mut sent = match end {
        Ok(reply) => conn.done(id, reply),
        Err(error) => conn.fail(id, error),
    };
    if let Err(Refused::TooLarge { .. } | Refused::Encode { .. }) = sent {
        let error = AppError::failed("The reply is too large to be sent.");
        sent = conn.fail(id, &error);
    }
    if let Err(Refused::TooLarge { .. }) = sent {
        // The limits leave no room for any end: better no connection than a chat for ever.
        let frame = CloseFrame::new(CloseFrame::TOO_BIG, "no end of the chat fits");
        conn.close_with(frame, time::now());
    }
    sent
}

#[cfg(test)]
mod tests;
