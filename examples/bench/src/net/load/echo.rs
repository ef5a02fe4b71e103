//! The same number of bytes there and back, with no RPC: what the transport itself costs.

use std::time::Instant;

use futures_util::{FutureExt, SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::{Pace, median};
use crate::net::kind::{self, Kind};
use crate::net::phase;
use crate::net::raw::{self, Socket};
use crate::text;

/// As long as a `ping` with its id.
pub(super) const REQUEST: &str = r#"{"id":"0f1e2d3c4b5a6978","method":"ping","params":{}}"#;

/// What is sent for a call of this work, and how many frames come back.
struct Exchange {
    request: Utf8Bytes,
    frames: usize,
}

impl Exchange {
    /// As long as our request. Requests for several frames say how many, and blanks.
    fn of(work: &str) -> Self {
        let sent = |request: &str| (request.to_owned(), 1);
        let many = |bytes, frames: usize| (format!("{frames:<bytes$}"), frames);
        let (request, frames) = match work {
            kind::STATUS => sent(r#"{"id":"0f1e2d3c4b5a6978","method":"status","params":{}}"#),
            kind::ECHO => sent(text::ECHO),
            kind::SEND_MESSAGE => sent(text::SEND_MESSAGE),
            // Ten texts and the end.
            kind::CHAT => many(CHAT, 11),
            // Before them, that it was accepted, has started and is running.
            kind::ACOLYTE_CHAT => many(ACOLYTE_CHAT, 14),
            kind::MESSAGE => sent(&text::words(MESSAGE)),
            kind::INPUT => sent(&text::words(INPUT)),
            kind::RELAYED => sent(&text::exoclaw_text(&text::words(50))),
            _ => sent(REQUEST),
        };
        Self {
            request: request.into(),
            frames,
        }
    }

    fn message(&self) -> Message {
        Message::Text(self.request.clone())
    }
}

/// How long requests are: chats, a message of SmartHole, a signed prompt of ConnectOnion.
const CHAT: usize = 111;
const ACOLYTE_CHAT: usize = 114;
const MESSAGE: usize = 223;
const INPUT: usize = 471;

pub(super) async fn load(kind: Kind<'_>, address: &str, pace: Pace) {
    let mut socket = raw::open(kind, address, 0).await;
    let each = kind.end == "echo, send each";
    let exchange = Exchange::of(kind.work);
    let Pace {
        in_flight, calls, ..
    } = pace;
    make(&mut socket, &exchange, each, in_flight, calls / 4).await;
    phase("ready").await;
    let mut times = make(&mut socket, &exchange, each, in_flight, calls).await;
    phase(&median(&mut times)).await;
}

async fn make(
    socket: &mut Socket,
    exchange: &Exchange,
    each: bool,
    in_flight: usize,
    calls: usize,
) -> Vec<u64> {
    let mut times = Vec::new();
    if in_flight == 1 {
        for _ in 0..calls {
            let start = Instant::now();
            socket.send(exchange.message()).await.unwrap();
            for _ in 0..exchange.frames {
                socket.next().await.unwrap().unwrap();
            }
            times.push(start.elapsed().as_nanos() as u64);
        }
        return times;
    }
    for _ in 0..in_flight {
        socket.feed(exchange.message()).await.unwrap();
    }
    socket.flush().await.unwrap();
    let mut to_send = calls - in_flight;
    let mut to_come = calls * exchange.frames;
    while to_come > 0 {
        let mut next = Some(socket.next().await);
        while let Some(answer) = next {
            answer.unwrap().unwrap();
            to_come -= 1;
            if to_send > 0 && to_come.is_multiple_of(exchange.frames) {
                to_send -= 1;
                if each {
                    socket.send(exchange.message()).await.unwrap();
                } else {
                    socket.feed(exchange.message()).await.unwrap();
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
