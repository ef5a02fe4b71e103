//! The server over real sockets: who gets in, and what is answered.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::json;
use smarthole_proto::frame::Priority;
use smarthole_proto::hub::{HubError, HubEvent, Input, Outcome, Unroutable};
use smarthole_proto::limits::{DEFAULT_PORT, DEFAULT_URL, MAX_PAYLOAD};
use smarthole_proto::net::{Server, ServerOptions, dialer, http_config};
use smarthole_proto::timestamp;

use crate::harness::{Obedient, Running, start, until};
use crate::played::config;
use crate::raw_client::{ack, ask_from, reject, response};
use crate::wire::{Frame, Wire, ask, frame, upgrade_request};

async fn open() -> Running {
    start(ServerOptions::default()).await
}

#[tokio::test]
async fn a_name_is_free_once_its_client_leaves() {
    let server = open().await;
    for _ in 0..20 {
        let mut first = Wire::client(server.address, "notes").await;
        let mut second = Wire::open(server.address).await;
        assert_eq!(second.register("notes").await["code"], "DUPLICATE_NAME");
        first.write(&frame(8, &1000_u16.to_be_bytes())).await;
        assert_eq!(first.next().await, Frame::Close(1000, String::new()));
        assert_eq!(second.register("notes").await["success"], true);
    }
}

#[tokio::test]
async fn a_message_is_acknowledged_and_its_notification_shown() {
    let server = open().await;
    let mut events = server.runtime.events();
    let mut notes = Wire::client(server.address, "notes").await;
    let asked = tokio::spawn({
        let runtime = server.runtime.clone();
        async move { runtime.ask(Input::voice("buy milk", Some(0.95))).await }
    });
    let message = notes.message().await;
    let id = message["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("msg-") && id.len() == 40, "{id}");
    assert_eq!(message["text"], "buy milk");
    let metadata = json!({"inputMethod": "voice", "directRouted": false, "confidence": 0.95, "routingReason": "as told"});
    assert_eq!(message["metadata"], metadata);
    let said = message["timestamp"].as_str().unwrap();
    assert!(said.ends_with('Z'), "{said}");
    let age = timestamp::parse(said).unwrap().elapsed().unwrap();
    assert!(age < Duration::from_secs(60), "{age:?}");
    notes.send(&ack(&id)).await;
    let settled = asked.await.unwrap().unwrap();
    assert_eq!(settled.message.as_str(), id);
    assert!(settled.is_taken() && settled.unroutable.is_none());
    assert_eq!(settled.outcomes[0].outcome, Outcome::Acked);
    notes
        .send(&response(&id, "notification", &json!({"body": "bought"})))
        .await;
    let shown = until(&mut events, |event| match event {
        HubEvent::Notification {
            title,
            body,
            priority,
            late,
            ..
        } => Some((title.to_string(), body.to_string(), *priority, *late)),
        _ => None,
    })
    .await;
    let expected = (
        "notes".to_owned(),
        "bought".to_owned(),
        Priority::Normal,
        false,
    );
    assert_eq!(shown, expected);
    assert_eq!(server.runtime.in_flight(), 0);
    assert_eq!(server.runtime.history()[0].client, "notes");
}

#[tokio::test]
async fn a_direct_message_skips_the_router_and_loses_its_prefix() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    let _lights = Wire::client(server.address, "lights").await;
    let input = Input::text("NOTES, buy milk");
    let runtime = server.runtime.clone();
    let asked = tokio::spawn(async move { runtime.ask(input).await });
    let message = notes.message().await;
    assert_eq!(message["text"], "buy milk");
    let metadata = json!({"inputMethod": "text", "directRouted": true});
    assert_eq!(message["metadata"], metadata);
    notes
        .send(&reject(message["id"].as_str().unwrap(), "no"))
        .await;
    let settled = asked.await.unwrap().unwrap();
    assert_eq!(settled.unroutable, Some(Unroutable::Rejected));
    assert_eq!(server.router.0.ever.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn only_loopback_peers_are_accepted() {
    let server = open().await;
    let request = upgrade_request("/", "");
    let answer = ask_from("127.0.0.2:0", server.address, &request).await;
    assert!(answer.starts_with("403 Forbidden"), "{answer}");
    let answer = ask_from("127.0.0.1:0", server.address, &request).await;
    assert!(answer.starts_with("101"), "{answer}");
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused() {
    let server = open().await;
    for (header, status) in [
        ("", "101"),
        ("origin: app://obsidian.md\r\n", "101"),
        ("origin: https://evil.example\r\n", "403"),
        ("origin: http://localhost:8080\r\n", "403"),
        ("origin: app://evil.md\r\n", "403"),
        ("origin: null\r\n", "403"),
    ] {
        let answer = ask(server.address, &upgrade_request("/", header)).await;
        assert!(answer.starts_with(status), "{header}: {answer}");
    }
    for (host, status) in [
        ("127.0.0.1:9473", "101"),
        ("[::1]", "101"),
        ("evil.example", "403"),
    ] {
        let request = upgrade_request("/", "").replace("localhost", host);
        let answer = ask(server.address, &request).await;
        assert!(answer.starts_with(status), "{host}: {answer}");
    }
}

#[tokio::test]
async fn the_101st_client_gets_503() {
    let http = http_config().with_http(|request, _| async move {
        let mut response = Response::new(request.into_body());
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    });
    let server = start(ServerOptions {
        http,
        ..ServerOptions::default()
    })
    .await;
    let mut wires = Vec::new();
    for client in 0..100 {
        wires.push(Wire::client(server.address, &format!("client-{client}")).await);
    }
    let answer = ask(server.address, &upgrade_request("/", "")).await;
    assert!(answer.starts_with("503 Service Unavailable"), "{answer}");
    let why = "\r\n\r\nService Unavailable: Max connections reached";
    assert!(answer.ends_with(why), "{answer}");
    let post = "POST /input HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nhi";
    assert!(ask(server.address, post).await.ends_with("\r\n\r\nhi"));
    let stranger = ask_from("127.0.0.2:0", server.address, &upgrade_request("/", "")).await;
    assert!(stranger.starts_with("403"), "{stranger}");
    wires.clear();
    while ask(server.address, &upgrade_request("/", ""))
        .await
        .starts_with("503")
    {}
}

#[tokio::test]
async fn a_leave_event_follows_the_freed_slot() {
    let mut http = http_config();
    http.limits.max_websockets = Some(1);
    let server = start(ServerOptions {
        http,
        ..ServerOptions::default()
    })
    .await;
    let mut events = server.runtime.events();
    for _ in 0..20 {
        drop(Wire::client(server.address, "notes").await);
        until(&mut events, |event| {
            matches!(event, HubEvent::Left { .. }).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_at_the_specified_port_has_the_specified_url() {
    let address = ("127.0.0.1", DEFAULT_PORT);
    match Server::bind(address, Obedient::default(), ServerOptions::default()).await {
        Ok(server) => assert_eq!(server.url(), DEFAULT_URL),
        // Another router of this machine has it.
        Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}"),
    }
    assert!(dialer(DEFAULT_URL, &config()).is_ok());
}

#[tokio::test]
async fn any_path_upgrades_and_the_first_subprotocol_is_selected() {
    let server = open().await;
    let request = upgrade_request("/", "sec-websocket-protocol: first, second\r\n");
    let answer = ask(server.address, &request.replace("GET /", "GET /any?x=1")).await;
    assert!(answer.starts_with("101"), "{answer}");
    assert!(
        answer.contains("sec-websocket-protocol: first\r\n"),
        "{answer}"
    );
    let plain = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert!(ask(server.address, plain).await.starts_with("426"));
}

/// A notification whose whole frame has this many bytes.
fn notification_of(id: &str, size: usize) -> String {
    let empty = response(id, "notification", &json!({"body": ""}));
    let body = "x".repeat(size - empty.len());
    response(id, "notification", &json!({"body": body}))
}

#[tokio::test]
async fn a_message_over_1_048_576_bytes_closes_with_1009() {
    let server = open().await;
    let mut events = server.runtime.events();
    let mut notes = Wire::client(server.address, "notes").await;
    server.runtime.submit(Input::text("a")).unwrap();
    let id = notes.id().await;
    let largest = notification_of(&id, MAX_PAYLOAD);
    assert_eq!(largest.len(), 1_048_576);
    notes.send(&largest).await;
    let body = until(&mut events, |event| match event {
        HubEvent::Notification { body, .. } => Some(body.len()),
        _ => None,
    });
    assert!(body.await > 1_048_000);
    notes.send(&notification_of(&id, MAX_PAYLOAD + 1)).await;
    assert_eq!(notes.next().await, Frame::Close(1009, String::new()));
    assert!(server.runtime.clients().is_empty());
}

#[tokio::test]
async fn a_text_is_accepted_up_to_a_frame_of_1_048_576_bytes() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    server.runtime.submit(Input::text("notes: x")).unwrap();
    let Frame::Text(small) = notes.next().await else {
        panic!("a message was expected");
    };
    let largest = format!("notes: {}", "x".repeat(MAX_PAYLOAD - small.len() + 1));
    server.runtime.submit(Input::text(largest.clone())).unwrap();
    let Frame::Text(frame) = notes.next().await else {
        panic!("a message was expected");
    };
    assert_eq!(frame.len(), MAX_PAYLOAD);
    let refused = server.runtime.submit(Input::text(largest + "x"));
    let (size, max) = (MAX_PAYLOAD + 1, MAX_PAYLOAD);
    assert_eq!(refused, Err(HubError::TooLarge { size, max }));
}
