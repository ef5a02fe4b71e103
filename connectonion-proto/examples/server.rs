//! A host with an agent of its own, which repeats what it is told. One client sends a prompt; then
//! the host drains: it lets agents finish and closes every connection.
//!
//! ```sh
//! cargo run -p connectonion-proto --example server
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Duration;

use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::net::{self, Agent, AppError, Prompt, Reply, Server, ServerOptions, Turn};
use connectonion_proto::trust::TrustLevel;

struct Echo;

impl Agent for Echo {
    async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        Ok(Reply::new(format!("you said {}", prompt.text)))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let key = Signer::generate()?; // Signer::load_or_generate keeps it in a file
    let mut options = ServerOptions::new(&key, TrustLevel::Open);
    options.name = "echo".into();
    let host = Server::bind("127.0.0.1:0", Echo, options).await?;
    let (url, handle) = (host.url(), host.handle());
    println!("the agent's address is {}", key.address());
    tokio::spawn(host.run());

    let options = ClientConfig {
        host: Some(*key.address()),
        ..ClientConfig::default()
    };
    let (agent, _events, connection) = net::connect(&url, Signer::generate()?, options).await?;
    tokio::spawn(connection.run());
    println!("{}", agent.chat("hello").await.finish().await?.result);

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(())
}
