//! The server mounted into axum, with real clients.

use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::{ChatSend, Plugin, Status};
use exoclaw_proto::net::{
    AppError, Backend, ChatReply, MemoryBackend, Peer, Server, ServerHandle, ServerOptions,
    connect_with, dialer, http_config,
};
use rpc_core::net::server::{HttpConfig, Service};
use switchboard_testing::mounted::{check, described, host, runs_until};

fn mount<B: Backend>(backend: B, http: HttpConfig) -> (Service, ServerHandle) {
    let (server, service) = Server::mount(
        backend,
        ServerOptions {
            http,
            ..ServerOptions::default()
        },
    );
    let handle = server.handle();
    tokio::spawn(server.run());
    (service, handle)
}

#[tokio::test]
async fn a_mounted_server_refuses_answers_and_drains_as_one_on_a_socket() {
    let options = ServerOptions::default();
    let own = Server::bind("127.0.0.1:0", MemoryBackend::new(), options);
    let own = own.await.unwrap();
    let url = own.url();
    tokio::spawn(own.run());
    check(&url, "/ws", 1001, |change| {
        let (service, handle) = mount(MemoryBackend::new(), change(http_config()));
        (service, async move |deadline| handle.drain(deadline).await)
    })
    .await;
}

/// Answers with what the upgrade request says.
struct Reader;

impl Backend for Reader {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        Status::new("0.1.0", 0, 0)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        Vec::new()
    }

    async fn chat(&self, peer: &Arc<Peer>, _: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        assert!(peer.address().ip().is_loopback());
        Ok(reply.text(&described(peer.parts())).await?)
    }
}

#[tokio::test]
async fn headers_and_extensions_of_the_host_reach_the_backend() {
    let (service, handle) = mount(Reader, http_config());
    let url = format!("ws://{}/ws", host(service).await);
    let config = ClientConfig::default();
    let dialer = dialer(&url, &config).unwrap();
    let dialer = dialer.with_header("x-name", "a header").unwrap();
    let (client, _events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    let text = client.chat("hello").await.finish().await.unwrap();
    assert_eq!(text, "a header and a layer");
    let report = handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_in_memory_serves_until_a_signal() {
    let backend = Arc::new(MemoryBackend::new());
    let (server, _) = Server::mount(backend.clone(), ServerOptions::default());
    runs_until(server, async |dialer| {
        let config = ClientConfig::default();
        let (client, events, connection) = connect_with(dialer, config);
        tokio::spawn(connection.run());
        client.ready().await.unwrap();
        let text = client.chat("hello you").await.finish().await.unwrap();
        assert_eq!(text, "hello you");
        (client, events)
    })
    .await;
    assert_eq!(backend.sessions(), 1);
}
