//! The servers. Each says its address and runs until it is ended.

mod bare;
mod exoclaw;
mod jsonrpsee;
mod snek;

/// Frames of about 100 bytes together with their envelopes.
const CHUNK: usize = 45;

pub(crate) async fn serve(kind: &str) {
    match kind {
        "exoclaw" => exoclaw::serve().await,
        "snek" => snek::serve().await,
        "jsonrpsee" => jsonrpsee::serve().await,
        "echo, send each" => bare::serve(true, true).await,
        "echo, no RPC" | "tungstenite, 4 KiB buffers" => bare::serve(false, true).await,
        "tungstenite, default buffers" => bare::serve(false, false).await,
        other => panic!("no server {other}"),
    }
}
