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
pub(super) type OnListen = Box<dyn FnOnce(SocketAddr) + Send>;

pub(super) async fn serve(kind: Kind<'_>, on_listen: OnListen) {
    match kind.end {
        "exoclaw" => exoclaw::serve(on_listen).await,
        "connectonion" => connectonion::serve(on_listen).await,
        "snek" => snek::serve(on_listen, kind.work != SEND_MESSAGE).await,
        "smarthole" => smarthole::serve(on_listen).await,
        "router" => smarthole::serve_router(on_listen).await,
        "acolyte" => acolyte::serve(on_listen).await,
        "jsonrpsee" => jsonrpsee::serve(on_listen).await,
        ECHO_ONLY => plain::serve(on_listen).await,
        other => panic!("no server {other}"),
    }
}

/// Runs a server in a task of its own; its address.
pub(super) async fn here(kind: &str) -> String {
    let (on_listen, told) = oneshot::channel();
    let own = kind.to_owned();
    tokio::spawn(async move {
        let on_listen = Box::new(|address| {
            let _ = on_listen.send(address);
        });
        serve(Kind::parse(&own), on_listen).await;
    });
    told.await.unwrap().to_string()
}
