//! Integration tests of `acolyte-proto`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "helpers of a test binary")]

mod queue;
mod recordings;
