//! `switchboard gateway serve` and `switchboard gateway check`: run a gateway, or check its configuration.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rpc_core::Secret;
use serde_json::json;

use crate::cli::{self, Failure, GOODBYE, Signals, TlsArgs, complain, secret, secret_or, variable};
use crate::commands::cluster::{LeaseArgs, NatsArgs, unless_failed};
use crate::fsync::FsyncArgs;
use crate::gateway::config::{Config, GatewayConfig, Loaded};
use crate::gateway::setup::{self, DRAIN, Gateway, Overrides, describe};
use crate::gateway::site::SECRET_VARIABLE;
use crate::metrics;
use crate::model::options::ModelArgs;

/// Files that are open beside the connections.
const OTHER_FILES: u64 = 64;
/// How often it is looked whether the configuration was edited.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The variable with the token of a gateway.
const TOKEN: &str = "EXOCLAW_TOKEN";

#[derive(Debug, clap::Args)]
#[command(mut_arg("model_timeout", |arg| arg.help("How long the model may be silent. Default: 45s")))]
pub(crate) struct Args {
    #[command(flatten)]
    file: File,
    /// The address to listen on; port 0 takes a free port. Addresses other than loopback need a token. Default: that
    /// of the file, else 127.0.0.1:7200
    #[arg(long, value_name = "ADDRESS", value_parser = cli::address, conflicts_with_all = ["port", "bind"])]
    listen: Option<SocketAddr>,
    /// The port of --listen alone.
    #[arg(long, value_name = "PORT", hide = true)]
    port: Option<u16>,
    /// The host of --listen alone.
    #[arg(long, value_name = "HOST", hide = true)]
    bind: Option<String>,
    /// The token that clients must send. Prefer the variable EXOCLAW_TOKEN: other users can see command lines.
    #[arg(long, value_name = "TOKEN")]
    token: Option<Secret>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    pings: cli::Pings,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    fsync: FsyncArgs,
    #[command(flatten)]
    nats: NatsArgs,
    #[command(flatten)]
    lease: LeaseArgs,
}

/// Where the configuration is.
#[derive(Debug, clap::Args)]
pub(crate) struct File {
    /// The configuration file. Default: EXOCLAW_CONFIG, else ~/.exoclaw/config.toml if it exists.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    file: File,
    /// Print one JSON object: 'ok', 'problems', 'warnings', and 'summary' if there are no problems.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    nats: NatsArgs,
}

impl File {
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let loaded = Config::load(self.config.as_deref(), variable).map_err(Failure::usage)?;
        for warning in &loaded.warnings {
            complain(format_args!("warning: {warning}"));
        }
        Ok(loaded)
    }
}

/// Says from now on each time when the configuration was edited, which is read once.
fn watch(file: Option<PathBuf>) -> impl Future<Output = Infallible> {
    let modified = |file: &Path| file.metadata().ok()?.modified().ok();
    let mut known = file.as_deref().and_then(modified);
    async move {
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let now = file.as_deref().and_then(modified);
            if let Some(file) = file.as_ref().filter(|_| now.is_some() && now != known) {
                known = now;
                let file = file.display();
                complain(format_args!(
                    "{file} was edited: it is read at the start, so start the gateway again"
                ));
            }
        }
    }
}

pub(crate) async fn check(args: &CheckArgs) -> Result<(), Failure> {
    let Loaded {
        config,
        folder,
        warnings,
        ..
    } = args.file.load()?;
    let nats = args.nats.clone().or(config.nats.clone());
    let overrides = Overrides {
        nats: nats.connect_now().await?,
        token: secret(TOKEN)?,
        webhook_secret: secret(SECRET_VARIABLE)?,
        folder,
        ..Overrides::default()
    };
    let checked = setup::check(&config, &overrides, &variable).await?;
    for warning in &checked.warnings {
        complain(format_args!("warning: {warning}"));
    }
    let problems = checked.problems;
    let is_right = problems.is_empty();
    if args.json {
        let warnings: Vec<String> = warnings.into_iter().chain(checked.warnings).collect();
        let summary = is_right.then(|| describe(&config));
        let answer = json!({ "ok": is_right, "problems": problems, "warnings": warnings, "summary": summary });
        cli::print_line(answer);
    } else if is_right {
        cli::print_line(describe(&config));
    }
    match is_right {
        true => Ok(()),
        false => Err(Failure::new(problems.join("\nerror: "))),
    }
}

/// Every connection is an open file: takes as many as the system gives, and returns how many
/// connections there can be then. The next one gets an error, in place of an accept that fails.
fn raise_connection_limit(wanted: usize) -> usize {
    let Some(files) = cli::raise_file_limit(u64::MAX) else {
        return wanted;
    };
    let most = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
    let connections = wanted.min(most.max(1));
    tracing::info!(files, connections, "files that may be open");
    // The default was not asked for.
    if connections < wanted && wanted != GatewayConfig::default().max_connections {
        tracing::warn!(
            files,
            connections,
            "the system allows fewer open files than connections; see ulimit -n"
        );
    }
    connections
}

pub(crate) async fn serve(args: Args) -> Result<(), Failure> {
    metrics::install()?;
    let Loaded {
        mut config,
        file,
        folder,
        ..
    } = args.file.load()?;
    let watching = watch(file);
    let nats = args.nats.or(config.nats.clone()).connect().await?;
    let bound = &mut config.gateway;
    bound.max_connections = raise_connection_limit(bound.max_connections);
    bound.fsync = args.fsync.fsync.unwrap_or(bound.fsync);
    let port = args.listen.map(|it| it.port()).or(args.port);
    bound.port = port.unwrap_or(bound.port);
    let bind = args.listen.map(|it| it.ip().to_string()).or(args.bind);
    bound.bind = bind.unwrap_or_else(|| std::mem::take(&mut bound.bind));
    let overrides = Overrides {
        model: args.model,
        pings: args.pings.clone(),
        token: secret_or("--token", args.token.as_ref(), TOKEN)?,
        webhook_secret: secret(SECRET_VARIABLE)?,
        folder,
        tls: args.tls.acceptor()?,
        proxies: args.tls.proxies.clone(),
        nats,
        lease: Some(args.lease.config(config.nats.lease)),
        nats_bytes: args.lease.nats_bytes,
    };
    let gateway = Gateway::start(config, overrides, &variable).await?;
    for warning in &gateway.warnings {
        complain(format_args!("warning: {warning}"));
    }
    let handle = gateway.handle();
    let signals = Signals::listen();
    let cut = Arc::clone(&gateway.cut);
    let (page, url) = (args.tls.url(&gateway.page()), args.tls.url(&gateway.url()));
    cli::announce(format_args!("listening on {page} (WebSocket: {url})"));
    cli::remark(format_args!("model: {}", gateway.model));
    cli::remark(cli::web_pages(&gateway.guards));
    let failed = gateway.failed();
    let serving = signals.serve(gateway.run(), handle.drain(DRAIN + GOODBYE));
    let outcome = tokio::select! {
        outcome = unless_failed(serving, failed) => outcome,
        never = watching => match never {},
    };
    match cut.load(Ordering::Relaxed) {
        0 => {}
        1 => complain("1 reply was cut off"),
        more => complain(format_args!("{more} replies were cut off")),
    }
    outcome
}
