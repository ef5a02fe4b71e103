//! [`relay`]: carries the frames of a connection between its transport and another node.
//!
//! A frame is published in numbered pieces. What a node has not [confirmed](Kind::Sync) is bounded by a window,
//! and a piece that is missing ends the connection: its client connects again and resumes. A node that is gone
//! is noticed by its lease.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use rpc_core::net::{Message, Transport, TransportError};
use rpc_core::store::Store;
use rpc_core::{CloseFrame, Outgoing, Str, Text};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::limits::SERVICE_RESTART;

/// The bytes of a packet before its contents.
pub(super) const HEADER: usize = 17;
/// The largest piece of a frame.
const MAX_PIECE: usize = 64 * 1024;
/// How long pieces may stay unconfirmed while nothing else is sent, and how long nothing may be sent.
const SYNC_AFTER: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(30);
/// How long a confirmation may take before it is asked for again.
const SYNC_TIMEOUT: Duration = Duration::from_secs(8);
/// How long to wait after a question that was not asked.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a connection that the other node does not know may take for the frames that have come.
const LAST_FRAMES: Duration = Duration::from_secs(1);
/// How long the own connection may take for its Close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A piece of a frame, which goes on.
    More,
    /// The last piece of a text frame.
    Text,
    /// The last piece of a binary frame.
    Binary,
    /// A Close. Nothing follows it.
    Close,
    /// The connection was cut. Nothing follows it.
    Cut,
    /// Asks whether all pieces before this number have been passed on.
    Sync,
    /// The sender has given the connection up.
    End,
    /// Asks to serve a connection.
    Open,
    /// A question about something else.
    Question,
}

/// What a node sends another one about a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) kind: Kind,
    /// The id of the connection.
    pub(super) id: u64,
    /// The number of the piece, from 0 in each direction.
    pub(super) number: u64,
    pub(super) bytes: Bytes,
}

impl Packet {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER + self.bytes.len());
        out.put_u8(self.kind as u8);
        out.put_u64(self.id);
        out.put_u64(self.number);
        out.put_slice(&self.bytes);
        out.freeze()
    }

    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        use Kind::{Binary, Close, Cut, End, More, Open, Question, Sync, Text};
        let kinds = [More, Text, Binary, Close, Cut, Sync, End, Open, Question];
        Some(Self {
            kind: *kinds.get(usize::from(bytes.try_get_u8().ok()?))?,
            id: bytes.try_get_u64().ok()?,
            number: bytes.try_get_u64().ok()?,
            bytes,
        })
    }
}

/// Why a relayed connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RelayError {
    #[error("frames were lost between two nodes")]
    Gap,
    #[error("the other node has given the connection up")]
    Gone,
    #[error("the store does not answer")]
    Store,
    #[error("a frame is too large")]
    TooLarge,
    #[error("the other node sends what is not text")]
    NoText,
}

/// How a relayed connection has ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The own connection has sent a Close.
    Closed,
    /// One of the connections was cut.
    Cut,
    /// The own connection is to be closed.
    Close(CloseFrame),
}

/// The limits of relayed connections, the same at all nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RelayLimits {
    pub(super) max_frame_bytes: usize,
    /// The [cost] of unconfirmed pieces.
    pub(super) window: u64,
    pub(super) max_piece_bytes: usize,
}

impl RelayLimits {
    pub(super) fn new(max_frame_bytes: usize, window: u64, max_payload: usize) -> Self {
        let piece = max_payload.saturating_sub(HEADER).min(MAX_PIECE);
        let fitting = usize::try_from(window.saturating_sub(cost(0))).unwrap_or(usize::MAX);
        Self {
            max_frame_bytes,
            window,
            max_piece_bytes: piece.min(fitting).max(1),
        }
    }

    /// How many packets arrive at most before one is taken.
    pub(super) fn max_packets(&self) -> usize {
        let pieces = usize::try_from(self.window / cost(0)).unwrap_or(usize::MAX);
        pieces.saturating_add(16).min(1 << 16)
    }
}

/// What a piece counts for in the window: its memory, about.
const fn cost(bytes: usize) -> u64 {
    const EACH: u64 = 256;
    bytes as u64 + EACH
}

/// The other end of a relayed connection.
pub(super) struct Peer {
    pub(super) store: Arc<dyn Store>,
    /// Where the other node listens.
    pub(super) subject: String,
    /// The connection.
    pub(super) id: u64,
    pub(super) limits: RelayLimits,
}

/// The answers to [`Kind::Sync`] and [`Kind::Open`].
pub(super) const YES: &[u8] = b"1";
pub(super) const NO: &[u8] = b"0";

/// A packet of a connection, and where its answer is awaited.
pub(super) type Arrived = (Packet, Option<Str>);

/// Carries frames until the connection ends on either side, and closes what is left of it. When
/// `ended` is ready, the own connection is closed with its frame.
pub(super) async fn relay<T: Transport>(
    transport: T,
    mut packets: mpsc::Receiver<Arrived>,
    peer: &Peer,
    ended: impl Future<Output = CloseFrame>,
) {
    let (mut sink, mut stream) = transport.split();
    let end = {
        let mut receiving = pin!(peer.receive(&mut packets, &mut sink));
        tokio::select! {
            biased;
            frame = ended => Ok(End::Close(frame)),
            end = &mut receiving => end,
            end = peer.send_all(&mut stream) => match end {
                // Its last frames may be here.
                Err(error) => {
                    let received = timeout(LAST_FRAMES, receiving).await;
                    received.unwrap_or(Err(error)).map_err(|_| error)
                }
                end => end,
            },
        }
    };
    let end = end.unwrap_or_else(|error| {
        tracing::debug!(%error, "a relayed connection ends");
        End::Close(CloseFrame::new(SERVICE_RESTART, error.to_string()))
    });
    // For the case that it does not know.
    let _ = peer.send(Kind::End, 0, Bytes::new()).await;
    let closing = async {
        if let End::Close(frame) = &end {
            let _ = sink.send(Outgoing::Close(frame.clone())).await;
        }
        let _ = sink.flush().await;
        while end != End::Cut && matches!(stream.next().await, Some(Ok(_))) {}
    };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

impl Peer {
    pub(super) async fn send(
        &self,
        kind: Kind,
        number: u64,
        bytes: Bytes,
    ) -> Result<(), RelayError> {
        let packet = self.packet(kind, number, bytes);
        let sent = self.store.publish(&self.subject, packet).await;
        sent.map_err(|_| RelayError::Store)
    }

    fn packet(&self, kind: Kind, number: u64, bytes: Bytes) -> Bytes {
        let id = self.id;
        let packet = Packet {
            kind,
            id,
            number,
            bytes,
        };
        packet.encode()
    }

    /// Sends what the own connection brings, until it ends.
    async fn send_all(
        &self,
        stream: &mut (impl Stream<Item = Result<Message, TransportError>> + Unpin),
    ) -> Result<End, RelayError> {
        let limits = &self.limits;
        let (mut number, mut unconfirmed) = (0, 0);
        loop {
            let patience = if unconfirmed > 0 { SYNC_AFTER } else { IDLE };
            let Ok(message) = timeout(patience, stream.next()).await else {
                self.sync(number).await?;
                unconfirmed = 0;
                continue;
            };
            let Some((kind, mut bytes)) = parts_of(message) else {
                continue;
            };
            if bytes.len() > limits.max_frame_bytes {
                return Err(RelayError::TooLarge);
            }
            loop {
                let piece = bytes.split_to(bytes.len().min(limits.max_piece_bytes));
                if unconfirmed + cost(piece.len()) > limits.window {
                    self.sync(number).await?;
                    unconfirmed = 0;
                }
                unconfirmed += cost(piece.len());
                let kind = if bytes.is_empty() { kind } else { Kind::More };
                self.send(kind, number, piece).await?;
                number += 1;
                if bytes.is_empty() {
                    break;
                }
            }
            match kind {
                Kind::Close => return Ok(End::Closed),
                Kind::Cut => return Ok(End::Cut),
                _ => {}
            }
        }
    }

    /// Waits until the other node has passed on all pieces before this number. It may be slow: it is asked
    /// again and again.
    async fn sync(&self, number: u64) -> Result<(), RelayError> {
        let question = self.packet(Kind::Sync, number, Bytes::new());
        loop {
            let asked = self
                .store
                .ask(&self.subject, question.clone(), SYNC_TIMEOUT);
            match asked.await {
                Ok(answer) if &*answer == YES => return Ok(()),
                Ok(_) => return Err(RelayError::Gap),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Passes on the frames of the other node, until its connection ends.
    async fn receive(
        &self,
        packets: &mut mpsc::Receiver<Arrived>,
        sink: &mut (impl Sink<Outgoing> + Unpin),
    ) -> Result<End, RelayError> {
        let (mut expected, mut partial) = (0, BytesMut::new());
        while let Some((packet, reply_to)) = packets.recv().await {
            if packet.number != expected {
                return Err(RelayError::Gap);
            }
            if packet.kind == Kind::Sync {
                if let Some(reply_to) = reply_to {
                    self.store.answer(&reply_to, Bytes::from_static(YES));
                }
                continue;
            }
            expected += 1;
            if partial.len() + packet.bytes.len() > self.limits.max_frame_bytes {
                return Err(RelayError::TooLarge);
            }
            let mut bytes = packet.bytes;
            if packet.kind == Kind::More || !partial.is_empty() {
                partial.extend_from_slice(&bytes);
                if packet.kind == Kind::More {
                    continue;
                }
                bytes = std::mem::take(&mut partial).freeze();
            }
            let frame = match packet.kind {
                Kind::Text => Outgoing::Text(Text::new(bytes).map_err(|_| RelayError::NoText)?),
                Kind::Close => return Ok(End::Close(close_of(bytes))),
                Kind::Cut => return Ok(End::Cut),
                _ => Outgoing::Binary(bytes),
            };
            if sink.send(frame).await.is_err() {
                return Ok(End::Cut);
            }
        }
        Err(RelayError::Gone)
    }
}

/// The frame to send for what a connection brings; `None` if there is none.
fn parts_of(message: Option<Result<Message, TransportError>>) -> Option<(Kind, Bytes)> {
    let close = |frame: CloseFrame| {
        let mut bytes = BytesMut::with_capacity(2 + frame.reason.len());
        bytes.put_u16(frame.code);
        bytes.put_slice(frame.reason.as_bytes());
        (Kind::Close, bytes.freeze())
    };
    match message {
        Some(Ok(Message::Text(text))) => Some((Kind::Text, text.into_bytes())),
        Some(Ok(Message::Binary(bytes))) => Some((Kind::Binary, bytes)),
        Some(Ok(Message::Close(None))) => Some((Kind::Close, Bytes::new())),
        Some(Ok(Message::Close(Some(frame)))) => Some(close(frame)),
        Some(Ok(_)) => None,
        Some(Err(TransportError::TooLarge { .. })) => {
            let frame = CloseFrame::new(CloseFrame::TOO_BIG, "a message is too large");
            Some(close(frame))
        }
        Some(Err(_)) | None => Some((Kind::Cut, Bytes::new())),
    }
}

fn close_of(mut bytes: Bytes) -> CloseFrame {
    match bytes.try_get_u16() {
        Ok(code) => CloseFrame::new(code, String::from_utf8_lossy(&bytes)),
        Err(_) => CloseFrame::new(CloseFrame::NORMAL, ""),
    }
}

#[cfg(test)]
mod tests;
