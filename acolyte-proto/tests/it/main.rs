//! Tests of the public API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, reason = "helpers of a test binary")]

<<<<<<< HEAD
mod allocations;
mod frames;
mod frames_props;
mod queue;
mod recordings;
mod vectors;
=======
mod daemon;
mod queue;
mod recordings;
mod serve;
mod serve_crowd;
mod serve_http;
>>>>>>> ac-queue
