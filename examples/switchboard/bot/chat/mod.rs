//! `switchboard bot chat`: a chat in the channels of a Snek server.

mod channels;
mod growing;
mod peer;

use std::path::PathBuf;
use std::time::Duration;

use rpc_core::Secret;
use snek_proto::client::ClientConfig;
use snek_proto::net::{connect_with, dialer, link_config};
use switchboard::chat::{self, Options, Peer as _};
use switchboard::cli::{self, EXIT_CODES, Failure, LineArgs, Urls};
use switchboard::terminal;

use self::peer::Channel;

/// The password if none is given: servers that accept every login take any.
const OPEN: &str = "guest";

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  A dialogue, with the server of 'switchboard bot serve --open':
    switchboard bot chat
  One question, and the answer of whoever is first:
    switchboard bot chat '@mybot count to 5'
  Lines from a pipe, each of them posted, and all events in JSON:
    printf '@mybot time\\n@mybot dice 2d6\\n' | switchboard bot chat --json
  A real server:
    SNEK_PASSWORD=.. switchboard bot chat --url wss://snek.example.com --username ann --channel General";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Args {
    /// What to post, '-' for all of standard input. Prints the next message of another user in the channel
    /// and ends; without it, lines are read.
    text: Option<String>,
    /// The server: ws://HOST:PORT or wss://HOST; several, separated by commas, for its nodes. The default
    /// path is /rpc.ws.
    #[arg(
        long,
        env = "SNEK_URL",
        hide_env_values = true,
        default_value = "ws://127.0.0.1:8080"
    )]
    url: Urls,
    #[command(flatten)]
    line: LineArgs,
    #[command(flatten)]
    pings: cli::Pings,
    /// The login name. Default: the name of the user of this machine.
    #[arg(long, value_name = "NAME", env = "SNEK_USERNAME")]
    username: Option<String>,
    /// The environment variable that holds the password. If it is not set: a password for servers that
    /// let everyone in.
    #[arg(long, value_name = "VAR", default_value = "SNEK_PASSWORD")]
    password_env: String,
    /// A file with the password, in place of the variable.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Let the password go to another machine without encryption.
    #[arg(long)]
    insecure: bool,
    /// The channel to begin in, by its name or uid. Default: the first one.
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// How long to wait for the server, and for an answer to TEXT or to the last line of a pipe.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = cli::duration)]
    within: Duration,
    /// Print one JSON object for each event: connected, message, typing, lost and so on.
    #[arg(long)]
    json: bool,
    /// The history file of the terminal. Default: one in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

pub(crate) async fn chat(args: Args) -> Result<(), Failure> {
    let options = Options {
        once: terminal::only(args.text.clone(), Channel::MAX_BYTES, args.json)?,
        json: args.json,
        history: args.history.clone(),
        place: args.url.to_string(),
    };
    let peer = open(args);
    let mut peer = peer.inspect_err(|failure| failure.tell(options.json))?;
    chat::run(&mut peer, options).await
}

fn open(args: Args) -> Result<Channel, Failure> {
    let mut config = ClientConfig::new(username(&args), password(&args)?);
    config.call_timeout = args.within;
    config.handshake_timeout = Some(args.within);
    config.insecure_password = args.insecure;
    config.keep_alive = args.pings.over(config.keep_alive);
    let line = args.line.to(&args.url)?;
    let dialer = line.dialer(dialer(args.url.expose(), &config)?);
    let (client, events, connection) = connect_with(dialer, config, link_config());
    let connection = tokio::spawn(async move {
        connection.run().await;
    });
    Ok(Channel::new(client, events, connection, args))
}

fn username(args: &Args) -> String {
    let of_machine = || cli::variable("USER").or_else(|| cli::variable("USERNAME"));
    let name = args.username.clone().filter(|name| !name.is_empty());
    let name = name.or_else(|| of_machine().filter(|name| !name.is_empty()));
    name.unwrap_or_else(|| OPEN.to_owned())
}

fn password(args: &Args) -> Result<Secret, Failure> {
    let password = match &args.password_file {
        Some(file) => cli::secret_file("--password-file", file),
        None => cli::secret(&args.password_env),
    };
    Ok(password?.unwrap_or_else(|| OPEN.into()))
}
