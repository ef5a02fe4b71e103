//! How a [`ServerConn`] starts, aborts and ends its chats, and which one is next.

use rpc_core::{Instant, Machine};

use super::{ABORTED, SHUTTING_DOWN, ServerConn, ServerEvent, send};
use crate::error::{AppError, code};
use crate::frame::{AbortResult, Answer, ChatRequest};
use crate::id::{RpcId, TaskId};
use crate::queue::{Aborted, QueueError, QueuePosition};
use crate::task::TaskState;
use crate::tool_calls::ToolCalls;

/// A running or waiting chat.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) task_id: TaskId,
    /// The request; `None` once the chat has started.
    pub(super) request: Option<Box<ChatRequest>>,
    /// The size of its frame.
    pub(super) bytes: usize,
    /// The calls that outputs and results of tools must refer to.
    pub(super) tools: ToolCalls,
}

impl ServerConn {
    pub(super) fn on_start(&mut self, id: &RpcId, request: Box<ChatRequest>, bytes: usize) {
        if let Err(refused) = self.check_place(id, bytes) {
            return self.refuse(id, &refused.to_string());
        }
        if self.draining {
            // Not of an id in use: its chat goes on.
            return self.refuse(id, SHUTTING_DOWN);
        }
        let task_id = TaskId::random(self.entropy());
        let chat = Chat {
            task_id: task_id.clone(),
            request: Some(request),
            bytes,
            tools: ToolCalls::default(),
        };
        let Ok(place) = self.queue.start(id.clone(), chat) else {
            // It was asked a moment ago.
            return;
        };
        self.chat_bytes += bytes;
        self.send_to_task(&task_id, TaskState::Accepted);
        self.send(id, Answer::Accepted(task_id.clone()));
        match place {
            QueuePosition::Running => self.begin(),
            QueuePosition::Waiting { position } => {
                self.send(id, Answer::Queued(position));
                self.send_to_task(&task_id, TaskState::Queued);
            }
        }
    }

    /// Checks whether there is room for a chat, in number and in bytes.
    fn check_place(&self, id: &RpcId, bytes: usize) -> Result<(), QueueError> {
        self.queue.check(id)?;
        let is_too_much = self.chat_bytes + bytes > self.config.limits.max_event_bytes;
        if is_too_much && !self.queue.is_empty() {
            return Err(QueueError::Full {
                max: self.queue.waiting(),
            });
        }
        Ok(())
    }

    /// Starts the chat at the head of the queue.
    fn begin(&mut self) {
        let Some((id, chat)) = self.queue.running_mut() else {
            return;
        };
        let (id, task_id) = (id.clone(), chat.task_id.clone());
        let request = chat.request.take();
        self.send(&id, Answer::Started);
        self.send_to_task(&task_id, TaskState::Running);
        if let Some(request) = request {
            self.push(ServerEvent::Start {
                id,
                task_id,
                request,
            });
        }
    }

    /// Removes the running chat, sends the others their new positions, and starts the next.
    pub(super) fn finish(&mut self, id: &RpcId, state: Option<TaskState>) {
        self.core.stop_timer();
        let Some(chat) = self.queue.finish(id) else {
            return;
        };
        self.chat_bytes -= chat.bytes;
        if let Some(state) = state {
            self.send_to_task(&chat.task_id, state);
        }
        self.send_positions();
        self.begin();
    }

    pub(super) fn on_abort(&mut self, id: &RpcId, request_id: RpcId, now: Instant) {
        let met = self.queue.abort(&request_id);
        let aborted = !matches!(met, Aborted::Unknown);
        let is_new = aborted && !matches!(met, Aborted::Running { again: true });
        if is_new && !self.config.silent_aborts {
            let error = AppError {
                code: Some(code::ABORTED.into()),
                ..AppError::failed(ABORTED)
            };
            self.send_error(&request_id, &error);
        }
        if let Aborted::Waiting(chat) = &met {
            self.chat_bytes -= chat.bytes;
            self.send_to_task(&chat.task_id, TaskState::Cancelled);
            self.send_positions();
        }
        let result = AbortResult::new(request_id.clone(), aborted);
        self.send(id, Answer::AbortResult(result));
        if is_new && matches!(met, Aborted::Running { .. }) {
            self.stop_running(request_id, now);
        }
    }

    /// Asks the application to stop the running chat, which was aborted, and sets a deadline.
    fn stop_running(&mut self, id: RpcId, now: Instant) {
        let task_id = self.queue.running().map(|(_, chat)| chat.task_id.clone());
        if let Some(task_id) = task_id {
            self.send_to_task(&task_id, TaskState::Cancelled);
        }
        if self.is_closed() {
            return;
        }
        self.push(ServerEvent::Abort { id });
        let grace = self.config.abort_grace;
        if grace.is_zero() {
            self.give_up();
        } else {
            self.core.start_timer("grace", grace, now);
        }
    }

    /// Gives up an aborted chat whose work has not stopped in time.
    pub(super) fn give_up(&mut self) {
        let Some(id) = self.queue.running().map(|(id, _)| id.clone()) else {
            return;
        };
        self.push(ServerEvent::GivenUp { id: id.clone() });
        self.finish(&id, None);
    }

    fn send_positions(&mut self) {
        let line = self.queue.positions();
        let mut fits = true;
        for (id, position) in line {
            let answer = Answer::Queued(position);
            fits &= send(&mut self.core, id, answer).is_ok();
        }
        if !fits {
            self.too_slow();
        }
    }
}
