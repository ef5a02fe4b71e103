//! The server mounted into axum, and over other transports, and both clients of this crate: the
//! same chats over every transport.

use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::{ChatUpdate, ClientConfig, Failure, Outcome};
use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{
    Agent, Chat, ChatReply, Client, Server, ServerHandle, ServerOptions, SseClient, connect_lazy,
    connect_with, dialer, http_config,
};
use futures_util::StreamExt as _;
use http::{Request, StatusCode};
use rpc_core::net::mem;
use rpc_core::net::server::{Body, Service};
use switchboard_testing::mounted::{check, described, host};
use tokio::time::{Instant, timeout};
use tower_service::Service as _;

use crate::daemon::{LONG, puppet};

fn ask(message: &str) -> ChatRequest {
    ChatRequest::new(message.to_owned(), "m")
}

fn in_memory(options: ServerOptions) -> Client {
    let (_, handle) = mount(puppet().0, options);
    let (dialer, mut listener) = mem::listen(16);
    tokio::spawn(async move {
        while let Some(line) = listener.accept().await {
            handle.serve(line, None);
        }
    });
    let (client, _, connection) = connect_with(dialer, ClientConfig::default());
    tokio::spawn(connection.run());
    client
}

/// What a chat tells of its steps and its end, the same over every transport.
async fn updates(chat: &mut Chat) -> Vec<String> {
    let mut updates = Vec::new();
    while let Some(update) = chat.next().await {
        match update {
            ChatUpdate::Event(Event::TextDelta(text)) => updates.push(format!("text {text}")),
            ChatUpdate::Event(event) => updates.push(event.tag().to_owned()),
            ChatUpdate::Ended(Outcome::Done(reply)) => {
                updates.push(format!("done {}", reply.output));
            }
            ChatUpdate::Ended(Outcome::Failed(failure)) => updates.push(match failure {
                Failure::Server(error) => format!("error {}", error.message),
                Failure::Model(reply) => format!("ill {}", reply.error.unwrap_or_default()),
                other => format!("{other:?}"),
            }),
            ChatUpdate::Ended(other) => updates.push(format!("{other:?}")),
            _ => {}
        }
    }
    updates
}

#[tokio::test]
async fn chats_are_the_same_over_every_transport() {
    let (agent, ..) = puppet();
    let server = Server::bind("127.0.0.1:0", agent, ServerOptions::default())
        .await
        .unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    let (over_ws, _, connection) = connect_lazy(&url, ClientConfig::default()).unwrap();
    tokio::spawn(connection.run());
    over_ws.ready().await.unwrap();
    let over_sse = SseClient::new(&url, ClientConfig::default()).unwrap();
    let over_mem = in_memory(ServerOptions::default());
    over_mem.ready().await.unwrap();
    for (message, expected) in [
        ("hello", &["status", "text hello", "done hello"][..]),
        ("fail", &["status", "error no"]),
        ("ill", &["status", "ill the model failed"]),
        ("panic", &["status", "error Internal error."]),
        ("list", &["status", "checklist", "done list"]),
    ] {
        let ws = updates(&mut over_ws.chat(ask(message)).await).await;
        assert_eq!(ws, expected);
        let sse = updates(&mut over_sse.chat(ask(message)).await).await;
        assert_eq!(sse, expected);
        let mem = updates(&mut over_mem.chat(ask(message)).await).await;
        assert_eq!(mem, expected);
    }
    let many = updates(&mut over_sse.chat(ask("many")).await).await;
    assert_eq!(many, updates(&mut over_ws.chat(ask("many")).await).await);
}

#[tokio::test]
async fn every_valid_key_authenticates_both_clients() {
    for key in ["s3cret", "a/b==", "two words, or three"] {
        let key = ApiKey::new(key).unwrap();
        let (agent, ..) = puppet();
        let options = ServerOptions::new(Auth::key(key.clone()));
        let server = Server::bind("127.0.0.1:0", agent, options).await.unwrap();
        let url = server.url();
        tokio::spawn(server.run());
        let config = ClientConfig::new(key);
        let (client, _, connection) = connect_lazy(&url, config.clone()).unwrap();
        tokio::spawn(connection.run());
        timeout(LONG, client.ready()).await.unwrap().unwrap();
        assert_eq!(client.status().await.unwrap().model, "puppet");
        let client = SseClient::new(&url, config).unwrap();
        assert_eq!(client.status().await.unwrap().model, "puppet");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept_alive_for_a_day() {
    let client = in_memory(ServerOptions::default());
    client.ready().await.unwrap();
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert!(client.state().is_ready());
    let mut chat = client.chat(ask("hello")).await;
    assert!(matches!(chat.finish().await, Outcome::Done(_)));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_are_remembered_by_default() {
    for (options, kept) in [
        (ServerOptions::default(), 1_000),
        (
            ServerOptions {
                max_tasks: 2,
                ..ServerOptions::default()
            },
            2,
        ),
    ] {
        let client = in_memory(options);
        client.ready().await.unwrap();
        let mut ids = Vec::new();
        for _ in 0..=kept {
            let mut chat = client.chat(ask("hello")).await;
            assert!(matches!(chat.finish().await, Outcome::Done(_)));
            ids.push(chat.task_id().unwrap().clone());
        }
        let known = async |id| client.task_status(id).await.unwrap().is_some();
        assert!(!known(&ids[0]).await);
        assert!(known(&ids[1]).await && known(&ids[kept]).await);
    }
}

fn mount<A: Agent>(agent: A, options: ServerOptions) -> (Service, ServerHandle) {
    let (server, service) = Server::mount(agent, options);
    let handle = server.handle();
    tokio::spawn(server.run());
    (service, handle)
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_gets_a_comment_every_15_seconds() {
    let (agent, shared, _told) = puppet();
    let (mut service, _handle) = mount(agent, ServerOptions::default());
    let body = r#"{"message":"wait","history":[],"model":"m"}"#;
    let request = Request::post("/v1/chat/stream").header("host", "localhost");
    let request = request.body(Body::from(body)).unwrap();
    let answer = service.call(request).await.unwrap();
    let mut pieces = axum::body::Body::new(answer.into_body()).into_data_stream();
    let mut next = async || pieces.next().await.unwrap().unwrap();
    assert!(next().await.starts_with(b"data: {\"type\":\"status\""));
    for _ in 0..3 {
        let since = Instant::now();
        assert_eq!(next().await, ":\n\n");
        assert_eq!(since.elapsed(), Duration::from_secs(15));
    }
    shared.gate.notify_one();
    assert!(next().await.starts_with(b"data: {\"type\":\"done\""));
}

#[tokio::test]
async fn a_mounted_server_refuses_answers_and_drains_as_one_on_a_socket() {
    let own = Server::bind("127.0.0.1:0", puppet().0, ServerOptions::default());
    let own = own.await.unwrap();
    let url = own.url();
    tokio::spawn(own.run());
    check(&url, "/v1/rpc", 1001, |change| {
        let options = ServerOptions {
            http: change(http_config()),
            ..ServerOptions::default()
        };
        let (service, handle) = mount(puppet().0, options);
        (service, async move |deadline| handle.drain(deadline).await)
    })
    .await;
}

/// Answers with what the request says.
struct Reader;

impl Agent for Reader {
    async fn run(&self, run: ChatReply, _: ChatRequest) -> Result<Reply, AppError> {
        assert!(run.address().unwrap().ip().is_loopback());
        Ok(Reply::new(described(run.parts()), "m"))
    }

    async fn status(&self) -> Status {
        Status::new("reader", "")
    }
}

#[tokio::test]
async fn headers_and_extensions_of_the_host_reach_the_agent_over_both_transports() {
    let (service, handle) = mount(Reader, ServerOptions::default());
    let url = format!("http://{}", host(service).await);
    let config = ClientConfig::default();
    let dialer = dialer(&url, &config).unwrap();
    let dialer = dialer.with_header("x-name", "a header").unwrap();
    let (client, _events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    let updates = updates(&mut client.chat(ask("hello")).await).await;
    assert_eq!(updates, ["status", "done a header and a layer"]);
    let over_sse = SseClient::new(&url, ClientConfig::default()).unwrap();
    let updates = self::updates(&mut over_sse.chat(ask("hello")).await).await;
    assert_eq!(updates, ["status", "done  and a layer"]);
    let report = handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
}

#[tokio::test]
async fn a_server_that_is_shut_down_over_http_ends_its_websockets() {
    let (server, service) = Server::mount(puppet().0, ServerOptions::default());
    let serving = tokio::spawn(server.run());
    let url = format!("http://{}", host(service.clone()).await);
    let (client, _events, connection) = connect_lazy(&url, ClientConfig::default()).unwrap();
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    let mut service = service;
    let request = Request::post("/v1/admin/shutdown").header("host", "localhost");
    let answer = service.call(request.body(Body::from("")).unwrap()).await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
    assert_eq!(serving.await.unwrap().finished, 1);
}
