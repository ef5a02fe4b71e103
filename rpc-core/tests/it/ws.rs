//! WebSockets: both ends over real sockets, and raw frames against one end.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use rpc_core::net::ws::{Role, Socket, WsConfig, WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer as _, Message, TransportError};
use rpc_core::{CloseFrame, Outgoing, Text};
use switchboard_testing::faults::RawFrame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpListener;

const DEADLINE: Duration = Duration::from_millis(300);

async fn pair(client: WsConfig, server: WsConfig) -> (WsStream, WsStream<Socket>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/rpc.ws", listener.local_addr().unwrap());
    let dialer = WsDialer::new(&url).unwrap().with_config(client);
    let accept = async {
        let (tcp, _) = listener.accept().await.unwrap();
        WsStream::accept(Socket::from(tcp), &server).await.unwrap()
    };
    let (client, server) = tokio::join!(dialer.dial(), accept);
    (client.unwrap(), server)
}

/// A server's end, and the bytes of its peer.
async fn raw_peer(config: &WsConfig, pipe: usize) -> (WsStream<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(pipe);
    (
        WsStream::from_upgraded(ours, Bytes::new(), Role::Server, config).await,
        theirs,
    )
}

/// A frame as a client sends it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    RawFrame::new(first, payload).into_bytes(Role::Client)
}

fn text(payload: &str) -> Outgoing {
    Outgoing::Text(Text::from(payload))
}

#[tokio::test]
async fn an_idle_client_survives_three_pings() {
    let (mut client, mut server) = pair(WsConfig::default(), WsConfig::default()).await;
    let idle = tokio::spawn(async move {
        let mut pings = 0;
        while let Some(Ok(message)) = client.next().await {
            pings += u32::from(matches!(message, Message::Ping(_)));
        }
        pings
    });
    for n in 0..3u8 {
        server
            .send(Outgoing::Ping(Bytes::copy_from_slice(&[n])))
            .await
            .unwrap();
        let pong = server.next().await.unwrap().unwrap();
        assert_eq!(pong, Message::Pong(Bytes::copy_from_slice(&[n])));
    }
    server
        .send(Outgoing::Close(CloseFrame::new(1000, "")))
        .await
        .unwrap();
    assert!(matches!(server.next().await, Some(Ok(Message::Close(_)))));
    assert_eq!(idle.await.unwrap(), 3);
}

#[tokio::test]
async fn a_pong_is_sent_without_another_poll() {
    let (mut ws, mut peer) = raw_peer(&WsConfig::default(), 1024).await;
    peer.write_all(&frame(0x89, b"hi")).await.unwrap();
    assert_eq!(
        ws.next().await.unwrap().unwrap(),
        Message::Ping(Bytes::from_static(b"hi"))
    );
    let mut pong = [0; 4];
    peer.read_exact(&mut pong).await.unwrap();
    assert_eq!(&pong, b"\x8a\x02hi");
}

#[tokio::test]
async fn a_stuck_pong_is_sent_once_the_socket_is_writable() {
    let (mut ws, mut peer) = raw_peer(&WsConfig::default(), 64).await;
    let stuck = Bytes::from(vec![b'x'; 100]);
    assert!(ws.send(Outgoing::Binary(stuck)).now_or_never().is_none());
    peer.write_all(&frame(0x89, b"hi")).await.unwrap();
    assert!(matches!(ws.next().await, Some(Ok(Message::Ping(_)))));
    let reader = tokio::spawn(async move { ws.next().await.is_none() });
    let mut all = vec![0; 102 + 4];
    peer.read_exact(&mut all).await.unwrap();
    assert!(all.ends_with(b"\x8a\x02hi"));
    drop(peer);
    assert!(reader.await.unwrap());
}

#[tokio::test]
async fn reading_stops_when_a_peer_reads_no_pongs() {
    let (mut ws, mut peer) = raw_peer(&WsConfig::default(), 256).await;
    let flood = tokio::spawn(async move {
        let ping = frame(0x89, &[7; 125]);
        for _ in 0..200 {
            peer.write_all(&ping).await.unwrap();
        }
        peer
    });
    let mut pings = 0;
    loop {
        tokio::task::yield_now().await;
        match ws.next().now_or_never() {
            Some(message) => {
                message.unwrap().unwrap();
                pings += 1;
            }
            None if pings >= 32 => break,
            None => {}
        }
    }
    for _ in 0..50 {
        tokio::task::yield_now().await;
        assert!(ws.next().now_or_never().is_none());
    }
    assert!(pings < 50, "{pings}");
    flood.abort();
}

#[tokio::test]
async fn a_peers_close_is_returned_answered_and_ends_the_stream() {
    let (mut client, mut server) = pair(WsConfig::default(), WsConfig::default()).await;
    server
        .send(Outgoing::Close(CloseFrame::new(1001, "bye")))
        .await
        .unwrap();
    let close = Message::Close(Some(CloseFrame::new(1001, "bye")));
    assert_eq!(client.next().await.unwrap().unwrap(), close);
    assert!(client.next().await.is_none());
    assert_eq!(server.next().await.unwrap().unwrap(), close);
    assert!(server.next().await.is_none());
    assert!(matches!(
        client.send(text("late")).await,
        Err(TransportError::Closed)
    ));
    client
        .send(Outgoing::Close(CloseFrame::new(1000, "")))
        .await
        .unwrap();
    client.close().await.unwrap();
    server.close().await.unwrap();
}

#[tokio::test]
async fn closing_the_sink_sends_1000_and_shuts_down() {
    let (mut client, mut server) = pair(WsConfig::default(), WsConfig::default()).await;
    client.close().await.unwrap();
    let close = server.next().await.unwrap().unwrap();
    assert_eq!(close, Message::Close(Some(CloseFrame::new(1000, ""))));
    assert!(server.next().await.is_none());
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_connection_lost_without_a_close_ends_the_stream() {
    let (mut ws, peer) = raw_peer(&WsConfig::default(), 1024).await;
    drop(peer);
    assert!(ws.next().await.is_none());
    assert!(ws.next().await.is_none());
}

#[tokio::test]
async fn a_half_closed_peer_ends_the_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut peer = tokio::net::TcpStream::connect(address).await.unwrap();
    let (tcp, _) = listener.accept().await.unwrap();
    let config = WsConfig::default();
    let mut ws = WsStream::from_upgraded(tcp, Bytes::new(), Role::Server, &config).await;
    peer.write_all(&frame(0x81, b"last words")).await.unwrap();
    peer.shutdown().await.unwrap();
    assert_eq!(
        ws.next().await.unwrap().unwrap(),
        Message::Text(Text::from("last words"))
    );
    assert!(ws.next().await.is_none());
}

#[tokio::test]
async fn the_sink_buffers_a_bounded_amount_on_a_stuck_socket() {
    let (mut ws, mut peer) = raw_peer(&WsConfig::default(), 64).await;
    let chunk = "y".repeat(1000);
    let mut fed = 0u32;
    while poll_fn(|cx| std::task::Poll::Ready(ws.poll_ready_unpin(cx).is_ready())).await {
        ws.start_send_unpin(text(&chunk)).unwrap();
        fed += 1;
    }
    assert!((32..=34).contains(&fed), "{fed} frames were taken");
    let drain = tokio::spawn(async move {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).await.unwrap();
        all.len()
    });
    ws.send(text("end")).await.unwrap();
    ws.close().await.unwrap();
    drop(ws);
    // Each frame of 1000 bytes has a header of four; the last two are 5 and 4 bytes long.
    let expected = usize::try_from(fed).unwrap() * 1004 + 5 + 4;
    assert_eq!(drain.await.unwrap(), expected);
}

#[tokio::test]
async fn a_frame_sent_without_poll_ready_is_kept_and_the_next_refused() {
    let config = WsConfig {
        max_outgoing: 10_000,
        ..WsConfig::default()
    };
    let (mut ws, mut peer) = raw_peer(&config, 64).await;
    let mut taken = 0;
    let chunk = "z".repeat(9000);
    while ws.start_send_unpin(text(&chunk)).is_ok() {
        taken += 1;
    }
    assert!(taken >= 2, "{taken}");
    let reader = tokio::spawn(async move {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).await.unwrap();
        all.iter().filter(|&&byte| byte == b'z').count()
    });
    ws.close().await.unwrap();
    drop(ws);
    assert_eq!(reader.await.unwrap(), taken * 9000);
}

#[tokio::test]
async fn an_oversized_send_leaves_nothing_behind() {
    let config = WsConfig {
        max_outgoing: 10,
        ..WsConfig::default()
    };
    let (mut ws, mut peer) = raw_peer(&config, 64).await;
    assert!(ws.send(text("eleven byte")).await.is_err());
    assert!(
        ws.send(Outgoing::Ping(Bytes::from(vec![0; 126])))
            .await
            .is_err()
    );
    ws.send(text("ten bytes!")).await.unwrap();
    let mut got = [0; 12];
    peer.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"\x81\x0aten bytes!");
}

#[tokio::test]
async fn a_reserved_close_code_is_omitted() {
    let (mut ws, mut peer) = raw_peer(&WsConfig::default(), 64).await;
    ws.send(Outgoing::Close(CloseFrame::new(1006, "x")))
        .await
        .unwrap();
    let mut got = [0; 2];
    peer.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"\x88\x00");
}

#[tokio::test]
async fn split_halves_keep_their_own_wakers() {
    let (client, server) = pair(WsConfig::default(), WsConfig::default()).await;
    let (mut client_out, mut client_in) = client.split();
    let (mut server_out, mut server_in) = server.split();
    let flood = |n: u8| Outgoing::Binary(Bytes::from(vec![n; 50_000]));
    let sending = tokio::spawn(async move {
        for n in 0..100 {
            client_out.send(flood(n)).await.unwrap();
        }
        client_out
    });
    let answering = tokio::spawn(async move {
        for n in 0..100 {
            server_out
                .send(Outgoing::Ping(Bytes::copy_from_slice(&[n])))
                .await
                .unwrap();
        }
        server_out
    });
    let reading = tokio::spawn(async move {
        for _ in 0..100 {
            assert!(matches!(client_in.next().await, Some(Ok(Message::Ping(_)))));
        }
        client_in
    });
    let (mut data, mut pongs) = (0, 0);
    while data < 100 || pongs < 100 {
        match server_in.next().await.unwrap().unwrap() {
            Message::Binary(_) => data += 1,
            Message::Pong(_) => pongs += 1,
            other => panic!("{other:?}"),
        }
    }
    let _ = tokio::join!(sending, answering, reading);
}

#[tokio::test]
async fn the_selected_subprotocol_and_response_headers_are_available() {
    let offer = |names: &[&str]| {
        names.iter().fold(WsConfig::default(), |config, name| {
            config.with_subprotocol(*name).unwrap()
        })
    };
    let (client, server) = pair(offer(&["token.abc", "acolyte.v1"]), offer(&["acolyte.v1"])).await;
    assert_eq!(client.subprotocol(), Some("acolyte.v1"));
    assert_eq!(server.subprotocol(), Some("acolyte.v1"));
    assert!(!format!("{client:?}").contains("acolyte"));
}

#[tokio::test]
async fn the_connect_deadline_covers_an_upgrade_that_is_never_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let config = WsConfig {
        connect_timeout: Duration::from_millis(50),
        ..WsConfig::default()
    };
    let dialer = WsDialer::new(&url).unwrap().with_config(config);
    let (result, _held) = tokio::join!(dialer.dial(), listener.accept());
    let error = result.unwrap_err();
    assert!(matches!(error, DialError::TimedOut { .. }), "{error:?}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn accepting_has_a_deadline_too() {
    let (ours, _theirs) = duplex(64);
    let config = WsConfig {
        connect_timeout: Duration::from_millis(50),
        ..WsConfig::default()
    };
    let error = WsStream::accept(ours, &config).await.unwrap_err();
    assert!(matches!(error, TransportError::Io(_)), "{error:?}");
}

#[tokio::test]
async fn a_status_other_than_101_is_reported() {
    let (ours, mut theirs) = duplex(4096);
    let answer = tokio::spawn(async move {
        let mut request = vec![0; 4096];
        let n = theirs.read(&mut request).await.unwrap();
        theirs
            .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        String::from_utf8_lossy(&request[..n]).into_owned()
    });
    let dialer = WsDialer::new("ws://example.com:81/a?b=c")
        .unwrap()
        .with_header("Authorization", "Bearer t")
        .unwrap();
    let error = dialer.upgrade(ours).await.unwrap_err();
    assert!(
        matches!(error, DialError::Status { status: 401, .. }),
        "{error:?}"
    );
    assert!(!error.is_retryable());
    let request = answer.await.unwrap().to_ascii_lowercase();
    assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
    assert!(
        request.contains("\r\nhost: example.com:81\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nauthorization: bearer t\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn a_disconnect_during_the_upgrade_is_retryable() {
    let (ours, theirs) = duplex(4096);
    drop(theirs);
    let dialer = WsDialer::new("ws://example.com/").unwrap();
    let error = dialer.upgrade(ours).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}

#[tokio::test]
async fn an_unused_port_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let dialer = WsDialer::new(&format!("ws://{address}/?token=hunter2")).unwrap();
    let error = dialer.dial().await.unwrap_err();
    assert!(matches!(error, DialError::Unreachable { .. }), "{error:?}");
    assert!(error.is_retryable());
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn all_addresses_of_a_name_are_tried() {
    // `localhost` may resolve to ::1 first, where no one listens.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = WsConfig {
        connect_timeout: DEADLINE,
        ..WsConfig::default()
    };
    let dialer = WsDialer::new(&format!("ws://localhost:{port}/"))
        .unwrap()
        .with_config(config);
    let accept = async {
        let (tcp, _) = listener.accept().await.unwrap();
        WsStream::accept(tcp, &WsConfig::default()).await.unwrap()
    };
    let (client, _server) = tokio::join!(dialer.dial(), accept);
    client.unwrap();
}
