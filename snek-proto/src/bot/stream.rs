//! [`StreamWriter`]: a streamed answer.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use futures_util::{Stream, StreamExt as _};
use rpc_core::CallError;
use rpc_core::net::{Link, time};

use super::context::Shared;
use super::send;
use crate::error::{BotError, RpcError};
use crate::frame::{CallValue, Final};
use crate::id::ChannelUid;
use crate::stream::{Post, StreamConfig, TextStream};

/// A partial message on its way.
type InFlight = Pin<Box<dyn Future<Output = Result<CallValue, CallError<RpcError>>> + Send>>;

/// The part of the message limit that the frame around a text may take, besides the channel's uid.
const ENVELOPE: usize = 256;

/// A streamed answer, made by [`Context::stream`](super::Context::stream).
///
/// Others see each text as a message that replaces the previous one, and then a final message. The
/// rules: whole texts, in order, one message at a time; the newest text
/// wins while the connection is slow; a partial message that fails is skipped. The final message is
/// repeated on failure like any other message of the bot.
///
/// The writer has no task of its own. [`push`](Self::push) sends what can be sent without waiting,
/// and reads the answer to the previous message; [`pump`](Self::pump) does both while it reads from
/// a stream.
///
/// Every answer gets its final message: [`finish`](Self::finish), [`fail`](Self::fail) and `pump`
/// wait for it; a dropped writer (an early return, a panic, a handler cut off at the shutdown)
/// hands the text so far, with the [note](StreamConfig::note) below, to the connection. The final
/// message is lost only if there is no connection at that moment.
///
/// ```
/// # use snek_proto::error::BotError;
/// # use snek_proto::bot::Context;
/// # async fn handler(cx: &Context) -> Result<(), BotError> {
/// let mut answer = cx.stream();
/// for word in ["one", " word", " after", " the", " other"] {
///     answer.push(word);
///     // .. until the next one is there
/// }
/// answer.finish().await?;
/// # Ok(())
/// # }
/// ```
pub struct StreamWriter {
    shared: Arc<Shared>,
    channel: ChannelUid,
    core: TextStream,
    in_flight: Option<InFlight>,
}

impl StreamWriter {
    pub(super) fn new(shared: Arc<Shared>, channel: ChannelUid, config: StreamConfig) -> Self {
        let limit = shared.config.client.limits.max_message_bytes;
        let room = limit.saturating_sub(ENVELOPE + channel.as_str().len());
        let max = config.max_bytes.min(room);
        let sanitize = config.sanitize && shared.config.sanitize;
        // A partial message is a call like any other.
        let call_timeout = shared.config.client.call_timeout;
        let partial_timeout = config.partial_timeout.min(call_timeout);
        let config = StreamConfig {
            max_bytes: max,
            sanitize,
            partial_timeout,
            ..config
        };
        Self {
            shared,
            channel,
            core: TextStream::new(config),
            in_flight: None,
        }
    }

    /// Adds to the text, and sends the text so far if that is possible without waiting. If not, a
    /// later call sends it. Text beyond the limit is counted and dropped.
    pub fn push(&mut self, delta: &str) {
        self.core.push(delta);
        self.advance();
    }

    /// Replaces the text, and sends it if that is possible without waiting.
    pub fn set(&mut self, whole: &str) {
        self.core.set(whole);
        self.advance();
    }

    /// Returns the text so far, as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        self.core.text()
    }

    /// Waits until the newest text has been sent, or has failed, as a partial message.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn flush(&mut self) {
        poll_fn(|task| self.poll_answer(task)).await;
        loop {
            self.start_due();
            if self.in_flight.is_some() {
                poll_fn(|task| self.poll_answer(task)).await;
            } else if let Some(at) = self.core.poll_timeout() {
                time::sleep_until(at).await;
            } else {
                return;
            }
        }
    }

    /// Sends the text as the final message, once the previous message is answered or has failed.
    ///
    /// # Errors
    /// As for [`reply`](super::Context::reply). [`Refused::TooLarge`](rpc_core::Refused::TooLarge)
    /// in a [`BotError::RpcError`] if the text exceeds the message limit: the part that fits **was
    /// posted** as the final message.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting and repeating. A final message that was not sent yet is
    /// sent as for a dropped writer; one that was may have been posted.
    pub async fn finish(mut self) -> Result<CallValue, BotError> {
        self.core.finish();
        self.end().await
    }

    /// Ends the answer with a note below the text so far, or with the note alone if there is no
    /// text.
    ///
    /// # Errors
    /// As for [`finish`](Self::finish).
    ///
    /// # Cancel safety
    /// As for [`finish`](Self::finish).
    pub async fn fail(mut self, note: &str) -> Result<CallValue, BotError> {
        self.core.fail(note);
        self.end().await
    }

    /// Reads pieces of text to their end, sends the text as it grows, and finishes. Reading never
    /// waits for the connection. Returns the server's answer to the final message and the whole
    /// text.
    ///
    /// ```
    /// # use std::convert::Infallible;
    /// # use snek_proto::error::BotError;
    /// # use snek_proto::bot::{Context, PumpError};
    /// # async fn handler(cx: &Context) -> Result<(), BotError> {
    /// let words = futures_util::stream::iter(["a", " b", " c"].map(Ok::<_, BotError>));
    /// let (_, text) = cx.stream().pump(words).await?;
    /// assert_eq!(text, "a b c");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`PumpError::Producer`] if the producer fails: the final message is then the text so far
    /// with the [note](StreamConfig::note). [`PumpError::Send`] if the final message cannot be
    /// sent.
    ///
    /// # Cancel safety
    /// As for [`finish`](Self::finish).
    pub async fn pump<S, T, E>(mut self, deltas: S) -> Result<(CallValue, String), PumpError<E>>
    where
        S: Stream<Item = Result<T, E>>,
        T: AsRef<str>,
    {
        let mut deltas = std::pin::pin!(deltas);
        let failed = loop {
            // A producer that always has more must not keep the connection from its work.
            tokio::task::consume_budget().await;
            self.start_due();
            let due = self.core.poll_timeout();
            tokio::select! {
                biased;
                () = poll_fn(|task| self.poll_answer(task)), if self.in_flight.is_some() => {}
                delta = deltas.next() => match delta {
                    Some(Ok(delta)) => self.core.push(delta.as_ref()),
                    Some(Err(error)) => break Some(error),
                    None => break None,
                },
                () = time::sleep_until(due.unwrap_or_else(time::now)), if due.is_some() => {}
            }
        };
        match failed {
            None => self.core.finish(),
            Some(_) => {
                let note = self.core.config().note.clone();
                self.core.fail(&note);
            }
        }
        let posted = self.end().await;
        let text = self.core.text().to_owned();
        match (failed, posted) {
            (None, Ok(answer)) => Ok((answer, text)),
            (None, Err(error)) => Err(PumpError::Send { error, text }),
            (Some(error), posted) => Err(PumpError::Producer {
                error,
                text,
                posted: posted.map(|_| ()),
            }),
        }
    }

    async fn end(&mut self) -> Result<CallValue, BotError> {
        poll_fn(|task| self.poll_answer(task)).await;
        let Some(post) = self.core.poll_send(time::now()) else {
            // Not reached: the end was asked for, nothing is in flight, and `self` is used up.
            return Err(BotError::from(rpc_core::Refused::Closed));
        };
        let channel = self.channel.as_str();
        let answer = send::send(&self.shared, channel, &post.text, post.is_final).await;
        self.core.on_answer(answer.is_ok(), time::now());
        let answer = answer?;
        self.core.fitted()?;
        Ok(answer)
    }

    /// Does what is possible without waiting.
    fn advance(&mut self) {
        let mut nobody = TaskContext::from_waker(Waker::noop());
        if self.poll_answer(&mut nobody).is_ready() {
            self.start_due();
        }
    }

    /// Ready when nothing is in flight any more.
    fn poll_answer(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        let Some(in_flight) = &mut self.in_flight else {
            return Poll::Ready(());
        };
        let Poll::Ready(outcome) = in_flight.as_mut().poll(task) else {
            return Poll::Pending;
        };
        self.in_flight = None;
        if let Err(error) = &outcome {
            tracing::debug!(%error, "a partial message failed");
        }
        self.core.on_answer(outcome.is_ok(), time::now());
        Poll::Ready(())
    }

    /// Starts sending a partial message if one is due.
    fn start_due(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        let Some(post) = self.core.poll_send(time::now()) else {
            return;
        };
        self.in_flight = Some(self.partial(post));
        // The first look hands it to the connection.
        let mut nobody = TaskContext::from_waker(Waker::noop());
        let _ = self.poll_answer(&mut nobody);
    }

    fn partial(&self, post: Post) -> InFlight {
        let client = self.shared.client.clone();
        let channel = self.channel.clone();
        let timeout = Some(self.core.config().partial_timeout);
        Box::pin(async move {
            // `Client::call` calls any method.
            Link::call_with(&client, "send_message", move |conn, now| {
                let id = conn.send_message(channel.as_str(), &post.text, Final::No, now)?;
                conn.set_timeout(id, timeout, now);
                Ok(id)
            })
            .await
        })
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        // First, so that a partial message that did not leave yet never does.
        self.in_flight = None;
        let Some(post) = self.core.abandon() else {
            return;
        };
        let channel = self.channel.clone();
        let handed = self.shared.client.try_command(move |conn, _| {
            if let Err(refused) = conn.notify_message(channel.as_str(), &post.text, post.is_final) {
                tracing::warn!(%refused, "the end of a streamed answer was not sent");
            }
        });
        if let Err(refused) = handed {
            tracing::warn!(%refused, "the end of a streamed answer was not sent");
        }
    }
}

rpc_core::debug_fields!([] StreamWriter, this => {
    channel: this.channel,
    bytes: this.core.text().len(),
    in_flight: this.in_flight.is_some(),
});

/// The error of a [`pump`](StreamWriter::pump). Exhaustive: either the producer or the sending
/// fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PumpError<E> {
    /// The producer failed. The text so far was ended with a note.
    #[error("the answer broke off: {error}")]
    Producer {
        /// The producer's error.
        #[source]
        error: E,
        /// The text so far, without the note.
        text: String,
        /// Whether the final message was posted.
        posted: Result<(), BotError>,
    },
    /// The final message could not be sent, or was cut off: [as for
    /// `finish`](StreamWriter::finish).
    #[error("the answer could not be sent: {error}")]
    Send {
        /// The cause.
        #[source]
        error: BotError,
        /// The whole text.
        text: String,
    },
}

impl<E: Into<BotError>> From<PumpError<E>> for BotError {
    fn from(error: PumpError<E>) -> Self {
        match error {
            PumpError::Producer { error, .. } => error.into(),
            PumpError::Send { error, .. } => error,
        }
    }
}
