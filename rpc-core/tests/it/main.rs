//! Tests of level 3 over real sockets and in-memory pipes.
// Functions that tests share may fail them in the same way.
#![allow(clippy::unwrap_used, clippy::panic)]

mod server;
mod tls;
mod ws;
