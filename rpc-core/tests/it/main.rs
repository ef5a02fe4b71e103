//! Tests of level 3 over real sockets and in-memory pipes.
#![allow(missing_docs, clippy::indexing_slicing)]

mod server;
mod tls;
mod ws;
