//! The server over real sockets: who gets in, what is answered, who is dropped, and the end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Response, StatusCode};
use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;
use rpc_core::net::QueueConfig;
use rpc_core::net::Queued;
use serde_json::json;
use smarthole_proto::Priority;
use smarthole_proto::hub::{HubConfig, HubError, HubEvent, Input, Outcome, Unroutable};
use smarthole_proto::limits::{MAX_CONNECTIONS, MAX_PAYLOAD, RESPONSE_TIMEOUT_REASON};
use smarthole_proto::net::{AskError, RouterOptions, ServerOptions, http_config};
use smarthole_proto::router::RouterError;
use smarthole_proto::server::ServerConfig;

use crate::stage::{Running, start, start_with_timeout, until};
use crate::wire::{
    Frame, Wire, ack, ask, ask_from, frame, registration, reject, response, upgrade_request,
};

async fn open() -> Running {
    start(ServerOptions::default()).await
}

#[tokio::test]
async fn one_connection_may_try_until_its_registration_is_accepted() {
    let server = open().await;
    let _other = Wire::client(server.address, "notes").await;
    let mut wire = Wire::open(server.address).await;
    for (payload, code) in [
        (json!(null), "VALIDATION_ERROR"),
        (json!([]), "INVALID_NAME"),
        (json!({"name": "1", "description": "d"}), "INVALID_NAME"),
        (
            json!({"name": "a", "description": ""}),
            "INVALID_DESCRIPTION",
        ),
        (
            json!({"name": "notes", "description": "d"}),
            "DUPLICATE_NAME",
        ),
    ] {
        wire.say(&json!({"type": "registration", "payload": payload}).to_string())
            .await;
        let answer = wire.payload("registration_response").await;
        assert_eq!(answer["success"], false);
        assert_eq!(answer["code"], code);
    }
    // Names are unique as they are written.
    let answer = wire.register("Notes").await;
    assert_eq!(answer["success"], true);
    assert_eq!(answer["message"], "Client 'Notes' registered successfully");
    assert_eq!(answer["clientId"].as_str().unwrap().len(), 36);
    let again = wire.register("other").await;
    assert_eq!(again["code"], "ALREADY_REGISTERED");
    let clients = server.switch.clients();
    let names: Vec<_> = clients.iter().map(|one| &*one.registration.name).collect();
    assert_eq!(names, ["notes", "Notes"]);
}

#[tokio::test]
async fn a_name_is_free_at_once_when_its_client_leaves() {
    let server = open().await;
    for _ in 0..20 {
        let mut first = Wire::client(server.address, "notes").await;
        let mut second = Wire::open(server.address).await;
        assert_eq!(second.register("notes").await["code"], "DUPLICATE_NAME");
        first.send(&frame(8, &1000_u16.to_be_bytes())).await;
        assert_eq!(first.next().await, Frame::Close(1000, String::new()));
        assert_eq!(second.register("notes").await["success"], true);
    }
}

#[tokio::test]
async fn a_message_is_acknowledged_and_its_notification_shown() {
    let server = open().await;
    let mut events = server.switch.events();
    let mut notes = Wire::client(server.address, "notes").await;
    let asked = tokio::spawn({
        let switch = server.switch.clone();
        async move { switch.ask(Input::voice("buy milk", Some(0.95))).await }
    });
    let message = notes.message().await;
    let id = message["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("msg-") && id.len() == 40, "{id}");
    assert_eq!(message["text"], "buy milk");
    let metadata = json!({"inputMethod": "voice", "directRouted": false, "confidence": 0.95, "routingReason": "as told"});
    assert_eq!(message["metadata"], metadata);
    assert!(message["timestamp"].as_str().unwrap().ends_with('Z'));
    notes.say(&ack(&id)).await;
    let settled = asked.await.unwrap().unwrap();
    assert_eq!(settled.message.as_str(), id);
    assert!(settled.is_taken() && settled.unroutable.is_none());
    assert_eq!(settled.outcomes[0].outcome, Outcome::Acked);
    notes
        .say(&response(&id, "notification", &json!({"body": "bought"})))
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
    assert_eq!(server.switch.in_flight(), 0);
    assert_eq!(server.switch.history()[0].client, "notes");
}

#[tokio::test]
async fn a_rejection_goes_with_its_reason_to_the_next_client() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    let mut lights = Wire::client(server.address, "lights").await;
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(Input::text("buy milk")).await });
    let id = notes.id().await;
    notes.say(&reject(&id, "no milk here")).await;
    let message = lights.message().await;
    assert_eq!(message["id"], id);
    assert_eq!(
        message["metadata"]["routingReason"],
        "as told; no milk here"
    );
    lights.say(&ack(&id)).await;
    let outcomes = asked.await.unwrap().unwrap().outcomes;
    let reason = "no milk here".into();
    assert_eq!(outcomes[0].outcome, Outcome::Rejected { reason });
    assert_eq!(outcomes[1].outcome, Outcome::Acked);
}

#[tokio::test]
async fn a_direct_message_reaches_its_client_without_the_router_and_without_its_prefix() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    let _lights = Wire::client(server.address, "lights").await;
    let input = Input::text("NOTES, buy milk");
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(input).await });
    let message = notes.message().await;
    assert_eq!(message["text"], "buy milk");
    let metadata = json!({"inputMethod": "text", "directRouted": true});
    assert_eq!(message["metadata"], metadata);
    notes
        .say(&reject(message["id"].as_str().unwrap(), "no"))
        .await;
    let settled = asked.await.unwrap().unwrap();
    assert_eq!(settled.unroutable, Some(Unroutable::Rejected));
    assert_eq!(server.router.0.ever.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_message_for_two_has_one_id_and_is_settled_when_both_have_answered() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    let mut lights = Wire::client(server.address, "lights").await;
    let switch = server.switch.clone();
    let mut asked = tokio::spawn(async move { switch.ask(Input::text("notes and lights")).await });
    let (first, second) = (notes.id().await, lights.id().await);
    assert_eq!(first, second);
    notes.say(&ack(&first)).await;
    assert!(
        tokio::time::timeout(Duration::from_millis(20), &mut asked)
            .await
            .is_err()
    );
    lights.say(&ack(&first)).await;
    assert_eq!(asked.await.unwrap().unwrap().outcomes.len(), 2);
}

#[tokio::test]
async fn a_client_that_vanishes_with_a_message_loses_it_to_another() {
    let server = start_with_timeout(100).await;
    let mut notes = Wire::client(server.address, "notes").await;
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(Input::text("buy milk")).await });
    notes.id().await;
    drop(notes);
    let mut lights = Wire::client(server.address, "lights").await;
    let message = lights.message().await;
    let reason = format!("as told; {RESPONSE_TIMEOUT_REASON}");
    assert_eq!(message["metadata"]["routingReason"], reason);
    lights.say(&ack(message["id"].as_str().unwrap())).await;
    let outcomes = asked.await.unwrap().unwrap().outcomes;
    assert_eq!(outcomes[0].outcome, Outcome::TimedOut);
    assert_eq!(outcomes[1].outcome, Outcome::Acked);
}

#[tokio::test]
async fn what_a_client_answers_before_it_leaves_counts() {
    let server = open().await;
    for _ in 0..20 {
        let mut notes = Wire::client(server.address, "notes").await;
        let switch = server.switch.clone();
        let asked = tokio::spawn(async move { switch.ask(Input::text("buy milk")).await });
        let id = notes.id().await;
        // In one write with the Close.
        let mut last = frame(1, ack(&id).as_bytes());
        last.extend(frame(8, &1000_u16.to_be_bytes()));
        notes.send(&last).await;
        assert!(asked.await.unwrap().unwrap().is_taken());
        assert_eq!(notes.next().await, Frame::Close(1000, String::new()));
    }
}

#[tokio::test]
async fn only_localhost_itself_gets_in() {
    let server = open().await;
    let request = upgrade_request("");
    let answer = ask_from("127.0.0.2:0", server.address, &request).await;
    assert!(answer.starts_with("403 Forbidden"), "{answer}");
    let answer = ask_from("127.0.0.1:0", server.address, &request).await;
    assert!(answer.starts_with("101"), "{answer}");
}

#[tokio::test]
async fn a_foreign_page_and_a_foreign_host_are_kept_out() {
    let server = open().await;
    for (header, status) in [
        ("", "101"),
        ("origin: app://obsidian.md\r\n", "101"),
        ("origin: https://evil.example\r\n", "403"),
        ("origin: http://localhost:8080\r\n", "403"),
        ("origin: app://evil.md\r\n", "403"),
        ("origin: null\r\n", "403"),
    ] {
        let answer = ask(server.address, &upgrade_request(header)).await;
        assert!(answer.starts_with(status), "{header}: {answer}");
    }
    for (host, status) in [
        ("127.0.0.1:9473", "101"),
        ("[::1]", "101"),
        ("evil.example", "403"),
    ] {
        let request = upgrade_request("").replace("localhost", host);
        let answer = ask(server.address, &request).await;
        assert!(answer.starts_with(status), "{host}: {answer}");
    }
}

#[tokio::test]
async fn the_101st_client_gets_503_and_plain_requests_are_served_meanwhile() {
    let http = http_config().with_http(|request, _| async move {
        let mut response = Response::new(request.into_body());
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    });
    let server = start(ServerOptions::default().with_http(http)).await;
    let mut wires = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        wires.push(Wire::open(server.address).await);
    }
    let answer = ask(server.address, &upgrade_request("")).await;
    assert!(answer.starts_with("503 Service Unavailable"), "{answer}");
    let why = "\r\n\r\nService Unavailable: Max connections reached";
    assert!(answer.ends_with(why), "{answer}");
    let post = "POST /input HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nhi";
    assert!(ask(server.address, post).await.ends_with("\r\n\r\nhi"));
    let stranger = ask_from("127.0.0.2:0", server.address, &upgrade_request("")).await;
    assert!(stranger.starts_with("403"), "{stranger}");
    wires.clear();
    while ask(server.address, &upgrade_request(""))
        .await
        .starts_with("503")
    {}
}

#[tokio::test]
async fn any_path_upgrades_and_the_first_subprotocol_is_selected() {
    let server = open().await;
    let request = upgrade_request("sec-websocket-protocol: first, second\r\n");
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
async fn a_message_of_1_048_576_bytes_passes_and_one_more_closes_with_1009() {
    let server = open().await;
    let mut events = server.switch.events();
    let mut notes = Wire::client(server.address, "notes").await;
    server.switch.submit(Input::text("a")).unwrap();
    let id = notes.id().await;
    let largest = notification_of(&id, MAX_PAYLOAD);
    assert_eq!(largest.len(), 1_048_576);
    notes.say(&largest).await;
    let body = until(&mut events, |event| match event {
        HubEvent::Notification { body, .. } => Some(body.len()),
        _ => None,
    });
    assert!(body.await > 1_048_000);
    notes.say(&notification_of(&id, MAX_PAYLOAD + 1)).await;
    assert_eq!(notes.next().await, Frame::Close(1009, String::new()));
    assert!(server.switch.clients().is_empty());
}

#[tokio::test]
async fn a_text_is_taken_up_to_a_frame_of_1_048_576_bytes() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    server.switch.submit(Input::text("notes: x")).unwrap();
    let Frame::Text(small) = notes.next().await else {
        panic!("a message was expected");
    };
    let largest = format!("notes: {}", "x".repeat(MAX_PAYLOAD - small.len() + 1));
    server.switch.submit(Input::text(largest.clone())).unwrap();
    let Frame::Text(frame) = notes.next().await else {
        panic!("a message was expected");
    };
    assert_eq!(frame.len(), MAX_PAYLOAD);
    let refused = server.switch.submit(Input::text(largest + "x"));
    let (size, max) = (MAX_PAYLOAD + 1, MAX_PAYLOAD);
    assert_eq!(refused, Err(HubError::TooLarge { size, max }));
}

#[tokio::test]
async fn text_in_a_binary_message_is_read_and_junk_is_ignored() {
    let server = open().await;
    let mut notes = Wire::open(server.address).await;
    for junk in [
        "",
        "nonsense",
        "null",
        "[]",
        "{}",
        r#"{"type":"later","payload":{}}"#,
    ] {
        notes.say(junk).await;
    }
    notes.send(&frame(2, b"\xff\xfe")).await;
    notes.say(&ack("msg-early")).await;
    notes
        .send(&frame(2, registration("notes").as_bytes()))
        .await;
    let answer = notes.payload("registration_response").await;
    assert_eq!(answer["success"], true);
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(Input::text("a")).await });
    let id = notes.id().await;
    for junk in [
        "nonsense",
        &ack("msg-other"),
        &response(&id, "later", &json!({})),
    ] {
        notes.say(junk).await;
    }
    notes.send(&frame(2, ack(&id).as_bytes())).await;
    assert!(asked.await.unwrap().unwrap().is_taken());
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_dropped_without_a_close() {
    let beat = KeepAlive::default()
        .with_interval(Some(Duration::from_millis(50)))
        .with_pong_timeout(Duration::from_millis(50));
    let config = ServerConfig::default().with_keep_alive(beat);
    let server = start(ServerOptions::default().with_connection(config)).await;
    let mut dead = Wire::client(server.address, "dead").await;
    let mut alive = Wire::client(server.address, "alive").await;
    let both = async {
        assert_eq!(dead.next().await, Frame::Ping);
        // It may say something, but that is no pong.
        dead.say("hello?").await;
        assert_eq!(dead.next().await, Frame::End);
    };
    let pongs = async {
        loop {
            assert_eq!(alive.next().await, Frame::Ping);
            alive.send(&frame(10, b"")).await;
        }
    };
    tokio::select! {
        () = both => {}
        () = pongs => {}
    }
    let clients = server.switch.clients();
    assert_eq!(clients.len(), 1);
    assert_eq!(clients[0].registration.name, "alive");
}

#[tokio::test]
async fn a_client_that_never_reads_is_disconnected_and_the_others_are_not() {
    let limits = Limits::default()
        .with_max_message_bytes(MAX_PAYLOAD)
        .with_max_outbox_bytes(1 << 20);
    let mut options = ServerOptions::default()
        .with_connection(ServerConfig::default().with_limits(limits))
        .with_hub(HubConfig::default().with_max_open_bytes(usize::MAX));
    // How long the server waits for the answer to its Close, which is not read either.
    options.shutdown_timeout = Duration::from_millis(100);
    let server = start(options).await;
    let mut deaf = Wire::client(server.address, "deaf").await;
    let mut notes = Wire::client(server.address, "notes").await;
    let long = format!("deaf: {}", "x".repeat(256 << 10));
    let mut sent = 0;
    while server.switch.clients().len() == 2 {
        sent += 1;
        assert!(sent < 500, "{sent} messages are hoarded");
        server.switch.submit(Input::text(long.clone())).unwrap();
        tokio::task::yield_now().await;
    }
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(Input::text("notes: hi")).await });
    let id = notes.id().await;
    notes.say(&ack(&id)).await;
    assert!(asked.await.unwrap().unwrap().is_taken());
    loop {
        match deaf.next().await {
            Frame::Text(_) => {}
            Frame::Close(1013, _) | Frame::End => break,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_router_that_fails_panics_or_chooses_nobody_says_so_and_goes_on() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    for (text, why) in [
        (
            "fail",
            Unroutable::Router(RouterError::unavailable("asked to")),
        ),
        (
            "panic",
            Unroutable::Router(RouterError::failed("internal error")),
        ),
        ("nobody", Unroutable::NobodyChosen),
    ] {
        let settled = server.switch.ask(Input::text(text)).await.unwrap();
        assert_eq!(settled.unroutable, Some(why), "{text}");
        assert!(settled.outcomes.is_empty() && !settled.is_taken());
    }
    server.switch.submit(Input::text("a")).unwrap();
    notes.id().await;
}

#[tokio::test]
async fn a_router_that_hangs_is_given_up_and_keeps_others_waiting_no_longer() {
    let after = Duration::from_millis(100);
    let router = RouterOptions::default()
        .with_timeout(after)
        .with_max_at_once(2);
    let server = start(ServerOptions::default().with_router(router)).await;
    let mut notes = Wire::client(server.address, "notes").await;
    let hang = || server.switch.ask(Input::text("hang"));
    let work = async {
        server.switch.submit(Input::text("a")).unwrap();
        notes.id().await
    };
    // The third question waits until the first two are given up.
    let (first, second, _) = tokio::join!(hang(), hang(), work);
    let why = Unroutable::Router(RouterError::TimedOut { after });
    assert_eq!(first.unwrap().unroutable, Some(why.clone()));
    assert_eq!(second.unwrap().unroutable, Some(why));
    let asked = &server.router.0;
    assert_eq!(asked.ever.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_drain_lets_clients_answer_and_then_says_1001() {
    let server = open().await;
    let mut notes = Wire::client(server.address, "notes").await;
    let mut idle = Wire::open(server.address).await;
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(Input::text("a")).await });
    let id = notes.id().await;
    let handle = server.handle.clone();
    let drain = tokio::spawn(async move { handle.drain(Duration::from_secs(5)).await });
    // Nothing new from now on, but what is open may end.
    while server.switch.submit(Input::text("b")) != Err(HubError::Closed) {
        tokio::task::yield_now().await;
    }
    notes.say(&ack(&id)).await;
    assert!(asked.await.unwrap().unwrap().is_taken());
    for wire in [&mut notes, &mut idle] {
        loop {
            match wire.next().await {
                // Taken before the drain began.
                Frame::Text(text) => {
                    let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
                    wire.say(&ack(frame["payload"]["id"].as_str().unwrap()))
                        .await;
                }
                other => {
                    let close = Frame::Close(1001, "Server shutting down".to_owned());
                    assert_eq!(other, close);
                    break;
                }
            }
        }
        wire.send(&frame(8, &1001_u16.to_be_bytes())).await;
    }
    let report = drain.await.unwrap();
    assert_eq!((report.finished, report.aborted), (2, 0));
    assert_eq!(server.task.await.unwrap(), report);
    assert!(Wire::open_refused(server.address).await);
}

#[tokio::test]
async fn what_nobody_answers_before_the_end_is_reported() {
    let timeout = Duration::from_millis(50);
    let server = start(ServerOptions::default().with_shutdown_timeout(timeout)).await;
    let mut events = server.switch.events();
    let mut notes = Wire::client(server.address, "notes").await;
    let switch = server.switch.clone();
    let asked = tokio::spawn(async move { switch.ask(Input::text("a")).await });
    let id = notes.id().await;
    let report = server.handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
    let close = Frame::Close(1001, "Server shutting down".to_owned());
    assert_eq!(notes.next().await, close);
    server.task.await.unwrap();
    let ended = asked.await.unwrap().unwrap_err();
    assert!(
        matches!(&ended, AskError::Ended { message } if message.as_str() == id),
        "{ended:?}"
    );
    assert_eq!(server.switch.in_flight(), 1);
    assert_eq!(
        server.switch.submit(Input::text("b")),
        Err(HubError::Closed)
    );
    while events.next().await.is_some() {}
    assert!(server.switch.events().next().await.is_none());
}

#[tokio::test]
async fn a_listener_that_is_slow_loses_the_oldest_events_and_is_told_how_many() {
    let server = open().await;
    let mut slow = server
        .switch
        .events_with(QueueConfig::default().with_max_items(2));
    drop(server.switch.events());
    for name in ["a", "b", "c", "d"] {
        Wire::client(server.address, name).await;
    }
    let mut lost = 0;
    while slow.total_lost() < 2 {
        tokio::task::yield_now().await;
    }
    if let Some(Queued::Lagged(events)) = slow.next().await {
        lost = events;
    }
    assert!(lost >= 2, "{lost}");
    assert!(matches!(slow.next().await, Some(Queued::Item(_))));
}

#[tokio::test]
async fn without_clients_nothing_is_taken() {
    let server = open().await;
    let _unregistered = Wire::open(server.address).await;
    let refused = server.switch.ask(Input::text("a")).await;
    assert_eq!(refused, Err(AskError::Refused(HubError::NoClients)));
    let _notes = Wire::client(server.address, "notes").await;
    let refused = server.switch.ask(Input::text(" ")).await;
    assert_eq!(refused, Err(AskError::Refused(HubError::Blank)));
}
