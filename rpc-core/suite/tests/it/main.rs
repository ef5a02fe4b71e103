//! The engines of `rpc_core` keep the rules of a store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of a test binary")]

mod broken;
mod file;
mod memory;
mod nats;
mod sqlite;
