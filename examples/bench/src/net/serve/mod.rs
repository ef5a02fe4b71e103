//! The servers. Each prints its address and runs until it is stopped.

mod acolyte;
mod connectonion;
mod exoclaw;
mod jsonrpsee;
mod smarthole;
mod snek;

use std::net::SocketAddr;

use tokio::sync::oneshot;

use super::kind::{ECHO_ONLY, Kind, SEND_MESSAGE};
use super::plain;

pub(super) use connectonion::host_key;

/// Frames of about 100 bytes together with their envelopes.
pub(super) const CHUNK: usize = 45;
/// More connections than are ever opened.
pub(super) const CONNECTIONS: usize = 200_000;

/// Gets the address of a server, once it listens.
pub(super) type Tell = Box<dyn FnOnce(SocketAddr) + Send>;

pub(super) async fn serve(kind: Kind<'_>, tell: Tell) {
    match kind.end {
        "exoclaw" => exoclaw::serve(tell).await,
        "connectonion" => connectonion::serve(tell).await,
        "snek" => snek::serve(tell, kind.work != SEND_MESSAGE).await,
        "smarthole" => smarthole::serve(tell).await,
        "router" => smarthole::serve_router(tell).await,
        "acolyte" => acolyte::serve(tell).await,
        "jsonrpsee" => jsonrpsee::serve(tell).await,
        ECHO_ONLY => plain::serve(tell).await,
        other => panic!("no server {other}"),
    }
}

/// Runs a server in a task of its own; its address.
pub(super) async fn here(kind: &str) -> String {
    let (tell, told) = oneshot::channel();
    let own = kind.to_owned();
    tokio::spawn(async move {
        let tell = Box::new(|address| {
            let _ = tell.send(address);
        });
        serve(Kind::parse(&own), tell).await;
    });
    told.await.unwrap().to_string()
}
