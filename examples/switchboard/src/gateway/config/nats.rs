//! [`NatsSettings`]: the table `[nats]`.

use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use serde::Deserialize;

use super::read;

/// `[nats]`: where the nodes of a cluster keep what they share, and who this one is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct NatsSettings {
    /// `url`: the servers. It may hold a password.
    #[serde(deserialize_with = "read::secret")]
    pub url: Option<Secret>,
    /// `prefix`: the prefix of all names.
    #[serde(deserialize_with = "read::filled")]
    pub prefix: Option<String>,
    /// `replicas`: on how many servers everything is stored, from 1 to 5.
    #[serde(deserialize_with = "read::within::<_, u8, _, 1, 5>")]
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
    #[serde(deserialize_with = "read::time::<_, 2_000, 300_000>")]
    pub lease: Option<Duration>,
}
