//! [`Line`]: a connection of a replay, of a WebSocket or of plain HTTP.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Sink, Stream, StreamExt as _, sink, stream};
use rpc_core::net::{Message, TransportError};
use rpc_core::{Outgoing, Text};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::check::broken::Frame;
use crate::check::http::Answer;

type Reads = Pin<Box<dyn Stream<Item = Result<Message, TransportError>> + Send>>;
type Writes = Pin<Box<dyn Sink<Outgoing, Error = TransportError> + Send>>;

/// A transport of any kind.
pub struct Line {
    reads: Reads,
    writes: Writes,
}

/// Prints nothing of what passes.
impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    /// A WebSocket.
    pub(super) fn web_socket(
        ws: impl Stream<Item = Result<Message, TransportError>>
        + Sink<Outgoing, Error = TransportError>
        + Send
        + 'static,
    ) -> Self {
        let (writes, reads) = ws.split();
        Self {
            reads: Box::pin(reads),
            writes: Box::pin(writes),
        }
    }

    /// The answer to a plain request: its events, or its body, are text messages.
    pub(super) fn answer(answer: Answer) -> Self {
        let reads = stream::unfold(answer, |mut answer| async move {
            match answer.next().await {
                Frame::Text(text) => Some((Ok(Message::Text(Text::from(text))), answer)),
                _ => None,
            }
        });
        let writes = sink::unfold((), |(), _: Outgoing| async { Ok(()) });
        Self {
            reads: Box::pin(reads),
            writes: Box::pin(writes),
        }
    }

    /// A plain request that is answered: each text message is an event, or a part of the body.
    pub(super) fn answering(
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_sse: bool,
    ) -> Self {
        let (reads, writes) = tokio::io::split(socket);
        let reads = stream::unfold(reads, |mut reads| async move {
            let mut buffer = [0; 1024];
            // What a client still sends is none of the recording.
            while reads.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
            None
        });
        let writes = sink::unfold(writes, move |mut writes, frame: Outgoing| async move {
            match frame {
                Outgoing::Text(text) if is_sse => {
                    let mut event = String::new();
                    for line in text.as_str().split('\n') {
                        event.push_str("data: ");
                        event.push_str(line);
                        event.push('\n');
                    }
                    event.push('\n');
                    writes.write_all(event.as_bytes()).await?;
                }
                Outgoing::Text(text) => writes.write_all(text.as_str().as_bytes()).await?,
                Outgoing::Close(_) => writes.shutdown().await?,
                _ => {}
            }
            writes.flush().await?;
            Ok(writes)
        });
        Self {
            reads: Box::pin(reads),
            writes: Box::pin(writes),
        }
    }
}

impl Stream for Line {
    type Item = Result<Message, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.reads.as_mut().poll_next(cx)
    }
}

impl Sink<Outgoing> for Line {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.writes.as_mut().poll_ready(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Outgoing) -> Result<(), Self::Error> {
        self.writes.as_mut().start_send(frame)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.writes.as_mut().poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.writes.as_mut().poll_close(cx)
    }
}
