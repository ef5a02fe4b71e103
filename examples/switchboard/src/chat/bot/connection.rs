//! [`Server`]: the options of the way to a Snek server; [`open`] connects.

use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use snek_proto::client::ClientConfig;
use snek_proto::net::{connect_with, dialer};

use super::Channel;
use crate::cli::{self, Failure, LineArgs, Urls};

/// The variable with the password.
pub(crate) const PASSWORD: &str = "SNEK_PASSWORD";
/// The password if none is given: servers that accept every login take any.
const OPEN: &str = "guest";

#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// The server: ws://HOST:PORT or wss://HOST; several, separated by commas, for its nodes. The default
    /// path is /rpc.ws.
    #[arg(long, env = "SNEK_URL", default_value = "ws://127.0.0.1:8080")]
    pub(crate) url: Urls,
    #[command(flatten)]
    line: LineArgs,
    #[command(flatten)]
    pings: cli::Pings,
    /// The login name. Default: the name of the user of this machine.
    #[arg(long, value_name = "NAME", env = "SNEK_USERNAME")]
    username: Option<String>,
    /// A file with the password. Default: the password in SNEK_PASSWORD, else one for servers that let everyone in.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Let the password go to another machine without encryption.
    #[arg(long)]
    insecure: bool,
    /// The channel to begin in, by its name or uid. Default: the first one.
    #[arg(long, value_name = "CHANNEL")]
    pub(crate) channel: Option<String>,
    /// How long to wait for the server, and for an answer to TEXT or to the last line of a pipe.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = cli::duration)]
    pub(crate) within: Duration,
}

/// Connects. `is_once` if there is one text, and only its answer is printed.
pub(crate) fn open(args: Server, is_once: bool) -> Result<Channel, Failure> {
    let mut config = ClientConfig::new(username(&args), password(&args)?);
    config.call_timeout = args.within;
    config.handshake_timeout = Some(args.within);
    config.insecure = args.insecure;
    config.keep_alive = args.pings.over(config.keep_alive);
    let line = args.line.to(&args.url)?;
    let dialer = line.dialer(dialer(args.url.expose(), &config)?);
    let (client, events, connection) = connect_with(dialer, config);
    let connection = tokio::spawn(connection.run());
    Ok(Channel {
        client,
        events,
        connection,
        args,
        is_once,
        me: Default::default(),
        channels: Default::default(),
        is_in: false,
        was_in: false,
        is_told_in: false,
        growing: Default::default(),
        drawn: Default::default(),
        waiting: Default::default(),
        sending: None,
        own: Default::default(),
        posted: 0,
        answered: 0,
        printed: None,
        is_silent: false,
        deadline: None,
    })
}

fn username(args: &Server) -> String {
    let of_machine = || cli::variable("USER").or_else(|| cli::variable("USERNAME"));
    let name = args.username.clone().filter(|name| !name.is_empty());
    let name = name.or_else(|| of_machine().filter(|name| !name.is_empty()));
    name.unwrap_or_else(|| OPEN.to_owned())
}

fn password(args: &Server) -> Result<Secret, Failure> {
    let password = match &args.password_file {
        Some(file) => cli::secret_file("--password-file", file),
        None => cli::secret(PASSWORD),
    };
    Ok(password?.unwrap_or_else(|| OPEN.into()))
}
