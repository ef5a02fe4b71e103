//! A client of an agent in the same process: finds its host, sends a prompt, shows the steps of the
//! run and answers its question.
//!
//! ```sh
//! cargo run -p connectonion-proto --example client
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::frame::{AskUser, EventKind, Thinking};
use connectonion_proto::net::{
    self, Agent, AppError, Prompt, Reply, RunEvent, Server, ServerOptions, Turn,
};
use connectonion_proto::trust::TrustLevel;

struct Barista;

impl Agent for Barista {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        turn.emit(EventKind::Thinking(Thinking::new("milk or not?")))?;
        let milk = turn.ask_user(AskUser::new("With milk?")).await?;
        Ok(Reply::new(format!("{}, milk: {}", prompt.text, milk.get())))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let key = Signer::generate()?;
    let options = ServerOptions::new(&key, TrustLevel::Open);
    let host = Server::bind("127.0.0.1:0", Barista, options).await?;
    let endpoint = format!("http://{}", host.local_addr());
    tokio::spawn(host.run());

    let found = net::find(&endpoint, None).await?; // its URL and its address
    let options = ClientConfig {
        host: Some(found.address),
        ..ClientConfig::default()
    };
    let (agent, _events, connection) =
        net::connect(&found.url, Signer::generate()?, options).await?;
    tokio::spawn(connection.run()); // you spawn it: there are no hidden tasks

    let mut run = agent.chat("one coffee").await;
    while let Some(event) = run.next().await {
        match event? {
            RunEvent::Step(step) => println!("step: {}", step.event.kind.tag()),
            RunEvent::AskUser(ask) => ask.answer("yes").await?,
            other => println!("{other:?}"),
        }
    }
    println!("{}", run.finish().await?.result);
    Ok(())
}
