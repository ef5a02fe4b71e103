//! fastwebsockets alone: echoes what it is told, a number is answered with so many frames.

use fastwebsockets::{Frame, Payload, Role, WebSocketError};
use tokio::net::TcpListener;

use super::{CHUNK, Tell};
use crate::net::fast::FastSocket;
use crate::text;

pub(super) async fn serve(tell: Tell, each: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    tell(listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            stream.set_nodelay(true).unwrap();
            // The handshake alone is another crate's: nothing of it stays.
            if let Ok(socket) = tokio_tungstenite::accept_async(stream).await {
                let socket = FastSocket::new(socket.into_inner(), Role::Server, each);
                let _ = answer(socket).await;
            }
        });
    }
}

/// Until the client leaves.
async fn answer(mut socket: FastSocket) -> Result<(), WebSocketError> {
    loop {
        let message = socket.next().await?;
        let text = std::str::from_utf8(&message).ok();
        let Some(count) = text.and_then(|text| text.parse().ok()) else {
            let payload = Payload::Bytes(message);
            socket.writer.send(Frame::text(payload)).await?;
            continue;
        };
        let frame = text::exoclaw_text(&text::words(CHUNK));
        for _ in 0..count {
            let payload = Payload::Borrowed(frame.as_bytes());
            socket.writer.send(Frame::text(payload)).await?;
        }
    }
}
