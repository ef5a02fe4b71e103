//! Connections that another server passes on with a ticket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::request::Parts;
use http::{Request, StatusCode};
use rpc_core::net::server::{
    Accepted, Body, HttpConfig, PeerAddr, ProtocolServer, ServerLimits, Service, Tickets,
};
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{DialError, Dialer as _, Message};
use rpc_core::{Outgoing, Secret, Text};
use tokio::time::{Instant, sleep};
use tower_service::Service as _;

use crate::server::{Running, Server, exchange, start_with};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The client's request: from a page, for a name that is not served here.
fn head() -> Parts {
    let head = Request::get("/rpc.ws?a=b").header("origin", "https://app.example");
    head.header("host", "chat.example")
        .body(())
        .unwrap()
        .into_parts()
        .0
}

fn config(tickets: &Arc<Tickets>) -> HttpConfig {
    let config = HttpConfig {
        paths: vec!["/rpc.ws".into()],
        ..HttpConfig::default()
    };
    HttpConfig {
        tickets: Some(Arc::clone(tickets)),
        ..config
    }
}

/// Says who has connected, and with which request.
async fn describe(mut accepted: Accepted) {
    let text = format!(
        "{} {} {}",
        accepted.peer, accepted.caller, accepted.parts.uri
    );
    let text = Outgoing::Text(Text::from(text));
    accepted.socket.send(text).await.unwrap();
    while matches!(accepted.socket.next().await, Some(Ok(_))) {}
}

fn url(server: &Running, ticket: &str) -> WsDialer {
    let url = format!("ws://{}/rpc.ws/{ticket}", server.address);
    WsDialer::new(&url).unwrap()
}

#[tokio::test]
async fn a_ticket_counts_once_and_makes_the_connection_the_clients() {
    let tickets = Arc::<Tickets>::default();
    let server = start_with(config(&tickets), describe).await;
    let ticket = tickets.issue(address("192.0.2.7:5000"), head()).unwrap();
    let dialer = url(&server, ticket.expose());
    let mut ws = dialer.dial().await.unwrap();
    let said = ws.next().await.unwrap().unwrap();
    let expected = "192.0.2.7:5000 192.0.2.7 /rpc.ws?a=b";
    assert_eq!(said, Message::Text(Text::from(expected)));
    let again = dialer.dial().await;
    assert!(
        matches!(again, Err(DialError::Status { status: 404, .. })),
        "{again:?}"
    );
}

/// A mounted server, whose peers are told.
fn mount(tickets: &Arc<Tickets>, limits: ServerLimits) -> (impl Send, Service) {
    let config = HttpConfig {
        limits,
        ..config(tickets)
    };
    let (server, service): (ProtocolServer<_>, _) = Server::mount(|_| async {}, config);
    (server, service)
}

/// What a server at the other host gets.
async fn status(service: &mut Service, path: &str) -> StatusCode {
    let request = Request::get(path)
        .header("host", "elsewhere.example")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .extension(PeerAddr(address("192.0.2.1:9")));
    let request = request.body(Body::from("")).unwrap();
    service.call(request).await.unwrap().status()
}

fn path(ticket: &Secret) -> String {
    format!("/rpc.ws/{}", ticket.expose())
}

#[tokio::test(start_paused = true)]
async fn a_forged_or_late_ticket_is_answered_as_an_unknown_path_and_slowed_down() {
    let tickets = Arc::<Tickets>::default();
    let (_server, mut service) = mount(&tickets, ServerLimits::default());
    let unknown = status(&mut service, "/nothing").await;
    let late = tickets.issue(address("192.0.2.7:1"), head()).unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(status(&mut service, &path(&late)).await, unknown);
    let begin = Instant::now();
    for guess in 0..12 {
        let forged = format!("/rpc.ws/{guess:032x}");
        assert_eq!(status(&mut service, &forged).await, unknown);
    }
    assert_eq!(begin.elapsed().as_secs(), 3);
    let good = tickets.issue(address("192.0.2.7:1"), head()).unwrap();
    tickets.clear();
    assert_eq!(status(&mut service, &path(&good)).await, unknown);
}

#[tokio::test]
async fn an_address_with_its_most_connections_gets_no_more_through_another_server() {
    let tickets = Arc::<Tickets>::default();
    let limits = ServerLimits {
        max_connections_per_ip: Some(2),
        ..ServerLimits::default()
    };
    let server = start_with(
        HttpConfig {
            limits,
            ..config(&tickets)
        },
        async |mut accepted: Accepted| {
            while let Some(Ok(message)) = accepted.socket.next().await {
                if let Message::Text(text) = message {
                    accepted.socket.send(Outgoing::Text(text)).await.unwrap();
                }
            }
        },
    )
    .await;
    let mut open = Vec::new();
    for (client, has_room) in [(7, true), (7, true), (7, false), (8, true), (8, true)] {
        let client = address(&format!("192.0.2.{client}:1"));
        let ticket = tickets.issue(client, head()).unwrap();
        match url(&server, ticket.expose()).dial().await {
            Ok(mut ws) => {
                assert!(has_room, "{client}");
                exchange(&mut ws, "hello").await;
                open.push(ws);
            }
            Err(DialError::Status { status: 503, .. }) => assert!(!has_room, "{client}"),
            Err(error) => panic!("{error}"),
        }
    }
    // None of them counts for the server that passes them on.
    server.dial().await.unwrap();
}
