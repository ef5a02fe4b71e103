//! Handles the server's answers.

use rpc_core::{CallError, Instant};

use super::run::Kind;
use super::{CallId, CallValue, ChatUpdate, ClientConn, ClientEvent, Failure, Outcome, Warning};
use crate::error::{AppError, FrameError, RpcError};
use crate::frame::{Answer, ServerFrame};

impl ClientConn {
    pub(super) fn on_text(&mut self, text: &str, now: Instant) {
        match ServerFrame::decode(text, &self.config.limits) {
            Ok(frame) if frame.id.is_unreadable() => self.on_unmatched(frame.answer, now),
            Ok(frame) => {
                let found = CallId::parse(frame.id.as_str());
                match found.filter(|id| self.calls.get(*id).is_some()) {
                    Some(id) => self.on_answer(id, frame.answer, now),
                    None => self.on_stray(frame.answer),
                }
            }
            Err(error) => self.on_unreadable(&error, now),
        }
    }

    fn on_stray(&mut self, answer: Answer) {
        match answer {
            Answer::Unknown { tag, raw } => self.push(ClientEvent::Unknown { tag, raw }),
            _ => self.stray += 1,
        }
    }

    /// Handles an answer to a request whose id the server could not read.
    fn on_unmatched(&mut self, answer: Answer, now: Instant) {
        let Answer::Error(refusal) = answer else {
            return self.on_stray(answer);
        };
        let error = RpcError::new(refusal.error);
        match self.oldest_unanswered() {
            Some(id) => self.refused(id, error, now),
            None => self.push(ClientEvent::ServerError(error)),
        }
    }

    /// Returns the oldest unanswered request. It searches all requests, but each call ends one of
    /// them.
    fn oldest_unanswered(&self) -> Option<CallId> {
        if self.unanswered == 0 {
            return None;
        }
        let unanswered = self.calls.iter().filter(|(_, call)| !call.answered);
        let oldest = unanswered.min_by_key(|(_, call)| call.frame);
        oldest.map(|(id, _)| id)
    }

    fn on_answer(&mut self, id: CallId, answer: Answer, now: Instant) {
        if let Answer::Error(refusal) = answer {
            return self.refused(id, RpcError::new(refusal.error), now);
        }
        match (self.calls.get(id).map(|call| &call.kind), answer) {
            (Some(Kind::Chat(_)), answer) => self.on_chat(id, answer, now),
            (Some(Kind::Status), Answer::Status(status)) => {
                self.reply(id, CallValue::Status(status));
            }
            (Some(Kind::Task), Answer::TaskStatus(task)) => {
                self.reply(id, CallValue::Task(task));
            }
            (Some(&Kind::Abort { chat, quiet }), Answer::AbortResult(result)) => {
                self.on_abort_result(chat, result.aborted, now);
                match quiet {
                    true => drop(self.take(id)),
                    false => self.reply(id, CallValue::Aborted(result.aborted)),
                }
            }
            (_, answer @ Answer::Unknown { .. }) => self.on_stray(answer),
            (_, answer) => {
                let answer = answer.tag().into();
                self.push(ClientEvent::Warning(Warning::WrongAnswer { answer }));
            }
        }
    }

    fn on_chat(&mut self, id: CallId, answer: Answer, now: Instant) {
        let mut queued = false;
        let update = match answer {
            Answer::Done(reply) => return self.end_chat(id, |_| Outcome::of_reply(reply)),
            Answer::Failed(error) => {
                return self.end_chat(id, |aborting| match aborting {
                    true => Outcome::Aborted { error: Some(error) },
                    false => Outcome::Failed(Failure::Server(error)),
                });
            }
            Answer::Accepted(task_id) => ChatUpdate::Accepted { task_id },
            Answer::Queued(position) => {
                queued = true;
                match position {
                    0 => ChatUpdate::Warning(Warning::NoPosition),
                    position => ChatUpdate::Queued { position },
                }
            }
            Answer::Started => ChatUpdate::Started,
            Answer::Event(event) => {
                if let Some(run) = self.run_mut(id)
                    && let Some(warning) = Warning::of_stray(&mut run.tools, &event)
                {
                    let update = ChatUpdate::Warning(warning);
                    self.push(ClientEvent::Chat { id, update });
                }
                ChatUpdate::Event(event)
            }
            Answer::Unknown { tag, raw } => ChatUpdate::Unknown { tag, raw },
            other => ChatUpdate::Warning(Warning::WrongAnswer {
                answer: other.tag().into(),
            }),
        };
        self.chat_lives(id, queued, now);
        self.push(ClientEvent::Chat { id, update });
    }

    /// Ends a request other than a chat.
    fn reply(&mut self, id: CallId, value: CallValue) {
        self.take(id);
        let result = Ok(value);
        self.push(ClientEvent::Reply { id, result });
    }

    fn on_abort_result(&mut self, chat: CallId, aborted: bool, now: Instant) {
        if aborted {
            // Known servers say nothing more about the chat.
            self.end_chat(chat, |_| Outcome::Aborted { error: None });
        } else {
            // The server does not know it, so it is over.
            self.expect_end(chat, now);
        }
    }

    /// Handles a message that cannot be read: ends what waits for it.
    fn on_unreadable(&mut self, error: &FrameError, now: Instant) {
        let fault = error.error.clone();
        let id = error.id.as_ref().and_then(|id| CallId::parse(id.as_str()));
        let Some((id, call)) = id.and_then(|id| Some((id, self.calls.get(id)?))) else {
            return self.push(ClientEvent::Warning(Warning::BadFrame(fault)));
        };
        let is_chat = matches!(call.kind, Kind::Chat(_));
        match (is_chat, error.tag.as_deref()) {
            (true, Some("chat.done" | "chat.error")) => {
                self.end_chat(id, |_| Outcome::Failed(Failure::Unreadable(fault)));
            }
            (true, tag) if tag != Some("error") => {
                self.chat_lives(id, false, now);
                let update = ChatUpdate::Warning(Warning::BadFrame(fault));
                self.push(ClientEvent::Chat { id, update });
            }
            // It was taken before, so this is how it fails.
            (true, _) if call.answered => {
                self.end_chat(id, |_| Outcome::Failed(Failure::Unreadable(fault)));
            }
            _ => self.refused(id, RpcError::unreadable(&fault), now),
        }
    }

    /// Ends a request that the server refuses.
    fn refused(&mut self, id: CallId, error: RpcError, now: Instant) {
        let Some(call) = self.take(id) else {
            return;
        };
        if let Kind::Chat(run) = &call.kind {
            let outcome = match (call.answered, run.aborting, error) {
                (false, _, error) => Outcome::Refused { error },
                // It was taken before, so this is how it fails.
                (true, aborting, error) => {
                    let error = Box::new(AppError::failed(error.message()));
                    match aborting {
                        true => Outcome::Aborted { error: Some(error) },
                        false => Outcome::Failed(Failure::Server(error)),
                    }
                }
            };
            let update = ChatUpdate::Ended(outcome);
            return self.push(ClientEvent::Chat { id, update });
        }
        if let Kind::Abort { chat, .. } = call.kind {
            // No one knows whether it is over.
            self.expect_end(chat, now);
        }
        self.fail(id, &call.kind, CallError::Remote(error));
    }
}
