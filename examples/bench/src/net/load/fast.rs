//! fastwebsockets: the same number of bytes there and back, with no RPC.

use std::time::Instant;

use fastwebsockets::{Frame, Payload, Role};

use super::echo::REQUEST;
use super::{Pace, median};
use crate::net::fast::FastSocket;
use crate::net::kind::Kind;
use crate::net::{phase, raw};

pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let stream = raw::open(kind, address, 0).await.into_inner();
    let mut socket = FastSocket::new(stream, Role::Client, kind.end.ends_with("send each"));
    make(&mut socket, pace.in_flight, pace.calls / 4).await;
    phase("ready").await;
    let mut times = make(&mut socket, pace.in_flight, pace.calls).await;
    phase(&median(&mut times)).await;
}

async fn make(socket: &mut FastSocket, in_flight: usize, calls: usize) -> Vec<u64> {
    let mut times = Vec::new();
    let mut to_send = calls;
    for _ in 1..in_flight {
        send(socket).await;
        to_send -= 1;
    }
    for _ in 0..calls {
        let start = (in_flight == 1).then(Instant::now);
        if to_send > 0 {
            to_send -= 1;
            send(socket).await;
        }
        socket.next().await.unwrap();
        times.extend(start.map(|start| start.elapsed().as_nanos() as u64));
    }
    times
}

async fn send(socket: &mut FastSocket) {
    // Its own mask is written into it.
    let payload = Payload::Owned(REQUEST.as_bytes().to_vec());
    socket.writer.send(Frame::text(payload)).await.unwrap();
}
