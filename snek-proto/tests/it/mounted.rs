//! The server mounted into axum, with real clients.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::server::{HttpConfig, Service};
use rpc_core::{Secret, Str};
use snek_proto::client::ClientConfig;
use snek_proto::error::RpcError;
use snek_proto::frame::{Call, Final, User};
use snek_proto::net::{
    Backend, CallReply, MemoryBackend, Peer, Replied, Server, ServerHandle, ServerOptions,
    connect_with, dialer, http_config,
};
use switchboard_testing::mounted::{check, described, host};

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
    check(&url, "/rpc.ws", 1001, |change| {
        let (service, handle) = mount(MemoryBackend::new(), change(http_config()));
        (service, async move |deadline| handle.drain(deadline).await)
    })
    .await;
}

/// Answers with what the upgrade request says.
struct Reader;

impl Backend for Reader {
    async fn login(&self, peer: &Arc<Peer>, _: &str, _: &Secret<Str>) -> Result<User, RpcError> {
        assert!(peer.address().ip().is_loopback());
        Ok(User::new("ann", "Ann"))
    }

    async fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        match call {
            Call::GetUser { .. } => reply.send(&User::new("ann", "Ann")),
            Call::GetChannels => reply.send(&[(); 0]),
            _ => reply.send(&described(peer.parts())),
        }
    }
}

#[tokio::test]
async fn headers_and_extensions_of_the_host_reach_the_backend() {
    let (service, handle) = mount(Reader, http_config());
    let url = format!("ws://{}/rpc.ws", host(service).await);
    let config = ClientConfig::new("ann", "secret");
    let dialer = dialer(&url, &config).unwrap();
    let dialer = dialer.with_header("x-name", "a header").unwrap();
    let (client, _events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    let reply = client.send_message("general", "hello", Final::Yes).await;
    assert_eq!(reply.unwrap().data().get(), r#""a header and a layer""#);
    let report = handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
}
