//! Tests of level 3 over real sockets and in-memory pipes.
// Helpers outside of `#[test]` functions fail a test in the same way.
#![allow(clippy::unwrap_used, clippy::panic)]

mod server;
mod tls;
mod ws;
