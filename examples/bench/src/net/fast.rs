//! fastwebsockets over plain TCP. It only writes, into a buffer here, and leaves when to flush to us.

use bytes::BytesMut;
use fastwebsockets::{Frame, OpCode, Payload, Role, WebSocketError, WebSocketRead, WebSocketWrite};
use futures_util::FutureExt;
use tokio::io::BufWriter;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

pub(super) struct FastSocket {
    reader: WebSocketRead<OwnedReadHalf>,
    pub(super) writer: Writer,
}

pub(super) struct Writer {
    socket: WebSocketWrite<BufWriter<OwnedWriteHalf>>,
    /// Every message is flushed by itself.
    each: bool,
}

impl FastSocket {
    /// Of a connection whose handshake is done.
    pub(super) fn new(stream: TcpStream, role: Role, each: bool) -> Self {
        let (read, write) = stream.into_split();
        let write = BufWriter::with_capacity(4096, write);
        let (reader, socket) = fastwebsockets::after_handshake_split(read, write, role);
        let writer = Writer { socket, each };
        Self { reader, writer }
    }

    /// The next text. What was written is flushed before it waits for one.
    pub(super) async fn next(&mut self) -> Result<BytesMut, WebSocketError> {
        let mut unasked = |_| async { Ok::<(), WebSocketError>(()) };
        let mut reading = std::pin::pin!(self.reader.read_frame(&mut unasked));
        // A read that was begun has to be ended: it is not cancel safe.
        let frame = match reading.as_mut().now_or_never() {
            Some(frame) => frame?,
            None => {
                self.writer.flush().await?;
                reading.await?
            }
        };
        match frame.opcode {
            OpCode::Text => Ok(match frame.payload {
                Payload::Bytes(text) => text,
                other => BytesMut::from(&other[..]),
            }),
            _ => Err(WebSocketError::ConnectionClosed),
        }
    }
}

impl Writer {
    pub(super) async fn send(&mut self, frame: Frame<'_>) -> Result<(), WebSocketError> {
        self.socket.write_frame(frame).await?;
        if self.each {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), WebSocketError> {
        self.socket.flush().await
    }
}
