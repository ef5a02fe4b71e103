//! Our Snek server with its backend in memory.

use rpc_core::net::server::ServerLimits;
use snek_proto::net::{MemoryBackend, Server, ServerOptions};

use super::Tell;

pub(super) async fn serve(tell: Tell) {
    let backend = MemoryBackend::new()
        .with_channel("ch1", "General")
        .with_user("ann", "a", "Ann");
    let mut options = ServerOptions::default();
    options.http.limits = ServerLimits::default().with_max_connections(20_000);
    let server = Server::bind("127.0.0.1:0", backend, options).await.unwrap();
    tell(server.local_addr());
    server.run().await;
}
