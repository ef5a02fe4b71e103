//! `switchboard bot serve`: a Snek server that keeps everything in memory, or shares it with others on NATS.

use std::collections::HashMap;
use std::future::ready;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryFutureExt as _;
use rpc_core::Secret;
use rpc_core::net::server::{Guards, HttpConfig};
use rpc_core::store::{Store, StoreError};
use snek_proto::frame::User;
use snek_proto::hub::HubConfig;
use snek_proto::net::{Backend, MemoryBackend, Server, ServerOptions};
use snek_proto::net::{ClusterBackend, ClusterError, ClusterOptions, ClusterRunner};

use crate::cli::{self, Failure, GOODBYE, Reach, Signals, TlsArgs, complain};
use crate::commands::cluster::{NatsArgs, unless_failed};
use crate::{bounded, metrics, web};

const NOTHING: &str = "This is a Snek server: connect with a WebSocket. GET /health, /ready and /metrics are answered, too.\n";
/// How long calls that are under way may take when the server ends.
const DRAIN: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  Anyone on this machine may log in; a new name creates a user:
    switchboard bot serve --open
  Two users, with passwords from the environment:
    SNEK_PASSWORD_ALICE=wonderland SNEK_PASSWORD_MYBOT=secret \\
      switchboard bot serve --user alice:Alice --user mybot:MyBot --channel general=General
  For a network, with TLS (or without, behind a proxy that adds it):
    switchboard bot serve --public --listen 0.0.0.0:8080 --allow-host chat.example.com \\
      --tls-cert cert.pem --tls-key key.pem --allow-origin https://chat.example.com \\
      --passwords users.txt --user alice";

const CLUSTER: &str = "\
  One platform on several machines, with a NATS server that all reach (nats-server -js):
    switchboard bot serve --open --nats nats://10.0.0.1:4222";

/// The examples that the build can do.
fn examples() -> String {
    match cfg!(feature = "nats") {
        true => format!("{EXAMPLES}\n{CLUSTER}"),
        false => EXAMPLES.to_owned(),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Args {
    /// The address to listen on; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = cli::address)]
    listen: SocketAddr,
    /// A channel, as UID or UID=NAME; may be repeated. Default: general=General.
    #[arg(long = "channel", value_name = "UID=NAME")]
    channels: Vec<String>,
    /// A user, as NAME or NAME:NICK; may be repeated. The password comes from the environment variable
    /// SNEK_PASSWORD_NAME, in capitals, else from --passwords.
    #[arg(long = "user", value_name = "NAME:NICK")]
    users: Vec<String>,
    /// A file with one NAME:PASSWORD a line.
    #[arg(long, value_name = "FILE")]
    passwords: Option<PathBuf>,
    /// Accept every login: one with an unknown name creates a user with that password.
    #[arg(long)]
    open: bool,
    /// Send complete messages as 'new_message', the form that the platform's own sample bots read, in place of
    /// 'message'. The same at all nodes.
    #[arg(long)]
    new_message: bool,
    /// How many threads serve. With one, a message costs the least; a server that needs more than one processor
    /// needs more.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) workers: NonZero<usize>,
    #[command(flatten)]
    reach: Reach,
    /// An origin of web pages that may connect, as SCHEME://HOST or SCHEME://HOST:PORT; may be repeated.
    /// Default: none.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    #[command(flatten)]
    pings: cli::Pings,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    nats: NatsArgs,
}

pub(crate) async fn serve(args: Args) -> Result<(), Failure> {
    let is_public = args.reach.check(args.listen)?;
    let platform = platform(&args)?;
    metrics::install().map_err(Failure::new)?;
    if is_public {
        args.reach.warn(&args.tls);
        if args.open {
            complain("warning: with --open, anyone who can reach this server may log in");
        }
    }

    let _ = cli::raise_file_limit(cli::SOME_FILES);
    if let Some(nats) = args.nats.connect().await? {
        let (backend, runner) = platform.share(nats).await?;
        let serving = run(&args, backend.clone(), move || backend.ready());
        // A task of its own: here, each message of the store would wake this thread and then a worker.
        let node = tokio::spawn(runner.run());
        // A panic of it is on standard error.
        let failed = node.unwrap_or_else(|_| StoreError::unavailable("the node has ended"));
        return unless_failed(serving, failed).await;
    }
    run(&args, platform.keep()?, || Ok(())).await
}

/// Serves; `is_ready` says whether, or why not.
async fn run<B: Backend>(
    args: &Args,
    backend: B,
    is_ready: impl Fn() -> Result<(), &'static str> + Send + Sync + 'static,
) -> Result<(), Failure> {
    let guards = cli::guards(Guards::default(), &args.reach.hosts, &args.origins)?;
    let http = HttpConfig {
        guards,
        ..HttpConfig::default()
    };
    let mut options = ServerOptions::default();
    options.connection.keep_alive = args.pings.over(options.connection.keep_alive);
    options.http = args
        .tls
        .http(metrics::guard(http))?
        .with_http(move |request, _| {
            let answer = metrics::respond(&request);
            let answer = answer.or_else(|| web::health(&request, is_ready()));
            ready(answer.unwrap_or_else(|| web::upgrade_required(NOTHING)))
        });
    let server = Server::bind(args.listen, backend, options).await;
    let server = server.map_err(|error| cli::cannot_listen(args.listen, "--listen", &error))?;
    let handle = server.handle();
    let signals = Signals::listen();
    cli::remark(format_args!("listening on {}", args.tls.url(&server.url())));
    signals
        .serve(server.run(), handle.drain(DRAIN + GOODBYE))
        .await
}

/// The channels and users that the options name.
struct Platform {
    /// The option, the uid and the name.
    channels: Vec<[String; 3]>,
    /// The option, the user and the password.
    users: Vec<(String, User, Secret)>,
    open: bool,
    hub: HubConfig,
}

fn platform(args: &Args) -> Result<Platform, Failure> {
    if args.users.is_empty() && !args.open {
        let message = "no one can log in: add --user NAME, or --open to let anyone in";
        return Err(Failure::usage(message));
    }
    let general = ["general=General".to_owned()];
    let channels = match args.channels.as_slice() {
        [] => &general,
        given => given,
    };
    let channels = channels.iter().map(|channel| {
        let (uid, name) = channel.split_once('=').unwrap_or((channel, channel));
        [channel, uid, name].map(str::to_owned)
    });
    let passwords = args.passwords.as_deref().map(read_passwords);
    let passwords = passwords.transpose()?.unwrap_or_default();
    let users = args.users.iter().map(|user| {
        let (name, nick) = user.split_once(':').unwrap_or((user, user));
        let variable = variable(name);
        let password = cli::secret(&variable)?.or_else(|| passwords.get(name).cloned());
        let password = password.ok_or_else(|| {
            Failure::usage(format_args!(
                "no password: set the environment variable {variable}, or give --passwords FILE"
            ))
        })?;
        Ok((user.clone(), User::new(name, nick), password))
    });
    Ok(Platform {
        channels: channels.collect(),
        users: users.collect::<Result<_, Failure>>()?,
        open: args.open,
        hub: HubConfig {
            new_message: args.new_message,
            ..HubConfig::default()
        },
    })
}

impl Platform {
    /// Keeps it in memory.
    fn keep(self) -> Result<MemoryBackend, Failure> {
        let backend = MemoryBackend::with_limits(self.hub);
        for [option, uid, name] in &self.channels {
            let added = backend.add_channel(uid, name);
            added.map_err(|error| Failure::usage(format_args!("--channel {option}: {error}")))?;
        }
        for (option, user, password) in self.users {
            let added = backend.add_user(user, password.expose());
            added.map_err(|error| Failure::usage(format_args!("--user {option}: {error}")))?;
        }
        Ok(if self.open { backend.open() } else { backend })
    }

    /// Shares it with the other nodes on NATS. What is there already stays; users get the nick and the
    /// password of the options.
    async fn share(
        self,
        store: Arc<dyn Store>,
    ) -> Result<(ClusterBackend, ClusterRunner), Failure> {
        let failed = |what: String, error| match error {
            ClusterError::Store(error) => cli::nats_failure(&error),
            error => Failure::usage(format_args!("{what}: {error}")),
        };
        let options = ClusterOptions {
            hub: self.hub,
            open: self.open,
            ..ClusterOptions::default()
        };
        let opened = ClusterBackend::open(store, options).await;
        let (backend, runner) = opened.map_err(|error| cli::nats_failure(&error))?;
        for [option, uid, name] in &self.channels {
            let added = backend.put_channel(uid, name).await;
            added.map_err(|error| failed(format!("--channel {option}"), error))?;
        }
        for (option, user, password) in self.users {
            let added = backend.put_user(user, password.expose()).await;
            added.map_err(|error| failed(format!("--user {option}"), error))?;
        }
        Ok((backend, runner))
    }
}

fn read_passwords(file: &Path) -> Result<HashMap<String, Secret>, Failure> {
    let place = format!("--passwords {}", file.display());
    let text = bounded::given_text(&place, file)?;
    let lines = text.lines().zip(1..);
    let named = lines.filter_map(|(line, at)| Some((line.split_once(':')?, at)));
    let read = named.map(|((name, password), at)| {
        let place = format!("{place}, the password of line {at}");
        match cli::secret_text(&place, password) {
            Ok(Some(password)) => Ok((name.trim().to_owned(), password)),
            Ok(None) => Err(Failure::usage(format_args!("{place}: it is empty"))),
            Err(error) => Err(error.into()),
        }
    });
    read.collect()
}

/// The environment variable with the password of a user.
fn variable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.to_ascii_uppercase().chars().map(plain).collect();
    format!("SNEK_PASSWORD_{name}")
}
