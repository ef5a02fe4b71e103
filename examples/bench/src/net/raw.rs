//! A plain WebSocket client: for the peers without RPC, and for all servers whose end alone counts.

use std::net::Ipv4Addr;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::kind::{Kind, USERS};

pub(super) type Socket = WebSocketStream<TcpStream>;

/// Buffers for many connections.
pub(crate) fn small_buffers() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(4096)
        .write_buffer_size(4096)
}

/// How many connections come from one address: the system has 28,000 ports for each.
const PER_ADDRESS: usize = 20_000;

/// Connects, as the client with this number, and says what the server's protocol wants first.
pub(super) async fn open(kind: Kind<'_>, address: &str, number: usize) -> Socket {
    let stream = tcp(address, number).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let path = match kind.end {
        "exoclaw" | "connectonion" => "/ws",
        "snek" => "/rpc.ws",
        _ => "/",
    };
    let url = format!("ws://{address}{path}");
    let (mut socket, _) =
        tokio_tungstenite::client_async_with_config(url, stream, Some(small_buffers()))
            .await
            .unwrap();
    match kind.end {
        "exoclaw" => assert!(text(&mut socket).await.contains("\"ok\":true")),
        "connectonion" => {
            let connect = r#"{"type":"CONNECT"}"#;
            socket.send(Message::text(connect)).await.unwrap();
            let answer = text(&mut socket).await;
            assert!(answer.contains("\"status\":\"new\""), "{answer}");
        }
        "snek" => {
            let user = match kind.work {
                USERS => format!("user{number}"),
                _ => "ann".to_owned(),
            };
            let login =
                format!(r#"{{"method":"login","args":["{user}","a"],"kwargs":{{}},"callId":"1"}}"#);
            socket.send(Message::text(login)).await.unwrap();
            let answer = text(&mut socket).await;
            assert!(answer.contains("\"success\":true"), "{answer}");
        }
        _ => {}
    }
    socket
}

async fn tcp(address: &str, number: usize) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if number >= PER_ADDRESS {
        let from = Ipv4Addr::new(127, 0, 1, (number / PER_ADDRESS) as u8);
        socket.bind((from, 0).into())?;
    }
    socket.connect(address.parse().unwrap()).await
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
