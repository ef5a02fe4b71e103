//! [`NatsArgs`]: where the nodes of a cluster keep what they share.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::net::nats::{Nats, NatsConfig, NatsError};
use rpc_core::net::tls::TlsConfig;

use super::{Failure, variable};

/// The variable with the URL, the user and the secrets, beside the options.
const URL: &str = "NATS_URL";
const USER: &str = "NATS_USER";
const PASSWORD: &str = "NATS_PASSWORD";
const TOKEN: &str = "NATS_TOKEN";
const NKEY: &str = "NATS_NKEY";

/// A NATS server with JetStream, and who we are there.
#[allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct NatsArgs {
    /// Share everything with the other nodes on this NATS server (nats-server -js). Several URLs of one NATS
    /// cluster have commas between them; tls:// needs TLS. Default: this node is alone.
    #[arg(long = "nats", value_name = "URL", env = URL, hide_env_values = true)]
    nats_url: Option<String>,
    /// The prefix of all names on NATS; two clusters on one NATS need two.
    #[arg(
        long = "nats-prefix",
        value_name = "NAME",
        default_value = "switchboard"
    )]
    nats_prefix: String,
    /// The user on NATS. The password comes from --nats-password-file or NATS_PASSWORD.
    #[arg(long = "nats-user", value_name = "NAME", env = USER)]
    nats_user: Option<String>,
    /// A file with the password for --nats-user.
    #[arg(long = "nats-password-file", value_name = "FILE")]
    nats_password: Option<PathBuf>,
    /// A file with a token for NATS. Without it: NATS_TOKEN.
    #[arg(long = "nats-token-file", value_name = "FILE")]
    nats_token: Option<PathBuf>,
    /// A file with the seed of an nkey (SU...). Without it: NATS_NKEY.
    #[arg(long = "nats-nkey-file", value_name = "FILE")]
    nats_nkey: Option<PathBuf>,
    /// Trust these certification authorities for NATS, a PEM file, and no others.
    #[arg(long = "nats-ca", value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// On how many servers of the NATS cluster everything is stored, from 1 to 5.
    #[arg(long = "nats-replicas", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=5))]
    nats_replicas: u8,
}

/// How soon others take over what a node did.
#[allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct LeaseArgs {
    /// With --nats: the seconds after which a node without a sign of life counts as gone, and others take over
    /// what it held. The same at all nodes, and as the first one said.
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(2..=300))]
    lease: u64,
}

impl LeaseArgs {
    /// Returns the time without a sign of life.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.lease)
    }
}

impl NatsArgs {
    /// Returns whether this is a node of a cluster.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.nats_url.is_some()
    }

    /// Returns the configuration; `None` if this node is alone.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read.
    pub fn config(&self) -> Result<Option<NatsConfig>, Failure> {
        let Some(url) = &self.nats_url else {
            return Ok(None);
        };
        let mut config = NatsConfig::new(url)
            .with_prefix(&self.nats_prefix)
            .with_replicas(self.nats_replicas.into());
        if let Some(user) = &self.nats_user {
            let password = secret(
                "--nats-password-file",
                self.nats_password.as_deref(),
                PASSWORD,
            )?;
            let password = password.ok_or_else(|| {
                Failure::usage(format_args!(
                    "--nats-user needs a password: --nats-password-file or {PASSWORD}"
                ))
            })?;
            config = config.with_user(user, password);
        } else if let Some(token) = secret("--nats-token-file", self.nats_token.as_deref(), TOKEN)?
        {
            config = config.with_token(token);
        } else if let Some(seed) = secret("--nats-nkey-file", self.nats_nkey.as_deref(), NKEY)? {
            config = config.with_nkey(seed);
        }
        if let Some(file) = &self.nats_ca {
            let wrong = |error: &dyn std::fmt::Display| {
                Failure::usage(format_args!("--nats-ca {}: {error}", file.display()))
            };
            let pem = fs::read(file).map_err(|error| wrong(&error))?;
            let tls = TlsConfig::with_root_certificates_pem(&pem).map_err(|error| wrong(&error))?;
            config = config.with_tls(tls);
        }
        Ok(Some(config))
    }

    /// Connects; `None` if this node is alone.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, NATS does not answer or refuses.
    pub async fn connect(&self) -> Result<Option<Nats>, Failure> {
        let Some(config) = self.config()? else {
            return Ok(None);
        };
        Nats::connect(config)
            .await
            .map(Some)
            .map_err(|error| match error {
                NatsError::Denied { message } => {
                    Failure::refused(format_args!("NATS refuses: {message}"))
                }
                NatsError::Unavailable { message } => Failure::refused(format_args!(
                    "no NATS server answers at {}: {message}. Start one with: nats-server -js",
                    shown(self.nats_url.as_deref().unwrap_or_default())
                )),
                error => Failure::usage(format_args!("--nats: {error}")),
            })
    }
}

/// The URLs without what may be a password.
fn shown(urls: &str) -> String {
    let host = |url: &str| url.rsplit(['@', '/']).next().unwrap_or_default().to_owned();
    let hosts: Vec<_> = urls.split(',').map(host).collect();
    hosts.join(", ")
}

/// The secret in the file, else in the environment.
fn secret(option: &str, file: Option<&Path>, name: &str) -> Result<Option<Secret>, Failure> {
    let Some(file) = file else {
        return Ok(variable(name).map(Secret::from));
    };
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::usage(format_args!("{option} {}: {error}", file.display())))?;
    Ok(Some(Secret::from(text.trim_end_matches(['\r', '\n']))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        nats: NatsArgs,
        /// Options of programs with the same names: their ids must differ.
        #[arg(long)]
        url: Option<String>,
        #[arg(long)]
        token: Option<String>,
    }

    fn parse(args: &[&str]) -> NatsArgs {
        let args = [&["node"], args].concat();
        Command::try_parse_from(args).unwrap().nats
    }

    #[test]
    fn without_a_url_a_node_is_alone() {
        assert!(parse(&["--nats-prefix", "x"]).config().unwrap().is_none());
    }

    #[test]
    fn a_user_needs_a_password_and_a_password_is_never_printed() {
        let folder = std::env::temp_dir().join(format!("nats-args-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("password");
        fs::write(&file, "wonder\n").unwrap();
        let file = file.display().to_string();
        let args = ["--nats", "nats://a", "--nats-user", "ann"];
        parse(&args).config().unwrap_err();
        let args = [&args[..], &["--nats-password-file", &file]].concat();
        let config = parse(&args).config().unwrap().unwrap();
        assert!(!format!("{config:?}").contains("wonder"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        let urls = "nats://ann:wonder@10.0.0.1:4222,tls://sesame@10.0.0.2:4222";
        assert_eq!(shown(urls), "10.0.0.1:4222, 10.0.0.2:4222");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named() {
        let args = parse(&["--nats", "nats://127.0.0.1:1"]);
        let error = args.connect().await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("127.0.0.1:1"), "{text}");
        assert!(text.contains("nats-server -js"), "{text}");
    }
}
