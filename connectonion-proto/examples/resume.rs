//! A run that outlives its connection: the line is cut in the middle, the client connects again and
//! resumes, gets the steps that it missed, and the run ends with its result.
//!
//! ```sh
//! cargo run -p connectonion-proto --example resume
//! ```
#![allow(clippy::print_stdout)]

use std::{error::Error, time::Duration};

use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::frame::{EventKind, Thinking};
use connectonion_proto::net::{
    self, Agent, AppError, Prompt, Reply, RunEvent, Server, ServerOptions, Turn,
};
use connectonion_proto::rpc_core::{backoff::BackoffPolicy, reconnect::ReconnectPolicy};
use connectonion_proto::trust::TrustLevel;

struct Counter;

impl Agent for Counter {
    async fn run(&self, turn: &Turn, _: Prompt) -> Result<Reply, AppError> {
        for n in 1..=3 {
            turn.emit(EventKind::Thinking(Thinking::new(format!("{n}"))))?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Reply::new("counted to three"))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let key = Signer::generate()?;
    let options = ServerOptions::new(&key, TrustLevel::Open);
    let host = Server::bind("127.0.0.1:0", Counter, options).await?;
    let url = host.url();
    tokio::spawn(host.run());

    let backoff = BackoffPolicy::new(Duration::from_millis(50), 2.0); // in place of a second
    let mut options = ClientConfig::default();
    options.link.reconnect = ReconnectPolicy::new(backoff);
    options.host = Some(*key.address());
    let (agent, _events, connection) = net::connect(&url, Signer::generate()?, options).await?;
    tokio::spawn(connection.run());
    println!("connection {}", agent.ready().await?);

    let mut run = agent.chat("count").await;
    run.next().await; // the first step
    agent.cut();
    while let Some(RunEvent::Step(step)) = run.next().await.transpose()? {
        println!("{:?}", step.event.kind);
    }
    println!("connection {}", agent.ready().await?);
    println!("{}", run.finish().await?.result);
    Ok(())
}
