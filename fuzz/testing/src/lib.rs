//! What the tests of this workspace share. Not published.
//!
//! - [`sim`]: seeded simulations, which print the failing seed;
//! - [`losses`]: the loss of a line at every frame of a scenario;
//! - [`faults`]: peers that misbehave over real sockets;
//! - [`rules`]: the rules of a machine that texts and time can break;
//! - [`vectors`]: running test vectors from files;
//! - [`play`]: machines that a test plays by hand;
//! - [`json`]: comparing frames as JSON values;
//! - [`nats`]: a NATS server of a test's own;
//! - [`examples`]: running the example programs of a crate;
//! - [`mounted`]: servers that do not listen: mounted into axum, or in memory.
//!
//! It needs `rpc_core` as its users see it. The core's unit tests cannot use it: there the core is
//! another crate.

pub mod examples;
pub mod faults;
pub mod json;
pub mod losses;
pub mod mounted;
pub mod nats;
pub mod play;
pub mod rules;
pub mod sim;
pub mod vectors;

/// Not in a page, where these files are read otherwise.
fn read(path: &std::path::Path) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}

#[track_caller]
#[expect(clippy::panic, reason = "an assertion of a test tool")]
fn fail(message: &str) -> ! {
    panic!("{message}");
}
