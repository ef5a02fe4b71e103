//! A transport of your own: a `Dialer` that makes each connection in memory, and hands its other
//! end to a host without sockets. A proxy or a tunnel is written in the same way.
//!
//! ```sh
//! cargo run -p connectonion-proto --example transport
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::net::{
    self, Agent, AppError, HostRuntime, Prompt, Reply, RuntimeOptions, Turn,
};
use connectonion_proto::rpc_core::net::{DialError, Dialer, DriverConfig, mem};
use connectonion_proto::server::ServerConfig;
use connectonion_proto::trust::TrustLevel;

struct Echo;

impl Agent for Echo {
    async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        Ok(Reply::new(format!("you said {}", prompt.text)))
    }
}

struct InProcess(HostRuntime);

impl Dialer for InProcess {
    type Transport = mem::MemTransport;

    async fn dial(&self) -> Result<Self::Transport, DialError> {
        let (here, there) = mem::duplex(16);
        let config = ServerConfig::default();
        tokio::spawn(self.0.serve(there, None, config, DriverConfig::default()));
        Ok(here)
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let key = Signer::generate()?;
    let options = RuntimeOptions::new(&key, TrustLevel::Open);
    let runtime = HostRuntime::new(Echo, options);
    let running = runtime.clone();
    tokio::spawn(async move { running.run().await });

    let (me, options) = (Signer::generate()?, ClientConfig::default());
    let (agent, _events, connection) = net::connect_with(InProcess(runtime), me, options);
    tokio::spawn(connection.run());
    agent.ready().await?;
    println!("{}", agent.chat("hello").await.finish().await?.result);
    Ok(())
}
