//! The server's side of one connection: [`ServerConn`].
//!
//! The machine handles the protocol: it reads requests, decides which chat runs and which wait, and
//! sends what the end or the abort of a chat requires. The application does the work of the chats.

mod chats;
mod commands;
mod config;
mod event;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use rpc_core::{
    CloseFrame, CloseReason, Disconnect, Incoming, Instant, Machine, MachineCore, Outgoing,
    Refused, UniqueBits,
};

use crate::codec;
use crate::error::{AppError, ErrorDetail, INVALID_MESSAGE, code};
use crate::frame::{Answer, ClientFrame, Request, ServerFrame};
use crate::id::{ErrorId, RpcId, TaskId};
use crate::queue::Queue;
use crate::task::TaskState;

use chats::Chat;
pub use config::ServerConfig;
pub use event::ServerEvent;

/// The `error` for a chat that arrives during the shutdown.
pub(crate) const SHUTTING_DOWN: &str = "The server is shutting down.";
/// The `errorMessage` of an aborted chat.
pub const ABORTED: &str = "The chat was aborted.";

/// A request that awaits its answer.
#[derive(Debug)]
struct Query {
    id: RpcId,
    what: Question,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Status,
    Task,
}

/// The server's side of one open connection. Acolyte specification, *RPC baseline* and *Queue
/// semantics*.
///
/// One chat runs at a time, others wait in a queue. The machine answers starts and aborts
/// itself; it asks the application to work on a chat, to stop, and for answers about status and
/// tasks. Every accepted chat ends with `chat.done` or `chat.error`, aborted ones too, unless [the
/// configuration](ServerConfig::silent_aborts) or the end of the connection prevents it.
///
/// ```
/// use std::time::Instant;
/// use acolyte_proto::frame::Status;
/// use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};
/// use acolyte_proto::{Incoming, Machine};
///
/// let now = Instant::now();
/// let mut conn = ServerConn::new(ServerConfig::default(), 0x5eed, now);
/// let text = r#"{"id":"rpc_0a1b2c3d","type":"status.get"}"#;
/// conn.handle_message(Incoming::Text(text), now);
/// let Some(ServerEvent::StatusGet { id }) = conn.poll_event() else { panic!() };
/// conn.status(&id, &Status::new("echo", "http://localhost:6767"))?;
/// assert!(conn.poll_transmit().is_some()); // the reply: hand it to your socket
/// # Ok::<(), rpc_core::Refused>(())
/// ```
pub struct ServerConn {
    config: Arc<ServerConfig>,
    core: MachineCore<ServerEvent>,
    /// New chats are refused.
    draining: bool,
    queue: Queue<Chat>,
    chat_bytes: usize,
    queries: VecDeque<Query>,
    /// For the ids of tasks and errors.
    bits: UniqueBits,
}

impl ServerConn {
    /// Creates a connection that a client has just opened. `entropy` is fresh randomness for the
    /// ids of tasks.
    #[must_use]
    pub fn new(config: impl Into<Arc<ServerConfig>>, entropy: u64, now: Instant) -> Self {
        let config = config.into();
        let mut core = MachineCore::new(&config.limits).with_login();
        core.start_keepalive(&config.keep_alive, now);
        Self {
            core,
            draining: false,
            queue: Queue::new(config.max_queued),
            chat_bytes: 0,
            queries: VecDeque::new(),
            bits: UniqueBits::new(entropy.into()),
            config,
        }
    }

    /// Returns whether the client has made a request. There is no login.
    #[must_use]
    #[cfg(feature = "server")]
    pub(crate) const fn is_logged_in(&self) -> bool {
        self.core.is_logged_in()
    }

    /// Returns the running chat, unless it was aborted.
    #[must_use]
    pub fn running(&self) -> Option<&RpcId> {
        let (id, _) = self.queue.running()?;
        (!self.queue.is_aborted()).then_some(id)
    }

    /// Returns the number of waiting chats. A running chat may end early if one waits.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    fn on_text(&mut self, text: &str, now: Instant) {
        let frame = match ClientFrame::decode(text, &self.config.limits) {
            Ok(frame) => frame,
            Err(error) => {
                self.refuse(&error.reply_to(), INVALID_MESSAGE);
                return self.push(ServerEvent::Warning(error));
            }
        };
        self.core.log_in();
        let id = frame.id;
        match frame.request {
            Request::StatusGet => {
                self.ask(id.clone(), Question::Status, ServerEvent::StatusGet { id });
            }
            Request::TaskStatus(task_id) => {
                let event = ServerEvent::TaskStatus {
                    id: id.clone(),
                    task_id,
                };
                self.ask(id, Question::Task, event);
            }
            Request::ChatStart(request) => self.on_start(&id, request, text.len()),
            Request::ChatAbort(request_id) => self.on_abort(&id, request_id, now),
            // It was refused when it was decoded.
            Request::Unknown { .. } => {}
        }
    }

    fn ask(&mut self, id: RpcId, what: Question, event: ServerEvent) {
        self.queries.push_back(Query { id, what });
        self.push(event);
    }

    fn send_to_task(&mut self, task_id: &TaskId, state: TaskState) {
        let task_id = task_id.clone();
        self.push(ServerEvent::Task { task_id, state });
    }

    fn push(&mut self, event: ServerEvent) {
        self.core.push_event(event, 0);
    }

    /// Queues an answer of the machine itself.
    fn send(&mut self, id: &RpcId, answer: Answer) {
        if send(&mut self.core, id, answer).is_err() {
            // The client asks and does not read the answers.
            self.too_slow();
        }
    }

    fn refuse(&mut self, id: &RpcId, error: &str) {
        self.send(id, Answer::error(error));
    }

    fn send_error(&mut self, id: &RpcId, error: &AppError) {
        let error = self.completed(error);
        self.send(id, Answer::Failed(Box::new(error)));
    }

    /// Returns the error with everything that known servers always send.
    fn completed(&mut self, error: &AppError) -> AppError {
        complete(error, self.entropy())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of the bits are enough"
    )]
    fn entropy(&mut self) -> u64 {
        self.bits.next_bits() as u64
    }

    fn too_slow(&mut self) {
        self.shut(CloseReason::SlowConsumer, CloseFrame::POLICY);
    }

    fn shut(&mut self, reason: CloseReason, code: u16) {
        self.cancel_tasks();
        self.core.close(reason, code);
    }

    /// Cancels all tasks at the end of the connection.
    fn cancel_tasks(&mut self) {
        let was_aborted = self.queue.is_aborted();
        let tasks: Vec<_> = self.queue.drain().map(|(_, chat)| chat.task_id).collect();
        for task_id in tasks.iter().skip(usize::from(was_aborted)) {
            self.send_to_task(task_id, TaskState::Cancelled);
        }
        self.chat_bytes = 0;
        self.queries = VecDeque::new();
    }
}

/// Queues an answer.
fn send<E>(core: &mut MachineCore<E>, id: &RpcId, answer: Answer) -> Result<(), Refused> {
    let frame = ServerFrame {
        id: id.clone(),
        answer,
    };
    core.send_with(|buffer| codec::encode_into(&frame, buffer))
        .map(drop)
}

/// Returns the error with everything that known servers always send: an id for the log, a code and
/// a detail.
pub(crate) fn complete(error: &AppError, entropy: u64) -> AppError {
    let mut error = error.clone();
    error.id.get_or_insert_with(|| ErrorId::random(entropy));
    let code = error.code.get_or_insert(code::UNKNOWN.into()).clone();
    let unknown = || ErrorDetail {
        code: Some(code),
        category: Some("other".into()),
        kind: Some("unknown".into()),
        source: Some("server".into()),
        ..ErrorDetail::default()
    };
    error.detail.get_or_insert_with(|| Box::new(unknown()));
    error
}

impl Machine for ServerConn {
    type Event = ServerEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        let Some(message) = self.core.received(message, now) else {
            return;
        };
        let rate = self.config.limits.max_message_rate;
        if !self.core.within_rate(rate, now) {
            return self.shut(CloseReason::RateLimited, CloseFrame::POLICY);
        }
        match message.text() {
            Some(Ok(text)) => self.on_text(text, now),
            Some(Err(_)) => self.refuse(&RpcId::unreadable(), INVALID_MESSAGE),
            None => {}
        }
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        self.cancel_tasks();
        self.core.disconnected(why);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.core.timer_expired(now) {
            self.give_up();
        }
        // A client that still has much to read cannot have seen the ping behind it.
        let can_receive = self.wants_input() && self.core.has_stream_slack();
        let config = &self.config.keep_alive;
        if let Some(gone) = self.core.check_keepalive(config, can_receive, now) {
            self.shut(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let frame = self.core.poll_transmit();
        if self.core.take_writable() {
            self.push(ServerEvent::Writable);
        }
        frame
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.core.poll_event(ServerEvent::Closed)
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        self.core.next_timeout()
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn wants_input(&self) -> bool {
        let has_room =
            self.queries.len() < self.config.max_unanswered.max(1) && self.core.has_slack();
        self.core.wants_input(has_room)
    }

    /// Closes with this frame (1001 when the server shuts down). Queued frames are sent first, then
    /// every chat is ended with `chat.error`, as far as there is room.
    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        if self.is_closed() {
            return;
        }
        let silent = self.queue.is_aborted();
        let running = self.queue.running().map(|(id, _)| id.clone());
        let waiting = self.queue.positions().map(|(id, _)| id.clone());
        let open: Vec<RpcId> = running.into_iter().chain(waiting).collect();
        for id in open.iter().skip(usize::from(silent)) {
            let error = self.completed(&AppError::failed(SHUTTING_DOWN));
            // Without room for it the Close has to say it all.
            let _ = send(&mut self.core, id, Answer::Failed(Box::new(error)));
        }
        self.cancel_tasks();
        self.core.close_with(CloseReason::Local, frame);
    }

    /// Returns the number of running and waiting chats and of unanswered requests.
    fn in_flight(&self) -> usize {
        self.queue.len() + self.queries.len()
    }
}

rpc_core::debug_fields!([] ServerConn, this => {
    running: this.queue.running().map(|(id, _)| id),
    waiting: this.queue.waiting(),
    asked: this.queries.len(),
    core: this.core,
});
