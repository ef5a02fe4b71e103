//! [`NatsSettings`]: the table `[nats]`, and the options of the same meaning.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use rpc_core::Secret;
use serde::Deserialize;

use super::read;

/// `[nats]`: where the nodes of a cluster keep what they share, and who this one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[command(next_help_heading = "Cluster")]
pub struct NatsSettings {
    /// Share everything with the other nodes on this NATS server (nats-server -js). Several URLs of one NATS
    /// cluster have commas between them; tls:// needs TLS. Default: this node is alone.
    #[serde(deserialize_with = "read::secret")]
    #[arg(id = "nats", long, value_name = "URL", env = "NATS_URL")]
    pub url: Option<Secret>,
    /// The prefix of all names on NATS; two clusters on one NATS need two. Default: switchboard.
    #[serde(deserialize_with = "read::filled")]
    #[arg(id = "nats-prefix", long, value_name = "NAME")]
    pub prefix: Option<String>,
    /// The user on NATS. The password comes from --nats-password-file or NATS_PASSWORD.
    #[serde(deserialize_with = "read::filled")]
    #[arg(id = "nats-user", long, value_name = "NAME", env = "NATS_USER")]
    pub user: Option<String>,
    /// A file with the password for --nats-user.
    #[arg(id = "nats-password-file", long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A file with a token for NATS. Without it: NATS_TOKEN.
    #[arg(id = "nats-token-file", long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A file with the seed of an nkey (SU...). Without it: NATS_NKEY.
    #[arg(id = "nats-nkey-file", long, value_name = "FILE")]
    pub nkey_file: Option<PathBuf>,
    /// A .creds file with a JWT and the seed of its nkey, as nsc writes it.
    #[arg(
        id = "nats-creds", long, value_name = "FILE", env = "NATS_CREDS",
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    pub creds_file: Option<PathBuf>,
    /// Trust these certification authorities for NATS, a PEM file, and no others.
    #[arg(id = "nats-ca", long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// On how many servers of the NATS cluster everything is stored, from 1 to 5. Default: 1.
    #[serde(deserialize_with = "read::within::<_, u8, _, 1, 5>")]
    #[arg(id = "nats-replicas", long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub replicas: Option<u8>,
    /// After how many seconds without a sign of life a node counts as gone, from 2 to 300.
    #[serde(deserialize_with = "read::time::<_, 2_000, 300_000>")]
    #[arg(skip)]
    pub lease: Option<Duration>,
}
