//! A plain WebSocket client: for the peers without RPC, and for all servers whose end alone counts.

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

pub(super) type Socket = WebSocketStream<TcpStream>;

/// Buffers for many connections.
pub(crate) fn small_buffers() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(4096)
}

/// Connects and says what the server's protocol wants first.
pub(super) async fn open(kind: &str, address: &str) -> Socket {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let path = match kind {
        "exoclaw" | "connectonion" => "/ws",
        "snek" => "/rpc.ws",
        _ => "/",
    };
    let url = format!("ws://{address}{path}");
    let (mut socket, _) =
        tokio_tungstenite::client_async_with_config(url, stream, Some(small_buffers()))
            .await
            .unwrap();
    match kind {
        "exoclaw" => assert!(text(&mut socket).await.contains("\"ok\":true")),
        "connectonion" => {
            let connect = r#"{"type":"CONNECT"}"#;
            socket.send(Message::text(connect)).await.unwrap();
            let answer = text(&mut socket).await;
            assert!(answer.contains("\"status\":\"new\""), "{answer}");
        }
        "snek" => {
            let login = r#"{"method":"login","args":["ann","a"],"kwargs":{},"callId":"1"}"#;
            socket.send(Message::text(login)).await.unwrap();
            let answer = text(&mut socket).await;
            assert!(answer.contains("\"success\":true"), "{answer}");
        }
        _ => {}
    }
    socket
}

/// The next text.
pub(super) async fn text(socket: &mut Socket) -> String {
    loop {
        let message = socket.next().await.expect("a message").unwrap();
        if let Message::Text(text) = message {
            return text.to_string();
        }
    }
}
