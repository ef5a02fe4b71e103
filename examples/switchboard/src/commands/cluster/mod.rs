//! [`NatsArgs`] and [`LeaseArgs`]: the options of a node of a cluster, with or without feature `nats`.

#[cfg(feature = "nats")]
mod nats;
#[cfg(not(feature = "nats"))]
#[path = "no_nats.rs"]
mod nats;

use std::time::Duration;

use rpc_core::cluster::LeaseConfig;
use rpc_core::store::StoreError;

use crate::cli::{Failure, nats_failure};

pub(crate) use nats::NatsArgs;

/// The default of `--lease`, in seconds.
const LEASE: u64 = 10;

/// How soon others take over what a node did, and how much room the sessions of all have.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct LeaseArgs {
    /// With --nats: the seconds after which a node without a sign of life counts as gone, and others take over
    /// what it held. The same at all nodes, and as the first one said. Default: 10.
    #[arg(long, value_name = "SECONDS", hide = cfg!(not(feature = "nats")), value_parser = clap::value_parser!(u64).range(2..=300))]
    lease: Option<u64>,
    /// With --nats: the most bytes that all sessions may take there, beyond which prompts are refused. As the
    /// first node said. Default: what NATS has room for, within a fixed limit.
    #[arg(long = "nats-bytes", value_name = "BYTES", hide = cfg!(not(feature = "nats")), value_parser = clap::value_parser!(u64).range(65_536..))]
    pub(crate) nats_bytes: Option<u64>,
}

impl LeaseArgs {
    /// Returns how long a node counts as alive. `file` is what a configuration file says.
    pub(crate) fn config(self, file: Option<Duration>) -> LeaseConfig {
        let lease = self.lease.map(Duration::from_secs).or(file);
        let lease = lease.unwrap_or(Duration::from_secs(LEASE));
        LeaseConfig {
            lease,
            margin: lease / 10,
            ..LeaseConfig::default()
        }
    }
}

/// Serves until `failed` says why this node cannot heal.
///
/// # Errors
/// [`Failure`] of the serving, or of the node.
///
/// # Cancel safety
/// Dropping the future drops both.
pub(crate) async fn unless_failed(
    serving: impl Future<Output = Result<(), Failure>>,
    failed: impl Future<Output = StoreError>,
) -> Result<(), Failure> {
    tokio::select! {
        served = serving => served,
        error = failed => Err(nats_failure(&error)),
    }
}
