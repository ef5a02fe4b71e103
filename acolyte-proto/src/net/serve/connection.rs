//! One WebSocket connection from its upgrade to its end, with the chat that runs on it.

use std::future::{Future, pending, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use rpc_core::net::{Cancellation, Canceller, Link, LinkEvent, Running, Transport};
use rpc_core::{CloseFrame, Refused};

use super::agent::Agent;
use super::outlet::{Bell, Outlet};
use super::protocol::{Line, ServerSide};
use super::run::{Origin, Run};
use super::shared::Shared;
use crate::frame::ChatRequest;
use crate::id::{RpcId, TaskId};
use crate::server::{SHUTTING_DOWN, ServerConn, ServerEvent};

/// Tells the agent that the client is gone, however the connection's task ends.
struct Leave(Arc<Line>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// One connection, as its own task sees it.
struct Desk<A> {
    shared: Arc<Shared<A>>,
    address: Option<SocketAddr>,
    link: Link<ServerSide>,
    line: Arc<Line>,
    /// The work on the running chat, on the connection's own task: it goes when that goes.
    work: Option<Work>,
    /// Answers that are being made, and the drain.
    aside: Running,
}

struct Work {
    id: RpcId,
    canceller: Canceller,
    future: BoxFuture<'static, ()>,
}

/// Not an `async fn`, and nothing around the futures: each layer would hold a second copy of them,
/// and there is one for every idle connection.
pub(super) fn serve<A: Agent>(
    shared: Arc<Shared<A>>,
    transport: impl Transport,
    address: Option<SocketAddr>,
) -> impl Future<Output = ()> {
    let line = Arc::new(Line::default());
    let leave = Leave(Arc::clone(&line));
    let seen = Arc::clone(&line);
    let side = ServerSide::new(
        Arc::clone(&shared.connection),
        Arc::clone(&shared.tasks),
        Arc::clone(&line),
    );
    let (link, mut events, connection) =
        rpc_core::net::over(side, transport, Arc::clone(&shared.link));
    let mut stopping = shared.stopping.get();
    let mut desk = Desk {
        shared,
        address,
        link,
        line,
        work: None,
        aside: Running::new(),
    };
    let work = async move {
        let _leave = leave;
        let mut stopped = pin!(stopping.cancelled());
        let mut ending = false;
        loop {
            // What is written in this turn leaves in it, because the connection is polled behind it.
            let turn = poll_fn(|_| {
                if let Some(outlet) = desk.line.outlet() {
                    outlet.begin_turn();
                }
                Poll::<()>::Pending
            });
            tokio::select! {
                biased;
                () = turn => {}
                event = events.next() => match event {
                    None => break,
                    Some(LinkEvent::Event(event)) => desk.take(event),
                    Some(_) => {}
                },
                () = desk.aside.next() => {}
                () = worked(&mut desk.work) => desk.work = None,
                () = gone(&desk.line) => break,
                () = &mut stopped, if !ending => {
                    ending = true;
                    desk.drain();
                }
            }
        }
    };
    // The connection is polled behind the work, so the end that it meets is news for the work.
    let end = poll_fn(move |turn| {
        if seen.is_gone() {
            turn.waker().wake_by_ref();
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    future::join3(work, connection.run(), end).map(drop)
}

/// Waits for the end of the work on a chat; for ever while there is none.
async fn worked(work: &mut Option<Work>) {
    match work {
        Some(work) => (&mut work.future).await,
        None => pending().await,
    }
}

/// Waits until the client has left. Only for the connection's own task, which looks for the end
/// after each of its turns and takes another one when it comes.
async fn gone(line: &Line) {
    poll_fn(|_| {
        if line.is_gone() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

impl<A: Agent> Desk<A> {
    fn take(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Start {
                id,
                task_id,
                request,
            } => self.start(id, task_id, *request),
            ServerEvent::Abort { id } => {
                if let Some(outlet) = self.line.outlet() {
                    outlet.stop();
                }
                if let Some(work) = self.work.as_ref().filter(|work| work.id == id) {
                    work.canceller.cancel();
                }
            }
            ServerEvent::GivenUp { id } => {
                if self.work.take_if(|work| work.id == id).is_some() {
                    self.line.forget();
                }
            }
            ServerEvent::StatusGet { id } => {
                let shared = Arc::clone(&self.shared);
                let answer = self.answerer();
                self.aside.push(async move {
                    let status = shared.status().await;
                    answer.give(move |conn| conn.status(&id, &status)).await;
                });
            }
            ServerEvent::TaskStatus { id, task_id } => {
                let task = {
                    let tasks = self.shared.tasks.lock();
                    let tasks = tasks.unwrap_or_else(PoisonError::into_inner);
                    tasks.get(&task_id).cloned()
                };
                let answer = self.answerer();
                self.aside.push(async move {
                    let give = move |conn: &mut ServerConn| conn.task_status(&id, task.as_ref());
                    answer.give(give).await;
                });
            }
            ServerEvent::Warning(error) => {
                tracing::debug!(%error, "a message was no request");
            }
            ServerEvent::Writable => {
                if let Some(outlet) = self.line.outlet() {
                    outlet.resume();
                }
                self.line.writable.notify_waiters();
            }
            ServerEvent::Task { .. } | ServerEvent::Closed(_) => {}
        }
    }

    fn start(&mut self, id: RpcId, task_id: TaskId, request: ChatRequest) {
        let bell = Bell::Link(self.link.downgrade());
        let outlet = Arc::new(Outlet::new(bell, &self.shared.connection.limits));
        let (canceller, cancellation) = Cancellation::new();
        self.line.begin(id.clone(), Arc::clone(&outlet));
        let origin = Origin {
            address: self.address,
            ids: Some((id.clone(), task_id)),
            waiting: Arc::clone(&self.line.waiting),
            checklist: self.shared.connection.checklist,
        };
        let run = Run {
            origin: Arc::new(origin),
            outlet: Arc::clone(&outlet),
            cancellation,
        };
        let shared = Arc::clone(&self.shared);
        let future = Box::pin(async move {
            let end = shared.work(run, request).await;
            outlet.end(end);
        });
        self.work = Some(Work {
            id,
            canceller,
            future,
        });
    }

    fn answerer(&self) -> Answerer {
        Answerer {
            link: self.link.clone(),
            line: Arc::clone(&self.line),
        }
    }

    /// The server ends: takes no more chats, and lets the running one come to its end.
    fn drain(&mut self) {
        let link = self.link.clone();
        let timeout = self.shared.shutdown_timeout;
        self.aside.push(async move {
            let told = link.command(|conn, _| conn.stop_taking()).await;
            if told.is_ok() {
                let frame = CloseFrame::new(CloseFrame::GOING_AWAY, SHUTTING_DOWN);
                link.drain_with(timeout, frame).await;
            }
        });
    }
}

/// Brings an answer to the machine.
struct Answerer {
    link: Link<ServerSide>,
    line: Arc<Line>,
}

impl Answerer {
    /// Tries until there is room for it.
    async fn give(
        self,
        answer: impl Fn(&mut ServerConn) -> Result<(), Refused> + Send + Sync + 'static,
    ) {
        let answer = Arc::new(answer);
        loop {
            // Made before the try, so that no room is missed.
            let writable = self.line.writable.notified();
            let attempt = Arc::clone(&answer);
            match self.link.command(move |conn, _| attempt(conn)).await {
                Ok(Err(Refused::QueueFull)) => writable.await,
                _ => return,
            }
        }
    }
}
