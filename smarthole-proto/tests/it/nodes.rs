//! A client with several addresses: on which node it goes on when its own is gone.

use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::LinkState;
use smarthole_proto::client::{ClientConfig, reconnect_policy};
use smarthole_proto::frame::Registration;
use smarthole_proto::net::{ServerOptions, connect_with, dialer};

use crate::harness::start;

#[tokio::test]
async fn a_client_registers_at_the_next_node() {
    let (a, b) = (
        start(ServerOptions::default()).await,
        start(ServerOptions::default()).await,
    );
    let urls = format!("ws://{},ws://{}", a.address, b.address);
    let mut reconnect = reconnect_policy();
    reconnect.backoff = BackoffPolicy::new(Duration::from_millis(5), 1.0);
    let mut config = ClientConfig::new(Registration::new("notes", "I keep notes.")).unwrap();
    let dialer = dialer(&urls, &config).unwrap().in_listed_order();
    config.link.reconnect = reconnect;
    let (client, _events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    assert_eq!(client.node().unwrap().address(), a.address);
    assert_eq!(
        (a.runtime.clients().len(), b.runtime.clients().len()),
        (1, 0)
    );

    let mut states = client.states();
    a.task.abort();
    let again = LinkState::Ready { generation: 2 };
    states.wait_for(|state| *state == again).await.unwrap();
    assert_eq!(client.node().unwrap().address(), b.address);
    let clients = b.runtime.clients();
    let names: Vec<_> = clients.iter().map(|one| &*one.registration.name).collect();
    assert_eq!(names, ["notes"]);
}
