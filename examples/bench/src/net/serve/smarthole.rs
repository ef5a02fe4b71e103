//! Our SmartHole client, which accepts every message at once, and our router for clients that do nothing.

use rpc_core::net::LinkEvent;
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::Registration;
use smarthole_proto::net::{Event, Server, ServerOptions, connect_lazy};
use smarthole_proto::router::Keywords;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::{CONNECTIONS, OnListen};

/// The router that asks sends its URL here.
pub(super) async fn serve(on_listen: OnListen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    on_listen(listener.local_addr().unwrap());
    let (mut told, _) = listener.accept().await.unwrap();
    let mut url = String::new();
    told.read_to_string(&mut url).await.unwrap();
    let config = ClientConfig::new(Registration::new("notes", "I keep notes.")).unwrap();
    let (_client, mut events, connection) = connect_lazy(&url, config).unwrap();
    tokio::spawn(connection.run());
    while let Some(event) = events.next_link().await {
        if let LinkEvent::Event(Event::Message(message)) = event {
            message.ack().await.unwrap();
        }
    }
}

pub(super) async fn serve_router(on_listen: OnListen) {
    let mut options = ServerOptions::default();
    options.http.limits.max_connections = CONNECTIONS;
    options.http.limits.max_websockets = None;
    let server = Server::bind("127.0.0.1:0", Keywords::new(), options);
    let server = server.await.unwrap();
    on_listen(server.local_addr());
    server.run().await;
}
