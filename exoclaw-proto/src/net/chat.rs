//! [`Chat`]: the streamed answer to a chat message.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use rpc_core::net::CallStream;
use rpc_core::{CallError, CallId, CloseReason, Delivery};

use super::protocol::{CallValue, ClientProtocol};
use crate::client::ChatSummary;
use crate::error::RpcError;
use crate::frame::StreamEvent;

/// The streamed answer to a chat message: a stream of [`StreamEvent`]s without `done` and `error`.
/// An error is the last item; after success, [`summary`](Self::summary) is available.
///
/// Unread events wait within the limits of the link's configuration
/// ([`ClientConfig::link`](crate::client::ClientConfig::link)). A chat that stays full delays its whole connection, and
/// after a deadline ends with [`CloseReason::SlowConsumer`]. So does a chat from which the policy
/// drops events, because its answer would be incomplete.
///
/// Dropping it forgets the chat on this side only. The protocol cannot cancel: known gateways
/// continue to the end, spend the tokens and remember the turn.
pub struct Chat {
    /// `None` once the chat has ended.
    stream: Option<CallStream<ClientProtocol>>,
    id: Arc<OnceLock<CallId>>,
    end: Option<Result<ChatSummary, CallError<RpcError>>>,
    max_text: usize,
}

impl Chat {
    pub(super) const fn new(
        stream: CallStream<ClientProtocol>,
        id: Arc<OnceLock<CallId>>,
        max_text: usize,
    ) -> Self {
        Self {
            stream: Some(stream),
            id,
            end: None,
            max_text,
        }
    }

    /// Returns the next step. After an `Err` only `None` follows.
    ///
    /// # Errors
    /// Every [`CallError`]. [`CallError::Remote`] comes from the gateway: a bad request, an
    /// exhausted budget, or a failed provider, possibly in the middle of the text. Repeating a chat
    /// is safe only if [`CallError::delivery`] says that it was not sent.
    ///
    /// # Cancel safety
    /// Cancel-safe: a step is either returned or stays queued.
    pub async fn next(&mut self) -> Option<Result<StreamEvent, CallError<RpcError>>> {
        StreamExt::next(self).await
    }

    /// Reads to the end and returns the remaining text, without the steps of other kinds.
    ///
    /// # Errors
    /// As for [`next`](Self::next); the text so far is lost; use `next` to keep it. A text of more
    /// bytes than [`Limits::max_event_bytes`](rpc_core::Limits::max_event_bytes) ends with
    /// [`CloseReason::TooLarge`], and the chat is forgotten.
    ///
    /// # Cancel safety
    /// Not cancel-safe: the text so far is lost. The chat itself goes on.
    pub async fn finish(&mut self) -> Result<String, CallError<RpcError>> {
        let mut text = String::new();
        while let Some(step) = self.next().await {
            let StreamEvent::Text(chunk) = step? else {
                continue;
            };
            if text.len() + chunk.len() > self.max_text {
                let max = self.max_text;
                let reason = CloseReason::TooLarge { max };
                let delivery = Delivery::Delivered;
                let error = CallError::Closed { reason, delivery };
                // The chat is forgotten.
                self.stream = None;
                self.end = Some(Err(error.clone()));
                return Err(error);
            }
            text.push_str(&chunk);
        }
        match &self.end {
            Some(Err(error)) => Err(error.clone()),
            _ => Ok(text),
        }
    }

    /// Returns the result of the chat, or `None` until its end was read.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Result<ChatSummary, CallError<RpcError>>> {
        self.end.as_ref()
    }

    /// Returns the summary of a successful chat, or `None` until its end was read.
    #[must_use]
    pub const fn summary(&self) -> Option<&ChatSummary> {
        match &self.end {
            Some(Ok(summary)) => Some(summary),
            _ => None,
        }
    }

    /// Returns the request's id; `None` before it is sent, or if it was refused.
    #[must_use]
    pub fn id(&self) -> Option<CallId> {
        self.id.get().copied()
    }
}

impl Stream for Chat {
    type Item = Result<StreamEvent, CallError<RpcError>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        if let Some(event) = ready!(stream.poll_item(cx)) {
            return Poll::Ready(Some(Ok(event)));
        }
        let outcome = ready!(stream.poll_outcome(cx));
        self.stream = None;
        let (end, last) = match outcome {
            Some(Err(error)) => (Err(error.clone()), Some(Err(error))),
            Some(Ok(CallValue::Chat(summary))) => (Ok(summary), None),
            // A chat ends as a chat, and its end is asked for once.
            Some(Ok(CallValue::Answer(_))) | None => (Ok(ChatSummary::default()), None),
        };
        self.end = Some(end);
        Poll::Ready(last)
    }
}

rpc_core::debug_fields!([] Chat, this => { id: this.id(), outcome: this.end });
