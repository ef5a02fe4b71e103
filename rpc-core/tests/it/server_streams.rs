//! Answers that the server streams, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use rpc_core::net::server::{Body, HttpConfig, ServerLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::server::Server;

const LONG: Duration = Duration::from_secs(60);
const REQUEST: &[u8] = b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server that streams what the sender says, and tells when the stream is dropped.
async fn start(limits: ServerLimits) -> (SocketAddr, mpsc::Sender<Bytes>) {
    let (sender, receiver) = mpsc::channel(1);
    let receiver = std::sync::Mutex::new(Some(receiver));
    let config = HttpConfig {
        limits,
        ..HttpConfig::default()
    }
    .with_http(move |_, _| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        let pieces = stream::unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async {
            Some((receiver.recv().await?, receiver))
        });
        async { Response::new(Body::stream(pieces)) }
    });
    let server = Server::bind("127.0.0.1:0", |_| async {}, config)
        .await
        .unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    (address, sender)
}

/// Asks, and reads until the body begins with this piece.
async fn ask(address: SocketAddr, sender: &mpsc::Sender<Bytes>) -> TcpStream {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(REQUEST).await.unwrap();
    sender.send(Bytes::from_static(b"first")).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"5\r\nfirst\r\n") {
        assert!(tcp.read_buf(&mut seen).await.unwrap() > 0);
    }
    tcp
}

#[tokio::test]
async fn a_streamed_response_outlasts_the_handshake_timeout() {
    let limits = ServerLimits {
        handshake_timeout: Duration::from_millis(50),
        ..ServerLimits::default()
    };
    let (address, sender) = start(limits).await;
    let mut tcp = ask(address, &sender).await;
    let mut rest = Vec::new();
    // Nothing comes and nothing ends, long after the deadline of the handshake.
    let silence = timeout(Duration::from_millis(150), tcp.read_buf(&mut rest)).await;
    assert!(silence.is_err());
    sender.send(Bytes::from_static(b"last")).await.unwrap();
    drop(sender);
    tcp.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"4\r\nlast\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_silent_stream_is_dropped_when_its_peer_hangs_up() {
    let (address, sender) = start(ServerLimits::default()).await;
    let tcp = ask(address, &sender).await;
    drop(tcp);
    timeout(LONG, sender.closed()).await.unwrap();
}

#[tokio::test]
async fn a_peer_that_reads_nothing_of_a_stream_is_closed() {
    let limits = ServerLimits {
        write_timeout: Duration::from_millis(50),
        ..ServerLimits::default()
    };
    let (address, sender) = start(limits).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 * 1024).unwrap();
    let mut tcp = socket.connect(address).await.unwrap();
    tcp.write_all(REQUEST).await.unwrap();
    let piece = Bytes::from(vec![b'x'; 1024 * 1024]);
    // It ends when the stream is dropped.
    while sender.send(piece.clone()).await.is_ok() {}
}
