//! Order at a real server, on a runtime that starts tasks in any order.

use std::time::Duration;

use rpc_core::net::LinkEvent;
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::Final;
use snek_proto::net::{MemoryBackend, Server, ServerOptions, connect_lazy};

/// Long enough for a busy machine; nothing here waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_client_are_posted_in_order() {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "secret", "Ann");
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default())
        .await
        .unwrap();
    let config = ClientConfig::new("ann", "secret");
    let (client, mut events, connection) = connect_lazy(&server.url(), config).unwrap();
    let server = tokio::spawn(server.run());
    let connection = tokio::spawn(connection.run());
    client.ready().await.unwrap();

    // All of them leave in one write, so the server has them all at once.
    let sent: Vec<String> = (0..64).map(|n| n.to_string()).collect();
    let texts = sent.clone();
    let posted = client.command(move |conn, _| {
        for text in &texts {
            conn.notify_message("general", text, Final::No).unwrap();
        }
    });
    posted.await.unwrap();

    let mut received = Vec::new();
    let all = async {
        while received.len() < sent.len() {
            match events.next_link().await {
                Some(LinkEvent::Event(ClientEvent::Message(message))) => {
                    received.push(message.message.to_string());
                }
                Some(_) => {}
                None => break,
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    assert_eq!(received, sent);
    client.close();
    connection.await.unwrap();
    server.abort();
}
