//! [`ChatReply`]: the writer of a chat's answer.

use std::fmt;
use std::sync::Arc;

use rpc_core::Machine;
use rpc_core::text::beginning;

use super::peer::Peer;
use crate::frame::{StreamEvent, ToolResult, ToolUse, Usage};
use crate::server::{RequestId, ServerConn};

/// The error of a write after the client has left or the chat has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has left")]
pub struct Gone;

/// The writer of one chat's answer. Cheap to clone.
///
/// Writes are sent at once; several writes without a wait between them leave together. Writing
/// waits while the client reads more slowly than the chat writes, until the write timeout
/// disconnects the client.
#[derive(Clone)]
pub struct ChatReply {
    peer: Arc<Peer>,
    id: RequestId,
}

impl ChatReply {
    pub(super) const fn new(peer: Arc<Peer>, id: RequestId) -> Self {
        Self { peer, id }
    }

    /// Sends more of the answer. A text over the message limit is sent in several messages.
    ///
    /// # Errors
    /// [`Gone`] if the client has left or the chat has ended: stop the work.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing of the text was sent, or only the
    /// beginning of a long one.
    pub async fn text(&self, text: &str) -> Result<(), Gone> {
        let mut rest = text;
        loop {
            let piece = beginning(rest, self.peer.max_text.max(4));
            let write = |conn: &mut ServerConn| conn.text(self.id, piece);
            self.peer.write(self.id, write).await?;
            rest = rest.get(piece.len()..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Announces the call of a tool, does its work, and reports its result, or the words of its failure.
    ///
    /// ```
    /// use exoclaw_proto::frame::ToolUse;
    /// use exoclaw_proto::net::{AppError, ChatReply};
    ///
    /// # async fn doc(reply: &ChatReply) -> Result<(), AppError> {
    /// let call = ToolUse::new("call-1", "add", serde_json::json!([2, 3]));
    /// let sum = reply.tool(call, async { Ok::<_, AppError>(2 + 3) }).await??;
    /// # let _: i32 = sum;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Gone`]: the client has left, or the chat has ended. The outcome of the work is inside.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work; the client gets no result then.
    pub async fn tool<T: fmt::Display, E: fmt::Display>(
        &self,
        call: ToolUse,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, Gone> {
        let id = call.id.clone();
        self.event(&StreamEvent::ToolUse(call)).await?;
        let outcome = work.await;
        let text = match &outcome {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        let result = ToolResult::new(id, text, outcome.is_err());
        self.event(&StreamEvent::ToolResult(result)).await?;
        Ok(outcome)
    }

    /// Sends the usage of one call of the model.
    ///
    /// # Errors
    /// As for [`event`](Self::event).
    ///
    /// # Cancel safety
    /// As for [`event`](Self::event).
    pub async fn usage(&self, usage: Usage) -> Result<(), Gone> {
        self.event(&StreamEvent::Usage(usage)).await
    }

    /// Sends any step. A [terminal](StreamEvent::is_terminal) one ends the chat. A step over the
    /// message limit ends the chat with an error, and later writes are refused.
    ///
    /// # Errors
    /// [`Gone`] if the client has left or the chat has ended: stop the work.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was sent.
    pub async fn event(&self, event: &StreamEvent) -> Result<(), Gone> {
        self.peer
            .write(self.id, |conn| conn.event(self.id, event))
            .await
    }

    /// Waits until the client has left: for work on spawned tasks, which are not dropped then.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn gone(&self) {
        let is_closed = |conn: &mut ServerConn| conn.is_closed().then_some(());
        self.peer.handle.retry(is_closed).await;
    }
}

rpc_core::debug_fields!([] ChatReply, this => { connection: this.peer.id(), id: this.id });
