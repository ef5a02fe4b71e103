//! The same number of bytes there and back, with no RPC: what the transport itself costs.

use std::time::Instant;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{median, phase};
use crate::net::raw::{self, Socket};

/// As long as a `ping` with its id.
pub(super) const REQUEST: &str = r#"{"id":"0f1e2d3c4b5a6978","method":"ping","params":{}}"#;

pub(super) async fn load(kind: &str, address: &str, in_flight: usize, calls: usize) {
    let mut socket = raw::open(kind, address).await;
    let each = kind == "echo, send each";
    make(&mut socket, each, in_flight, calls / 4).await;
    phase("ready").await;
    let mut times = make(&mut socket, each, in_flight, calls).await;
    phase(&median(&mut times)).await;
}

async fn make(socket: &mut Socket, each: bool, in_flight: usize, calls: usize) -> Vec<u64> {
    let message = || Message::Text(Utf8Bytes::from_static(REQUEST));
    let mut times = Vec::new();
    if in_flight == 1 {
        for _ in 0..calls {
            let start = Instant::now();
            socket.send(message()).await.unwrap();
            socket.next().await.unwrap().unwrap();
            times.push(start.elapsed().as_nanos() as u64);
        }
        return times;
    }
    for _ in 0..in_flight {
        socket.feed(message()).await.unwrap();
    }
    socket.flush().await.unwrap();
    let mut to_send = calls - in_flight;
    let mut to_come = calls;
    while to_come > 0 {
        let mut next = Some(socket.next().await);
        while let Some(answer) = next {
            answer.unwrap().unwrap();
            to_come -= 1;
            if to_send > 0 {
                to_send -= 1;
                if each {
                    socket.send(message()).await.unwrap();
                } else {
                    socket.feed(message()).await.unwrap();
                }
            }
            next = if to_come > 0 {
                socket.next().now_or_never()
            } else {
                None
            };
        }
        socket.flush().await.unwrap();
    }
    times
}
