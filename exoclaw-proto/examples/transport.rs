//! A transport of your own: a `Dialer` that makes each connection in memory, and hands its other
//! end to a gateway without sockets. A proxy or a tunnel is written in the same way.
//!
//! ```sh
//! cargo run -p exoclaw-proto --example transport
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::Call;
use exoclaw_proto::net;
use exoclaw_proto::rpc_core::Refused;
use exoclaw_proto::rpc_core::net::{DialError, Dialer, Driver, Transport, mem, time};
use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};

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
    let machine = ServerConn::new(ServerConfig::default(), Auth::open(), time::now());
    let mut driver = Driver::new(machine, transport);
    while let Some(event) = driver.next().await {
        println!("gateway: {event:?}");
        if let ServerEvent::Request {
            id,
            call: Call::ChatSend(chat),
        } = event
        {
            driver.machine_mut().text(id, &chat.content)?;
            driver.machine_mut().done(id)?;
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
    println!(
        "client: {}",
        client.chat("hello there").await.finish().await?
    );
    Ok(())
}
