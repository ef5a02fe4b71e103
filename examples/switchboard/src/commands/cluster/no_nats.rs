//! [`NatsArgs`] of a program without feature `nats`.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::sync::Arc;

use rpc_core::store::Store;

use crate::cli::Failure;
use crate::gateway::config::NatsSettings;

/// The options for NATS, which cannot be given.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct NatsArgs {
    /// Not in this program: several nodes that share everything on NATS. For that, build it with
    /// `--features nats`.
    #[arg(
        long = "nats",
        aliases = [
            "nats-prefix", "nats-user", "nats-password-file", "nats-token-file", "nats-nkey-file", "nats-creds",
            "nats-ca", "nats-replicas",
        ],
        value_name = "URL",
        value_parser = refuse,
    )]
    _nats: Option<Infallible>,
}

fn refuse(_: &str) -> Result<Infallible, &'static str> {
    Err("this program was built without feature `nats`: build it with `--features nats`")
}

impl NatsArgs {
    /// Returns the options: a file changes nothing.
    pub(crate) fn or(self, _: NatsSettings) -> Self {
        self
    }

    /// Returns that this is no node of a cluster.
    pub(crate) const fn is_on(&self) -> bool {
        false
    }

    /// Returns that this node is alone.
    pub(crate) fn connect(&self) -> impl Future<Output = Result<Option<Arc<dyn Store>>, Failure>> {
        ready(Ok(None))
    }

    /// Returns that this node is alone.
    pub(crate) fn connect_now(
        &self,
    ) -> impl Future<Output = Result<Option<Arc<dyn Store>>, Failure>> {
        ready(Ok(None))
    }
}
