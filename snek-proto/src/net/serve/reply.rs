//! [`CallReply`]: the writer of a call's answer.

use rpc_core::Refused;
use serde::Serialize;

use super::Peer;
use super::peer::slow_reader;
use crate::error::RpcError;
use crate::server::RequestId;

/// The writer of one call's answer.
#[derive(Debug)]
#[must_use = "the client waits for an answer"]
pub struct CallReply<'p> {
    pub(super) peer: &'p Peer,
    pub(super) id: RequestId,
}

/// The proof that a call was answered.
#[derive(Debug)]
pub struct Replied(());

impl CallReply<'_> {
    /// Answers with a value, which is written straight into the frames that wait to be sent. A
    /// client that wants no answer, or has left, gets none.
    ///
    /// # Errors
    /// The value cannot be written as JSON, or is over the message limit. Return the error, which is
    /// then the answer.
    pub fn send(self, value: &(impl Serialize + ?Sized)) -> Result<Replied, RpcError> {
        let sent = self.peer.handle.with(|conn| conn.reply(self.id, &value));
        match sent {
            Err(Refused::TooLarge { .. }) => Err(RpcError::new("the answer is too large")),
            Err(error @ Refused::Encode { .. }) => Err(RpcError::new(error.to_string())),
            Err(Refused::QueueFull) => {
                self.peer.close(slow_reader());
                Ok(Replied(()))
            }
            Ok(()) | Err(_) => Ok(Replied(())),
        }
    }
}
