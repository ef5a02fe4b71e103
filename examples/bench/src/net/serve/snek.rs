//! Our Snek server with its backend in memory, and one more method.

use std::sync::Arc;

use rpc_core::{Limits, Secret, Str, json};
use snek_proto::error::RpcError;
use snek_proto::frame::{Call, User};
use snek_proto::net::{Backend, CallReply, MemoryBackend, Peer, Replied, Server, ServerOptions};

use super::{CONNECTIONS, OnListen};
use crate::net::values::Said;

/// The backend in memory, with an `echo`.
struct Echoing {
    memory: MemoryBackend,
    /// Whether users get what is said in their channels, their own messages too.
    tells: bool,
}

impl Backend for Echoing {
    async fn login(
        &self,
        peer: &Arc<Peer>,
        username: &str,
        password: &Secret<Str>,
    ) -> Result<User, RpcError> {
        self.memory.login(peer, username, password).await
    }

    async fn logged_in(&self, peer: &Arc<Peer>, user: &User) {
        if self.tells {
            return self.memory.logged_in(peer, user).await;
        }
        // Known to the hub, but not as one to whom frames are handed.
        let connected = |hub: &mut snek_proto::hub::Hub| hub.connect(peer.id(), &user.username);
        self.memory.with_hub(connected).unwrap();
    }

    async fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        match call {
            Call::Unknown { method, args, .. } if method == "echo" => {
                let said = json::parse(args.get(), &Limits::default());
                let (said,): (Said<String>,) =
                    said.map_err(|error| RpcError::new(error.to_string()))?;
                reply.send(&said)
            }
            call => self.memory.call(peer, call, reply).await,
        }
    }

    async fn disconnected(&self, peer: &Arc<Peer>) {
        self.memory.disconnected(peer).await;
    }
}

/// `tells`: whether users get what is said in their channels, as they do. jsonrpsee's method only
/// answers.
pub(super) async fn serve(on_listen: OnListen, tells: bool) {
    let memory = MemoryBackend::new()
        .with_channel("ch1", "General")
        .with_user("ann", "a", "Ann");
    let mut options = ServerOptions::default();
    options.connection.max_requests = 4_096;
    options.connection.limits.max_message_rate = None;
    options.http.limits.max_connections = CONNECTIONS;
    let backend = Echoing { memory, tells };
    let server = Server::bind("127.0.0.1:0", backend, options).await.unwrap();
    on_listen(server.local_addr());
    server.run().await;
}
