//! [`ChatReply`]: where a chat's answer is written to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::outlet::{NotAdded, Step};
use super::peer::Peer;
use crate::frame::{StreamEvent, Usage};
use crate::server::RequestId;

/// The client has left, or the chat has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has left")]
pub struct Gone;

/// Streams the answer of one chat. Cheap to clone.
///
/// What is written is on its way at once; several steps that are written without a wait between
/// them leave together. While the client reads more slowly than the chat writes, writing waits,
/// until the link's write timeout gives the client up.
#[derive(Clone)]
pub struct ChatReply {
    peer: Arc<Peer>,
    id: RequestId,
    ended: Arc<AtomicBool>,
}

impl ChatReply {
    pub(super) fn new(peer: Arc<Peer>, id: RequestId) -> Self {
        Self {
            peer,
            id,
            ended: Arc::default(),
        }
    }

    /// Sends more of the answer. A text that is too long for one message is sent in several.
    ///
    /// # Errors
    /// [`Gone`]
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: nothing of the text was sent, or, of a long one, a
    /// beginning.
    pub async fn text(&self, text: &str) -> Result<(), Gone> {
        let mut rest = text;
        loop {
            self.check()?;
            match self.peer.outlet.add_text(self.id, rest) {
                Ok((len, added)) => {
                    self.peer.tell(added);
                    rest = rest.get(len..).unwrap_or_default();
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
                Err(NotAdded::Full) => self.peer.outlet.room().await,
                Err(NotAdded::Gone) => return Err(Gone),
            }
        }
    }

    /// Says what one call of the model cost.
    ///
    /// # Errors
    /// As for [`event`](Self::event).
    ///
    /// # Cancel safety
    /// As for [`event`](Self::event).
    pub async fn usage(&self, usage: Usage) -> Result<(), Gone> {
        self.send(StreamEvent::Usage(usage)).await
    }

    /// Sends any step. A [terminal](StreamEvent::is_terminal) one ends the chat. A step that does
    /// not fit a message ends the chat with an error, and what is written afterwards is refused.
    ///
    /// # Errors
    /// [`Gone`]
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: nothing was sent.
    pub async fn event(&self, event: &StreamEvent) -> Result<(), Gone> {
        self.send(event.clone()).await
    }

    /// Waits until the client has left: for work on tasks of its own, which nobody drops.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn gone(&self) {
        self.peer.outlet.left().await;
    }

    async fn send(&self, event: StreamEvent) -> Result<(), Gone> {
        let mut event = event;
        let terminal = event.is_terminal();
        loop {
            self.check()?;
            match self.peer.outlet.add_event(self.id, event) {
                Ok(added) => {
                    if terminal {
                        self.ended.store(true, Ordering::Relaxed);
                    }
                    self.peer.tell(added);
                    return Ok(());
                }
                Err((NotAdded::Full, back)) => event = back,
                Err((NotAdded::Gone, _)) => return Err(Gone),
            }
            self.peer.outlet.room().await;
        }
    }

    /// Ends the chat; what is written afterwards, by a clone, goes nowhere.
    pub(super) fn end(&self, end: Step) {
        self.ended.store(true, Ordering::Relaxed);
        self.peer.tell(self.peer.outlet.add_end(self.id, end));
    }

    fn check(&self) -> Result<(), Gone> {
        if self.ended.load(Ordering::Relaxed) {
            return Err(Gone);
        }
        Ok(())
    }
}

impl fmt::Debug for ChatReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatReply")
            .field("connection", &self.peer.id())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
