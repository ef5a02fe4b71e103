//! [`Line`]: a connection of a replay, of a WebSocket or of plain HTTP.

use std::pin::Pin;
use std::time::Duration;

use crate::transcript::{Entry, Kind, hex};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _, sink, stream};
use rpc_core::net::{Message, TransportError};
use rpc_core::{Disconnect, Outgoing};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::check::Frame;
use crate::check::http::Answer;

/// How much may have come that nobody has looked at.
const BACKLOG: usize = 1024;
/// How long the other side has to answer a Close.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// An open connection. It is read all the time, so that pings are answered.
pub(crate) struct Line {
    came: mpsc::Receiver<Entry<'static>>,
    writes: Pin<Box<dyn Sink<Outgoing, Error = TransportError> + Send>>,
}

/// Returns what comes as in a recording; `None` for pings and pongs.
fn entry(message: Result<Message, TransportError>) -> Option<Entry<'static>> {
    let entry = |kind, data: String| Some(Entry::new(Duration::ZERO, 0, None, kind, data));
    match message {
        Ok(Message::Text(text)) => entry(Kind::Text, text.as_str().to_owned()),
        Ok(Message::Binary(bytes)) => entry(Kind::Binary, hex(&bytes)),
        Ok(Message::Close(frame)) => {
            let frame = frame.filter(|frame| frame.code != 1005);
            let code = frame.as_ref().map(|frame| frame.code);
            let reason = frame.map_or_else(String::new, |frame| frame.reason);
            entry(Kind::Close, reason).map(|entry| entry.with_code(code))
        }
        Ok(_) => None,
        Err(error) => match Disconnect::from(&error) {
            Disconnect::Eof => entry(Kind::Eof, String::new()),
            _ => entry(Kind::Eof, error.to_string()),
        },
    }
}

impl Line {
    /// Takes a WebSocket, or what behaves like one.
    pub(crate) fn new(
        ws: impl Stream<Item = Result<Message, TransportError>>
        + Sink<Outgoing, Error = TransportError>
        + Send
        + 'static,
    ) -> Self {
        let (writes, reads) = ws.split();
        Self::of(reads.filter_map(async |it| entry(it)), writes)
    }

    fn of(
        reads: impl Stream<Item = Entry<'static>> + Send + 'static,
        writes: impl Sink<Outgoing, Error = TransportError> + Send + 'static,
    ) -> Self {
        let (sender, came) = mpsc::channel(BACKLOG);
        tokio::spawn(async move {
            let mut reads = std::pin::pin!(reads);
            while let Some(entry) = reads.next().await {
                if sender.send(entry).await.is_err() {
                    // What comes behind the end matters to nobody; a Close is answered.
                    let rest = async { while reads.next().await.is_some() {} };
                    let _ = timeout(CLOSE_TIME, rest).await;
                    return;
                }
            }
        });
        Self {
            came,
            writes: Box::pin(writes),
        }
    }

    /// Takes the answer to a request.
    pub(super) fn answer(answer: Answer) -> Self {
        let reads = stream::unfold(answer, |mut answer| async move {
            match answer.next().await {
                Frame::Text(text) => {
                    let entry = Entry::new(Duration::ZERO, 0, None, Kind::Text, text);
                    Some((entry, answer))
                }
                _ => None,
            }
        });
        Self::of(reads, sink::drain().sink_map_err(|never| match never {}))
    }

    /// Takes a connection on which a request is answered. What is sent are the events of the answer, or its body.
    pub(super) fn answering(
        socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        is_sse: bool,
    ) -> Self {
        let (mut reads, writes) = tokio::io::split(socket);
        let reads = stream::once(async move {
            let mut buffer = [0; 1024];
            // What a client still sends is none of the recording.
            while reads.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
            Entry::new(Duration::ZERO, 0, None, Kind::Eof, "")
        });
        let writes = sink::unfold(writes, move |mut writes, frame: Outgoing| async move {
            match frame {
                Outgoing::Text(text) if is_sse => {
                    let lines = text.as_str().split('\n');
                    let event: String = lines.map(|line| format!("data: {line}\n")).collect();
                    writes.write_all(format!("{event}\n").as_bytes()).await?;
                }
                Outgoing::Text(text) => writes.write_all(text.as_str().as_bytes()).await?,
                Outgoing::Close(_) => writes.shutdown().await?,
                _ => {}
            }
            writes.flush().await?;
            Ok(writes)
        });
        Self::of(reads, writes)
    }

    /// Returns what comes next. Behind the end, the end comes again.
    pub(super) async fn next(&mut self) -> Entry<'static> {
        let end = || Entry::new(Duration::ZERO, 0, None, Kind::Eof, "");
        self.came.recv().await.unwrap_or_else(end)
    }

    pub(super) async fn send(&mut self, frame: Outgoing) {
        // Reading tells why a line takes no frame.
        let _ = self.writes.send(frame).await;
    }
}
