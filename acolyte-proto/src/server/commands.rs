//! The commands of a [`ServerConn`]: steps and ends of chats, answers, closing.

use rpc_core::{Machine, Refused};

use super::{Question, SHUTTING_DOWN, ServerConn, send};
use crate::codec::encode_into;
use crate::error::AppError;
use crate::event::Event;
use crate::frame::{Answer, Reply, Status};
use crate::id::RpcId;
#[cfg(feature = "server")]
use crate::id::TaskId;
use crate::task::{Task, TaskState};

impl ServerConn {
    /// Sends one step of the running chat. A checklist is sent under the
    /// [configured](super::ServerConfig::checklist) name.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if the chat does not run or was aborted; [`Refused::Invalid`] for the
    /// event `error`, which ends chats over HTTP only ([`fail`](Self::fail) does it here), and for
    /// the output or result of a tool that was not called before; [`Refused::QueueFull`] if steps
    /// fill their part of the outbox, at most a quarter (retry after
    /// [`Writable`](super::ServerEvent::Writable));
    /// [`Refused::TooLarge`], [`Refused::Encode`], [`Refused::Closed`]. Nothing is sent then.
    pub fn event(&mut self, id: &RpcId, event: &Event) -> Result<(), Refused> {
        let invalid = |why: &str| Refused::invalid("event", why);
        if matches!(event, Event::Error(_)) {
            return Err(invalid("`error` is not a step of a chat on a WebSocket"));
        }
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        if self.running() != Some(id) {
            return Err(Refused::UnknownId);
        }
        let Some((_, chat)) = self.queue.running_mut() else {
            return Err(Refused::UnknownId);
        };
        let renamed = self.config.checklist.rename(event);
        let written = renamed.as_ref().unwrap_or(event);
        let core = &mut self.core;
        chat.tools.sent(event, invalid, || {
            core.send_stream(|buffer| {
                // An id has nothing to escape.
                buffer.push_str("{\"id\":\"");
                buffer.push_str(id.as_str());
                buffer.push_str("\",\"type\":\"chat.event\",\"event\":");
                encode_into(written, buffer)?;
                buffer.push('}');
                Ok(())
            })
        })?;
        Ok(())
    }

    /// Returns whether this chat, of all with the same id, is running and was not aborted.
    #[cfg(feature = "server")]
    pub(crate) fn is_running(&self, id: &RpcId, task_id: &TaskId) -> bool {
        let chat = self.queue.running().map(|(_, chat)| chat);
        self.running() == Some(id) && chat.is_some_and(|chat| chat.task_id == *task_id)
    }

    /// Ends the running chat with its reply, and starts the next one. A reply with an
    /// [`error`](Reply::error) says that the model failed.
    ///
    /// For an aborted chat this reports that the work has stopped; nothing is sent then.
    ///
    /// # Errors
    /// As for [`event`](Self::event), but all the room may be used. The chat then goes on, unless
    /// it is unknown.
    pub fn done(&mut self, id: &RpcId, reply: &Reply) -> Result<(), Refused> {
        self.conclude(id, TaskState::Completed, |_| {
            Answer::Done(Box::new(reply.clone()))
        })
    }

    /// Ends the running chat with an error, and starts the next one. Missing id, code and detail
    /// are added.
    ///
    /// For an aborted chat this reports that the work has stopped; nothing is sent then.
    ///
    /// # Errors
    /// As for [`done`](Self::done).
    pub fn fail(&mut self, id: &RpcId, error: &AppError) -> Result<(), Refused> {
        self.conclude(id, TaskState::Failed, |conn| {
            Answer::Failed(Box::new(conn.completed(error)))
        })
    }

    /// Answers `status.get`.
    ///
    /// # Errors
    /// [`Refused::UnknownId`] if no such request is unanswered, otherwise as for
    /// [`done`](Self::done).
    pub fn status(&mut self, id: &RpcId, status: &Status) -> Result<(), Refused> {
        self.reply(id, Question::Status, || {
            Answer::Status(Box::new(status.clone()))
        })
    }

    /// Answers `task.status`; `None` is an unknown task.
    ///
    /// # Errors
    /// As for [`status`](Self::status).
    pub fn task_status(&mut self, id: &RpcId, task: Option<&Task>) -> Result<(), Refused> {
        self.reply(id, Question::Task, || Answer::TaskStatus(task.cloned()))
    }

    /// Accepts no more chats: waiting ones end with `chat.error`, and new ones are refused with
    /// `error`. The running chat may go on.
    pub fn stop_taking(&mut self) {
        if self.is_closed() || self.draining {
            return;
        }
        self.draining = true;
        let waiting: Vec<RpcId> = self.queue.positions().map(|(id, _)| id.clone()).collect();
        for id in waiting {
            if let crate::queue::Aborted::Waiting(chat) = self.queue.abort(&id) {
                self.chat_bytes -= chat.bytes;
                self.send_error(&id, &AppError::failed(SHUTTING_DOWN));
                self.send_to_task(&chat.task_id, TaskState::Cancelled);
            }
        }
    }

    /// Ends the running chat, with an answer unless it was aborted.
    fn conclude(
        &mut self,
        id: &RpcId,
        state: TaskState,
        answer: impl FnOnce(&mut Self) -> Answer,
    ) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        if self
            .queue
            .running()
            .is_none_or(|(running, _)| running != id)
        {
            return Err(Refused::UnknownId);
        }
        // The answer, the new positions and the next start, or none of them.
        self.core.check_room(self.queue.waiting() + 2)?;
        let was_aborted = self.queue.is_aborted();
        if !was_aborted {
            let answer = answer(self);
            send(&mut self.core, id, answer)?;
        }
        // An aborted task was reported as cancelled before.
        self.finish(id, (!was_aborted).then_some(state));
        Ok(())
    }

    fn reply(
        &mut self,
        id: &RpcId,
        what: Question,
        answer: impl FnOnce() -> Answer,
    ) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        // Answers come in order, so it is the first except for an odd one.
        let mut queries = self.queries.iter();
        let place = queries.position(|query| query.id == *id && query.what == what);
        let place = place.ok_or(Refused::UnknownId)?;
        send(&mut self.core, id, answer())?;
        self.queries.remove(place);
        if self.queries.is_empty() {
            self.queries.shrink_to(1);
        }
        Ok(())
    }
}
