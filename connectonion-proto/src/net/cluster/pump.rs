//! [`pump`]: carries frames between a connection and its [`Relay`].

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rpc_core::cluster::Store;
use rpc_core::net::{Message, Transport, TransportError, time};
use rpc_core::{CloseFrame, Instant, Outgoing};
use tokio::time::{sleep_until, timeout};

use super::packet::{Frame, Packet};
use super::relay::RelayEnd;
use super::relays::Relayed;
use crate::limits::SERVICE_RESTART;

/// How long the own connection may take for its Close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The other end of a relayed connection.
pub(super) struct Peer {
    pub(super) store: Arc<dyn Store>,
    /// Where the other node listens.
    pub(super) subject: String,
    /// The connection.
    pub(super) id: u64,
}

impl Peer {
    pub(super) async fn send(&self, packet: &Packet) -> Result<(), RelayEnd> {
        let sent = self.store.publish(&self.subject, packet.encode(self.id));
        sent.await.map_err(|_| RelayEnd::Timeout)
    }
}

/// Carries frames until the connection ends on either side, and closes what is left of it. When
/// `ended` is ready, the own connection is closed with its frame.
pub(super) async fn pump<T: Transport>(
    transport: T,
    relayed: Relayed,
    ended: impl Future<Output = CloseFrame>,
) {
    let Relayed {
        mut relay,
        mut packets,
        peer,
        registered: _registered,
    } = relayed;
    let (sink, mut stream) = transport.split();
    let mut ended = pin!(ended);
    // The sink is inside while it writes.
    let mut idle = Some(sink);
    let mut writing = None;
    let (mut is_open, mut last) = (true, None);
    let close = loop {
        let now = time::now();
        let mut sent = Ok(());
        while let Some(packet) = relay.poll_packet(now) {
            sent = peer.send(&packet).await;
            if sent.is_err() {
                break;
            }
        }
        if let Some(frame) = idle.as_ref().and_then(|_| relay.poll_frame()) {
            match outgoing(frame) {
                Ok(frame) => {
                    if let Outgoing::Close(frame) = frame {
                        break Some(frame);
                    }
                    writing = idle.take().map(|mut sink| {
                        Box::pin(async move {
                            let sent = sink.send(frame).await;
                            (sink, sent)
                        })
                    });
                }
                Err(Cut) => {
                    is_open = false;
                    break None;
                }
            }
            continue;
        }
        let end = sent
            .err()
            .or_else(|| relay.end().filter(|_| idle.is_some()));
        match end {
            // The own connection has sent its Close, or is cut.
            Some(RelayEnd::Over) => break None,
            Some(end) => {
                tracing::debug!(%end, "a relayed connection ends");
                // The other end may be at work still.
                let _ = peer.send(&Packet::Gone).await;
                break Some(CloseFrame::new(SERVICE_RESTART, end.to_string()));
            }
            None => {}
        }
        let deadline = relay.poll_timeout();
        tokio::select! {
            biased;
            frame = &mut ended => {
                last = Some(frame);
                break None;
            }
            (sink, sent) = async { match &mut writing {
                Some(writing) => writing.await,
                None => std::future::pending().await,
            } } => {
                writing = None;
                idle = Some(sink);
                if sent.is_err() {
                    is_open = false;
                    relay.send(Frame::Cut);
                }
            }
            packet = packets.recv() => match packet {
                Some(packet) => relay.handle_packet(packet, time::now()),
                // There was no room for a packet.
                None => relay.handle_lost(),
            },
            message = stream.next(), if is_open && relay.has_room() => {
                match message {
                    Some(Ok(Message::Text(text))) => relay.send(Frame::Text(text)),
                    Some(Ok(Message::Binary(bytes))) => relay.send(Frame::Binary(bytes)),
                    Some(Ok(Message::Close(frame))) => relay.send(Frame::Close(frame)),
                    Some(Ok(_)) => {}
                    Some(Err(TransportError::TooLarge { .. })) => {
                        let frame = CloseFrame::new(CloseFrame::TOO_BIG, "a message is too large");
                        relay.send(Frame::Close(Some(frame)));
                    }
                    Some(Err(_)) | None => {
                        is_open = false;
                        relay.send(Frame::Cut);
                    }
                }
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now).into()), if deadline.is_some() => {
                relay.handle_timeout(time::now());
            }
        }
    };
    if last.is_some() {
        // In order, if there is room; else the other end is told at once.
        relay.send(Frame::Cut);
        while let Some(packet) = relay.poll_packet(time::now()) {
            if peer.send(&packet).await.is_err() {
                break;
            }
        }
        let _ = peer.send(&Packet::Gone).await;
    }
    let closing = async {
        let mut sink = match (idle, writing) {
            (Some(sink), _) => sink,
            (None, Some(writing)) => writing.await.0,
            (None, None) => return,
        };
        if let Some(frame) = close.or(last) {
            let _ = sink.send(Outgoing::Close(frame)).await;
        }
        let _ = sink.flush().await;
        while is_open && matches!(stream.next().await, Some(Ok(_))) {}
    };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

/// The connection was cut.
struct Cut;

fn outgoing(frame: Frame) -> Result<Outgoing, Cut> {
    Ok(match frame {
        Frame::Text(text) => Outgoing::Text(text),
        Frame::Binary(bytes) => Outgoing::Binary(bytes),
        Frame::Close(Some(frame)) => Outgoing::Close(frame),
        Frame::Close(None) => Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, "")),
        Frame::Cut => return Err(Cut),
    })
}
