//! The commands of [`ClientConn`]: each is carried out whole or refused with nothing changed.

use rpc_core::Refused;

use super::{ClientConn, ClientState};
use crate::frame::{Answer, ClientFrame, Reject, Response};
use crate::id::MessageId;

impl ClientConn {
    /// Sends any response. The id may be unknown to this connection, of a message from before a
    /// reconnect or a restart: the server decides whether the id is still valid.
    ///
    /// # Errors
    /// [`Refused::NotReady`] before the client is registered, [`Refused::Closed`],
    /// [`Refused::QueueFull`], [`Refused::TooLarge`]: nothing was sent. [`Refused::is_retryable`]
    /// says which of them are temporary.
    pub fn respond(&mut self, id: impl Into<MessageId>, answer: Answer) -> Result<(), Refused> {
        // What was promised earlier leaves earlier.
        self.flush_deferred();
        self.send(&Response::new(id, answer))
    }

    /// Sends a response as soon as the client is registered and there is room. It is never refused.
    /// It is dropped only with the connection, or if more such responses wait than messages may be
    /// open.
    ///
    /// A reason that is too large is omitted; any other response that is too large is dropped.
    pub fn respond_later(&mut self, response: Response) {
        if !self.core.is_closed() && self.deferred.len() < self.config.limits.max_pending {
            self.deferred.push_back(response);
            self.flush_deferred();
        }
    }

    fn send(&mut self, response: &Response) -> Result<(), Refused> {
        match self.state() {
            ClientState::Ready => {}
            ClientState::Closed => return Err(Refused::Closed),
            ClientState::AwaitRegistered => return Err(Refused::NotReady),
        }
        self.core
            .send_json(&ClientFrame::Response(response.clone()))?;
        if !matches!(response.answer, Answer::Unknown { .. }) {
            self.settle(response.message_id.as_str());
        }
        Ok(())
    }

    /// Sends the waiting responses, as far as there is room.
    pub(super) fn flush_deferred(&mut self) {
        while let Some(response) = self.deferred.pop_front() {
            match self.send(&response) {
                Err(Refused::NotReady | Refused::QueueFull) => {
                    self.deferred.push_front(response);
                    return;
                }
                Err(Refused::TooLarge { .. })
                    if matches!(response.answer, Answer::Reject(Reject { reason: Some(_) })) =>
                {
                    let shorter = Response::new(response.message_id, Answer::reject(None));
                    self.deferred.push_front(shorter);
                }
                _ => {}
            }
        }
    }
}
