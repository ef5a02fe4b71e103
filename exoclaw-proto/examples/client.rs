//! A client of a gateway in the same process: shows its token, asks what the gateway has, and
//! chats.
//!
//! ```sh
//! cargo run -p exoclaw-proto --example client
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::net::{self, MemoryBackend, Server, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let backend = MemoryBackend::new().with_plugin("echo");
    let options = ServerOptions::new(Auth::token("secret")?);
    let server = Server::bind("127.0.0.1:0", backend, options).await?;
    let url = server.url();
    tokio::spawn(server.run());

    let config = ClientConfig::new("secret");
    let (client, _events, connection) = net::connect(&url, config).await?;
    tokio::spawn(connection.run()); // you spawn it: there are no hidden tasks

    println!("version {}", client.status().await?.version);
    for plugin in client.plugin_list().await? {
        println!("plugin {}", plugin.name);
    }
    let mut chat = client.chat("hello there").await;
    println!("{}", chat.finish().await?);
    if let Some(summary) = chat.summary() {
        println!("{} tokens", summary.usage.total());
    }

    client.close();
    println!("{}", client.closed().await);
    Ok(())
}
