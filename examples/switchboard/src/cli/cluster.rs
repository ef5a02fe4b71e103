//! [`NatsSettings`] and [`LeaseArgs`]: what a node of a cluster is told, with or without feature `nats`.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::cluster::{LeaseConfig, StoreError};
use serde::Deserialize;

use super::Failure;
use crate::gateway::config::read;

/// The default of `--lease`, in seconds.
const LEASE: u64 = 10;

/// `[nats]`: where the nodes of a cluster keep what they share, and who this one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NatsSettings {
    /// `url`: the servers. It may hold a password.
    #[serde(deserialize_with = "read::secret")]
    pub url: Option<Secret>,
    /// `prefix`: the prefix of all names.
    #[serde(deserialize_with = "read::filled")]
    pub prefix: Option<String>,
    /// `replicas`: on how many servers everything is stored, from 1 to 5.
    pub replicas: Option<u8>,
    /// `user`: the user; its password is in `password_file`.
    #[serde(deserialize_with = "read::filled")]
    pub user: Option<String>,
    /// `password_file`: a file with the password of the user.
    pub password_file: Option<PathBuf>,
    /// `token_file`: a file with a token.
    pub token_file: Option<PathBuf>,
    /// `nkey_file`: a file with the seed of an nkey.
    pub nkey_file: Option<PathBuf>,
    /// `creds_file`: a `.creds` file with a JWT and the seed of its nkey.
    pub creds_file: Option<PathBuf>,
    /// `ca`: a PEM file with the certification authorities to trust, and no others.
    pub ca: Option<PathBuf>,
    /// `lease`: after how many seconds without a sign of life a node counts as gone, from 2 to 300.
    #[serde(deserialize_with = "read::seconds")]
    pub lease: Option<Duration>,
}

/// How soon others take over what a node did, and how much room the sessions of all have.
#[allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct LeaseArgs {
    /// With --nats: the seconds after which a node without a sign of life counts as gone, and others take over
    /// what it held. The same at all nodes, and as the first one said. Default: 10.
    #[arg(long, value_name = "SECONDS", hide = cfg!(not(feature = "nats")), value_parser = clap::value_parser!(u64).range(2..=300))]
    lease: Option<u64>,
    /// With --nats: the most bytes that all sessions may take there, beyond which prompts are refused. As the
    /// first node said. Default: what NATS has room for, within a fixed limit.
    #[arg(long = "nats-bytes", value_name = "BYTES", hide = cfg!(not(feature = "nats")), value_parser = clap::value_parser!(u64).range(65_536..))]
    pub nats_bytes: Option<u64>,
}

impl LeaseArgs {
    /// Returns how long a node counts as alive. `file` is what a configuration file says.
    pub fn config(self, file: Option<Duration>) -> LeaseConfig {
        let lease = self.lease.map(Duration::from_secs).or(file);
        let lease = lease.unwrap_or(Duration::from_secs(LEASE));
        LeaseConfig {
            lease,
            margin: lease / 10,
            ..LeaseConfig::default()
        }
    }
}

/// Says why NATS did not do what a program needs for its start.
pub fn nats_failure(error: &StoreError) -> Failure {
    let message = format!("--nats: {error}");
    match error {
        StoreError::Config { .. } | StoreError::TooLarge => Failure::usage(message),
        _ => Failure::refused(message),
    }
}

/// Serves until `failed` says why this node cannot heal.
///
/// # Errors
/// [`Failure`] of the serving, or of the node.
///
/// # Cancel safety
/// Dropping the future drops both.
pub async fn unless_failed(
    serving: impl Future<Output = Result<(), Failure>>,
    failed: impl Future<Output = StoreError>,
) -> Result<(), Failure> {
    tokio::select! {
        served = serving => served,
        error = failed => Err(nats_failure(&error)),
    }
}
