//! A transport of your own: a `Dialer` that makes each connection in memory, and hands its other
//! end to a server without sockets. A proxy or a tunnel is written in the same way.
//!
//! ```sh
//! cargo run -p acolyte-proto --example transport
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use acolyte_proto::client::ClientConfig;
use acolyte_proto::frame::{ChatRequest, Reply};
use acolyte_proto::net;
use acolyte_proto::rpc_core::Refused;
use acolyte_proto::rpc_core::net::{DialError, Dialer, Driver, Transport, entropy, mem, time};
use acolyte_proto::server::{ServerConfig, ServerConn, ServerEvent};

struct InProcess;

impl Dialer for InProcess {
    type Transport = mem::MemTransport;

    async fn dial(&self) -> Result<Self::Transport, DialError> {
        let (here, there) = mem::duplex(16);
        tokio::spawn(serve(there));
        Ok(here)
    }
}

/// Serves one connection on any transport: the driver moves the frames, the machine reads them.
async fn serve(transport: impl Transport) -> Result<(), Refused> {
    let machine = ServerConn::new(ServerConfig::default(), entropy(), time::now());
    let mut driver = Driver::new(machine, transport);
    while let Some(event) = driver.next().await {
        println!("server: {event:?}");
        if let ServerEvent::Start { id, request, .. } = event {
            let reply = Reply::new(request.message, "echo");
            driver.machine_mut().done(&id, &reply)?;
        }
    }
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let config = ClientConfig::default();
    let (client, _events, connection) = net::connect_with(InProcess, config);
    tokio::spawn(connection.run());
    client.ready().await?;
    let mut chat = client.chat(ChatRequest::new("hi", "echo")).await;
    println!("client: {}", chat.finish().await);
    Ok(())
}
