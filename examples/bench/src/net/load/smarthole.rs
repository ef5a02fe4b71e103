//! Our SmartHole router: it is the end that asks. The client gets the address to connect to.

use smarthole_proto::hub::Input;
use smarthole_proto::net::{RouterRuntime, Server, ServerOptions};
use smarthole_proto::router::Keywords;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Pace;
use crate::net::values::TEXT;

async fn ask(runtime: &RouterRuntime, text: &str) {
    let settled = runtime.ask(Input::text(text)).await.unwrap();
    assert!(settled.is_taken());
}

pub(super) async fn load(address: &str, pace: Pace) {
    let mut options = ServerOptions::default();
    options.connection.limits.max_message_rate = None;
    let server = Server::bind("127.0.0.1:0", Keywords::new(), options);
    let server = server.await.unwrap();
    let (url, runtime) = (server.url(), server.runtime());
    tokio::spawn(server.run());
    let mut events = runtime.events();
    let mut told = TcpStream::connect(address).await.unwrap();
    told.write_all(url.as_bytes()).await.unwrap();
    told.shutdown().await.unwrap();
    while runtime.clients().is_empty() {
        events.next().await;
    }
    drop(events);
    // It names its client, so that no router is asked.
    let text = format!("notes: {TEXT}");
    pace.measure(|_| ask(&runtime, &text)).await;
}
