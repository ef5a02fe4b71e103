//! A client's real socket: the megabyte on both ways, and pongs.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::net::{LinkEvent, LinkState, Message};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CloseReason, Outgoing, Refused};
use serde_json::json;
use smarthole_proto::net::{Client, Event, Events, InboundMessage, connect_with, dialer};
use tokio::net::{TcpListener, TcpStream};

use crate::played::{Router, acked, config, message, rejected};

const MEGABYTE: usize = 1_048_576;

type Server = Router<WsStream<TcpStream>>;

/// Whatever a test waits for comes within this time or not at all.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let waiting = tokio::time::timeout(Duration::from_secs(10), future);
    waiting.await.expect("it comes")
}

async fn accept(listener: &TcpListener) -> Server {
    let (tcp, _) = listener.accept().await.unwrap();
    // A router that would send and take more.
    let generous = WsConfig {
        max_message: 4 * MEGABYTE,
        max_outgoing: 4 * MEGABYTE,
        ..WsConfig::default()
    };
    Router(WsStream::accept(tcp, &generous).await.unwrap())
}

async fn connected() -> (Client, Events, Server, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let soon_again = ReconnectPolicy::new(BackoffPolicy::new(Duration::from_millis(10), 1.0));
    let mut config = config();
    config.link.reconnect = soon_again;
    let dialer = dialer(&url, &config).unwrap();
    let (client, events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    let mut router = accept(&listener).await;
    router.register().await;
    client.ready().await.unwrap();
    (client, events, router, listener)
}

async fn received(events: &mut Events) -> InboundMessage {
    loop {
        if let LinkEvent::Event(Event::Message(message)) =
            events.next_link().await.expect("a message")
        {
            return message;
        }
    }
}

/// A message whose frame has this size.
fn of_size(size: usize) -> String {
    let shell = message("m", "").to_string().len();
    let frame = message("m", &"x".repeat(size - shell)).to_string();
    assert_eq!(frame.len(), size);
    frame
}

#[tokio::test]
async fn a_message_over_a_mebibyte_closes_with_1009() {
    let (client, mut events, mut router, listener) = connected().await;
    router.send_text(&of_size(MEGABYTE)).await;
    let message = soon(received(&mut events)).await;
    assert_eq!(message.frame().get().len(), MEGABYTE);
    message.ack().await.unwrap();
    assert_eq!(soon(router.recv()).await, acked("m"));
    router.send_text(&of_size(MEGABYTE + 1)).await;
    assert_eq!(soon(router.recv()).await[0], json!(1009));
    let cause = loop {
        if let LinkEvent::State(LinkState::Lost { cause, .. }) =
            soon(events.next_link()).await.unwrap()
        {
            break cause;
        }
    };
    assert_eq!(cause, CloseReason::TooLarge { max: MEGABYTE });
    // It comes back all the same.
    drop(router);
    let mut router = soon(accept(&listener)).await;
    router.register().await;
    assert_eq!(soon(client.ready()).await, Ok(2));
}

#[tokio::test]
async fn a_response_over_a_mebibyte_is_refused() {
    let (client, mut events, mut router, _listener) = connected().await;
    router.route("m", "text").await;
    let message = soon(received(&mut events)).await;
    let shell = rejected("m", "").to_string().len();
    let fits = "x".repeat(MEGABYTE - shell);
    let refused = message.reject(format!("{fits}x")).await;
    let (size, max) = (MEGABYTE + 1, MEGABYTE);
    assert_eq!(refused, Err(Refused::TooLarge { size, max }));
    assert!(!message.is_answered());
    message.reject(fits.as_str()).await.unwrap();
    assert_eq!(soon(router.recv()).await, rejected("m", &fits));
    client.close();
    assert_eq!(
        soon(router.recv()).await,
        json!([1000, "Client disconnect"])
    );
    assert_eq!(soon(client.closed()).await, CloseReason::Local);
}

#[tokio::test]
async fn an_idle_client_answers_every_ping() {
    let (_client, _events, mut router, _listener) = connected().await;
    for payload in ["", "anything"] {
        let ping = Outgoing::Ping(Bytes::from_static(payload.as_bytes()));
        router.0.send(ping).await.unwrap();
        let answer = soon(router.0.next()).await.unwrap().unwrap();
        assert!(
            matches!(&answer, Message::Pong(pong) if *pong == payload),
            "{answer:?}"
        );
    }
}
