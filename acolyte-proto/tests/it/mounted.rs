//! The service without a socket, and the two clients of this crate against it and against the
//! server: the same chats over every transport.

use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::{ChatUpdate, ClientConfig, Failure, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{Chat, Client, Server, ServerOptions, Service, SseClient, connect};
use acolyte_proto::net::{connect_with, link_config};
use acolyte_proto::server::ServerConfig;
use acolyte_proto::task::TaskState;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Request, StatusCode};
use rpc_core::net::mem;
use tokio::time::{Instant, timeout};

use crate::daemon::{LONG, Puppet, puppet};

fn ask(message: &str) -> ChatRequest {
    ChatRequest::new(message.to_owned(), "m")
}

/// A client of a service in memory.
fn in_memory(options: ServerOptions) -> (Client, Service<Puppet>) {
    let (agent, ..) = puppet();
    let service = Service::new(agent, options);
    let (dialer, mut listener) = mem::listen(16);
    let door = service.clone();
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            tokio::spawn(door.websocket(line, None));
        }
    });
    let (client, _, connection) = connect_with(dialer, ClientConfig::new(), link_config());
    tokio::spawn(connection.run());
    (client, service)
}

/// What a chat tells of its steps and its end, the same over every transport.
async fn told(chat: &mut Chat) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(update) = chat.next().await {
        match update {
            ChatUpdate::Event(Event::TextDelta(text)) => told.push(format!("text {text}")),
            ChatUpdate::Event(event) => told.push(event.tag().to_owned()),
            ChatUpdate::Ended(Outcome::Done(reply)) => told.push(format!("done {}", reply.output)),
            ChatUpdate::Ended(Outcome::Failed(failure)) => told.push(match failure {
                Failure::Server(error) => format!("error {}", error.message),
                Failure::Model(reply) => format!("ill {}", reply.error.unwrap_or_default()),
                other => format!("{other:?}"),
            }),
            ChatUpdate::Ended(other) => told.push(format!("{other:?}")),
            _ => {}
        }
    }
    told
}

#[tokio::test]
async fn chats_tell_the_same_over_every_transport() {
    let (agent, ..) = puppet();
    let server = Server::bind("127.0.0.1:0", agent, ServerOptions::default())
        .await
        .unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    let (over_ws, _, connection) = connect(&url, ClientConfig::new()).unwrap();
    tokio::spawn(connection.run());
    over_ws.ready().await.unwrap();
    let over_sse = SseClient::new(&url, ClientConfig::new()).unwrap();
    let (over_mem, _service) = in_memory(ServerOptions::default());
    over_mem.ready().await.unwrap();
    for (message, expected) in [
        ("hello", &["status", "text hello", "done hello"][..]),
        ("fail", &["status", "error no"]),
        ("ill", &["status", "ill the model failed"]),
        ("panic", &["status", "error Internal error."]),
        ("list", &["status", "checklist", "done list"]),
    ] {
        let ws = told(&mut over_ws.start_chat(ask(message)).await).await;
        assert_eq!(ws, expected);
        let sse = told(&mut over_sse.start_chat(ask(message)).await).await;
        assert_eq!(sse, expected);
        let mem = told(&mut over_mem.start_chat(ask(message)).await).await;
        assert_eq!(mem, expected);
    }
    let many = told(&mut over_sse.start_chat(ask("many")).await).await;
    assert_eq!(many, told(&mut over_ws.start_chat(ask("many")).await).await);
}

#[tokio::test]
async fn every_key_that_can_be_sent_lets_both_clients_in() {
    for key in ["s3cret", "a/b=="] {
        let key = ApiKey::new(key).unwrap();
        let (agent, ..) = puppet();
        let options = ServerOptions::default().with_auth(Auth::key(key.clone()));
        let server = Server::bind("127.0.0.1:0", agent, options).await.unwrap();
        let url = server.url();
        tokio::spawn(server.run());
        let config = ClientConfig::new().with_api_key(key);
        let (client, _, connection) = connect(&url, config.clone()).unwrap();
        tokio::spawn(connection.run());
        timeout(LONG, client.ready()).await.unwrap().unwrap();
        assert_eq!(client.status().await.unwrap().model, "puppet");
        let client = SseClient::new(&url, config).unwrap();
        assert_eq!(client.status().await.unwrap().model, "puppet");
    }
}

#[tokio::test]
async fn dropping_a_chat_ends_the_work_over_both_transports() {
    let (agent, _, mut hear) = puppet();
    let server = Server::bind("127.0.0.1:0", agent, ServerOptions::default())
        .await
        .unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    let (over_ws, _, connection) = connect(&url, ClientConfig::new()).unwrap();
    tokio::spawn(connection.run());
    over_ws.ready().await.unwrap();
    let over_sse = SseClient::new(&url, ClientConfig::new()).unwrap();
    for n in 0..2 {
        let mut chat = match n {
            0 => over_ws.start_chat(ask("hang")).await,
            _ => over_sse.start_chat(ask("hang")).await,
        };
        while !matches!(chat.next().await, Some(ChatUpdate::Event(_))) {}
        drop(chat);
        assert_eq!(timeout(LONG, hear.recv()).await.unwrap().unwrap(), "hang");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_alive_for_a_day() {
    let (client, _service) = in_memory(ServerOptions::default());
    client.ready().await.unwrap();
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert!(client.state().is_ready());
    let mut chat = client.start_chat(ask("hello")).await;
    assert!(matches!(chat.finish().await, Outcome::Done(_)));
}

#[tokio::test(start_paused = true)]
async fn the_next_chat_starts_when_the_grace_of_an_aborted_one_is_over() {
    let grace = Duration::from_secs(5);
    let connection = ServerConfig::default().with_abort_grace(grace);
    let (client, _service) = in_memory(ServerOptions::default().with_connection(connection));
    client.ready().await.unwrap();
    let mut stubborn = client.start_chat(ask("hang")).await;
    while !matches!(stubborn.next().await, Some(ChatUpdate::Event(_))) {}
    let mut next = client.start_chat(ask("hello")).await;
    let started = Instant::now();
    assert!(stubborn.abort().await.unwrap());
    assert!(matches!(stubborn.finish().await, Outcome::Aborted { .. }));
    assert!(started.elapsed() < grace);
    assert!(matches!(next.finish().await, Outcome::Done(_)));
    assert!(started.elapsed() >= grace);
    let task = client.task_status(stubborn.task_id().unwrap()).await;
    assert_eq!(task.unwrap().unwrap().state, TaskState::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_are_remembered_unless_it_is_told_otherwise() {
    for (options, kept) in [
        (ServerOptions::default(), 1_000),
        (ServerOptions::default().with_max_tasks(2), 2),
    ] {
        let (client, _service) = in_memory(options);
        client.ready().await.unwrap();
        let mut ids = Vec::new();
        for _ in 0..=kept {
            let mut chat = client.start_chat(ask("hello")).await;
            assert!(matches!(chat.finish().await, Outcome::Done(_)));
            ids.push(chat.task_id().unwrap().clone());
        }
        let known = async |id| client.task_status(id).await.unwrap().is_some();
        assert!(!known(&ids[0]).await);
        assert!(known(&ids[1]).await && known(&ids[kept]).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_on_which_nothing_is_said_has_a_comment_every_15_seconds() {
    let (agent, shared, _told) = puppet();
    let service = Service::new(agent, ServerOptions::default());
    let body = r#"{"message":"wait","history":[],"model":"m"}"#;
    let mut request = Request::new(Bytes::from_static(body.as_bytes()));
    *request.uri_mut() = "/v1/chat/stream".parse().unwrap();
    *request.method_mut() = http::Method::POST;
    let mut pieces = service.http(request, None).await.into_body();
    let first = pieces.next().await.unwrap();
    assert!(first.starts_with(b"data: {\"type\":\"status\""));
    for _ in 0..3 {
        let since = Instant::now();
        assert_eq!(pieces.next().await.unwrap(), ":\n\n");
        assert_eq!(since.elapsed(), Duration::from_secs(15));
    }
    shared.gate.notify_one();
    let last = pieces.next().await.unwrap();
    assert!(last.starts_with(b"data: {\"type\":\"done\""));
}

#[tokio::test]
async fn pages_of_a_mounted_service_are_plain_answers() {
    let (agent, ..) = puppet();
    let service = Service::new(agent, ServerOptions::default());
    service.set_address("http://example.org");
    let get = |path: &str| {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = path.parse().unwrap();
        request
    };
    let body = async |path: &str| {
        let answer = service.http(get(path), None).await;
        let pieces: Vec<Bytes> = answer.into_body().collect().await;
        String::from_utf8(pieces.concat()).unwrap()
    };
    assert_eq!(body("/healthz").await, r#"{"ok":true}"#);
    let status = body("/v1/status").await;
    assert!(
        status.contains("\"service\":\"http://example.org\""),
        "{status}"
    );
    service.stop();
    let mut request = get("/v1/chat/stream");
    *request.method_mut() = http::Method::POST;
    let answer = service.http(request, None).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
}
