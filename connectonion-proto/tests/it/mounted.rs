//! The server mounted into axum, with real clients.

use std::time::Duration;

use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::net::{
    Agent, AppError, Prompt, Reply, Server, ServerHandle, ServerOptions, Turn, connect_with,
    dialer, http_config,
};
use connectonion_proto::trust::TrustLevel;
use rpc_core::net::server::{HttpConfig, Service};
use switchboard_testing::mounted::{check, described, host};

/// Answers with what the upgrade request says.
struct Reader;

impl Agent for Reader {
    async fn run(&self, turn: &Turn, _: Prompt) -> Result<Reply, AppError> {
        Ok(Reply::new(described(turn.parts().unwrap())))
    }
}

fn options() -> ServerOptions {
    ServerOptions::new(&Signer::from_seed(&[1; 32]), TrustLevel::Open)
}

fn mount(http: HttpConfig) -> (Service, ServerHandle) {
    let mut options = options();
    options.http = http;
    let (server, service) = Server::mount(Reader, options);
    let handle = server.handle();
    tokio::spawn(server.run());
    (service, handle)
}

#[tokio::test]
async fn a_mounted_host_refuses_answers_and_drains_as_one_on_a_socket() {
    let own = Server::bind("127.0.0.1:0", Reader, options())
        .await
        .unwrap();
    let url = own.url();
    tokio::spawn(own.run());
    check(&url, "/ws", 1012, |change| {
        let (service, handle) = mount(change(http_config()));
        (service, async move |deadline| handle.drain(deadline).await)
    })
    .await;
}

#[tokio::test]
async fn headers_and_extensions_of_the_host_reach_the_agent() {
    let (service, handle) = mount(http_config());
    let url = format!("ws://{}/ws", host(service).await);
    let (key, options) = (Signer::from_seed(&[2; 32]), ClientConfig::default());
    let dialer = dialer(&url, &options).unwrap();
    let dialer = dialer.with_header("x-name", "a header").unwrap();
    let (agent, _events, connection) = connect_with(dialer, key, options);
    tokio::spawn(connection.run());
    agent.ready().await.unwrap();
    let output = agent.chat("hello").await.finish().await.unwrap();
    assert_eq!(output.result, "a header and a layer");
    let report = handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
}
