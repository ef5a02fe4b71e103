//! A server with a backend of its own. One client connects and calls it; then the server drains:
//! it lets open calls finish and closes every connection.
//!
//! ```sh
//! cargo run -p snek-proto --example server
//! ```
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use snek_proto::client::ClientConfig;
use snek_proto::error::RpcError;
use snek_proto::frame::{Call, Channel, Final, User};
use snek_proto::net::{self, Backend, CallReply, Peer, Replied, Server, ServerOptions};
use snek_proto::rpc_core::{Secret, Str};

/// One user, one channel.
struct Platform;

impl Backend for Platform {
    async fn login(&self, _: &Arc<Peer>, name: &str, _: &Secret<Str>) -> Result<User, RpcError> {
        let user = (name == "ann").then(|| User::new("ann", "Ann"));
        user.ok_or_else(|| RpcError::new("invalid credentials"))
    }

    async fn call(
        &self,
        _: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        match call {
            Call::GetUser { .. } => reply.send(&User::new("ann", "Ann")),
            Call::GetChannels => reply.send(&[Channel::new("general", "General", None)]),
            Call::SendMessage { message, .. } => {
                println!("Ann writes {message}");
                reply.send(&message.len())
            }
            other => Err(RpcError::new(format!("no method {}", other.method()))),
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::bind("127.0.0.1:0", Platform, ServerOptions::default()).await?;
    let (url, handle) = (server.url(), server.handle());
    tokio::spawn(server.run());

    let (client, _events, connection) =
        net::connect(&url, ClientConfig::new("ann", "secret")).await?;
    tokio::spawn(connection.run());
    let reply = client.send_message("general", "hello", Final::Yes).await?;
    println!("the reply is {}", reply.data().get());

    println!("{:?}", handle.drain(Duration::from_secs(5)).await);
    Ok(())
}
