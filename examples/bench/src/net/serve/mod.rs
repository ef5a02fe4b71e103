//! The servers. Each tells its address and runs until it is ended.

mod bare;
mod connectonion;
mod exoclaw;
mod fast;
mod jsonrpsee;
mod snek;
mod tcp;

use std::net::SocketAddr;

use super::load::WIDE;

/// Frames of about 100 bytes together with their envelopes.
const CHUNK: usize = 45;

/// Whom a server tells its address, once it listens.
pub(super) type Tell = Box<dyn FnOnce(SocketAddr) + Send>;

pub(super) async fn serve(kind: &str, tell: Tell) {
    match kind {
        "exoclaw" => exoclaw::serve(tell, false).await,
        WIDE => exoclaw::serve(tell, true).await,
        "connectonion" => connectonion::serve(tell).await,
        "snek" => snek::serve(tell).await,
        "jsonrpsee" => jsonrpsee::serve(tell).await,
        "TCP echo" => tcp::serve(tell).await,
        "fastwebsockets" => fast::serve(tell, false).await,
        "fastwebsockets, send each" => fast::serve(tell, true).await,
        "echo, send each" => bare::serve(tell, true, true).await,
        "echo, no RPC" | "tungstenite, 4 KiB buffers" => bare::serve(tell, false, true).await,
        "tungstenite, default buffers" => bare::serve(tell, false, false).await,
        other => panic!("no server {other}"),
    }
}
