//! tokio-tungstenite alone: echoes what it is told, a number is answered with so many frames.

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{CHUNK, Tell};
use crate::net::raw::small_buffers;
use crate::text;

/// `each`: every message is flushed by itself; else what is ready is flushed together.
pub(super) async fn serve(tell: Tell, each: bool, small: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    tell(listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            stream.set_nodelay(true).unwrap();
            let config = small.then(small_buffers);
            let socket = tokio_tungstenite::accept_async_with_config(stream, config).await;
            if let Ok(socket) = socket {
                answer(socket, each).await;
            }
        });
    }
}

/// Until the client leaves.
async fn answer(mut socket: WebSocketStream<TcpStream>, each: bool) -> Option<()> {
    loop {
        let mut next = Some(socket.next().await);
        while let Some(message) = next {
            let message = message?.ok()?;
            match message
                .to_text()
                .ok()
                .and_then(|text| text.trim_end().parse().ok())
            {
                Some(count) => stream(&mut socket, each, count).await?,
                None if each => socket.send(message).await.ok()?,
                None => socket.feed(message).await.ok()?,
            }
            next = socket.next().now_or_never();
        }
        socket.flush().await.ok()?;
    }
}

async fn stream(socket: &mut WebSocketStream<TcpStream>, each: bool, count: usize) -> Option<()> {
    let frame = text::exoclaw_text(&text::words(CHUNK));
    for _ in 0..count {
        let frame = Message::text(frame.clone());
        if each {
            socket.send(frame).await.ok()?;
        } else {
            socket.feed(frame).await.ok()?;
        }
    }
    Some(())
}
