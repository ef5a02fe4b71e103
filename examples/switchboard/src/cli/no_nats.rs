//! [`NoNats`]: what a program without feature `nats` says to its options.

use std::convert::Infallible;

/// The options for NATS, which cannot be given.
#[derive(Clone, Debug, clap::Args)]
pub struct NoNats {
    #[arg(
        long = "nats",
        aliases = [
            "nats-prefix", "nats-user", "nats-password-file", "nats-token-file", "nats-nkey-file", "nats-ca",
            "nats-replicas",
        ],
        hide = true,
        value_parser = refuse,
    )]
    _nats: Option<Infallible>,
}

fn refuse(_: &str) -> Result<Infallible, &'static str> {
    Err("this program was built without feature `nats`")
}
