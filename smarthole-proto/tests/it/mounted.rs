//! The server mounted into axum, with real clients.

use std::time::Duration;

use rpc_core::net::server::{HttpConfig, Service};
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::Registration;
use smarthole_proto::net::{
    Server, ServerHandle, ServerOptions, connect_with, dialer, http_config,
};
use smarthole_proto::router::Keywords;
use switchboard_testing::mounted::{check, described, host};
use tokio::sync::mpsc::unbounded_channel;

fn mount(http: HttpConfig) -> (Service, ServerHandle) {
    let options = ServerOptions {
        http,
        ..ServerOptions::default()
    };
    let (server, service) = Server::mount(Keywords::new(), options);
    let handle = server.handle();
    tokio::spawn(server.run());
    (service, handle)
}

#[tokio::test]
async fn a_mounted_server_refuses_answers_and_drains_as_one_on_a_socket() {
    let options = ServerOptions::default();
    let own = Server::bind("127.0.0.1:0", Keywords::new(), options);
    let own = own.await.unwrap();
    let url = own.url();
    tokio::spawn(own.run());
    check(&url, "/", 1001, |change| {
        let (service, handle) = mount(change(http_config()));
        (service, async move |deadline| handle.drain(deadline).await)
    })
    .await;
}

#[tokio::test]
async fn headers_and_extensions_of_the_host_reach_the_upgrade_hook() {
    let (tell, mut reported) = unbounded_channel();
    let (service, handle) = mount(http_config().with_on_upgrade(move |parts, peer| {
        assert!(peer.ip().is_loopback());
        tell.send(described(parts)).unwrap();
        Ok(None)
    }));
    let url = format!("ws://{}/", host(service).await);
    let config = ClientConfig::new(Registration::new("notes", "I keep notes.")).unwrap();
    let dialer = dialer(&url, &config).unwrap();
    let dialer = dialer.with_header("x-name", "a header").unwrap();
    let (client, _events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    assert_eq!(reported.recv().await.unwrap(), "a header and a layer");
    let report = handle.drain(Duration::from_secs(5)).await;
    assert_eq!((report.finished, report.aborted), (1, 0));
}
