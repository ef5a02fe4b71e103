//! `gateway serve` and `gateway check`.

use std::path::PathBuf;
use std::time::Duration;

use examples::cli::{self, Failure, complain};
use examples::gateway::config::{Config, Loaded, PATH_VARIABLE};
use examples::gateway::setup::{Gateway, Overrides, describe};
use rpc_core::Secret;

/// How long replies may go on when the gateway ends.
const DRAIN: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    file: CheckArgs,
    /// The port to listen on; 0 takes a free one. Overrides the file.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The address to listen on. Overrides the file. Other addresses than loopback want a token.
    #[arg(long, value_name = "HOST")]
    bind: Option<String>,
    /// The token that clients must show. Better given in the environment: others can see command
    /// lines.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "EXOCLAW_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// Log more; twice for even more. RUST_LOG overrides it.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The configuration. Default: EXOCLAW_CONFIG, else ~/.exoclaw/config.toml if it exists.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl CheckArgs {
    /// The folder of the configuration, whether or not there is one.
    fn folder(&self) -> Option<PathBuf> {
        let file = self.config.clone();
        let file = file.or_else(|| variable(PATH_VARIABLE).map(PathBuf::from));
        match file {
            Some(file) => file.parent().map(PathBuf::from),
            None => variable("HOME").map(|home| PathBuf::from(home).join(".exoclaw")),
        }
    }

    fn load(&self) -> Result<Loaded, Failure> {
        let loaded = Config::load(self.config.as_deref(), variable).map_err(Failure::new)?;
        for warning in &loaded.warnings {
            complain(format_args!("warning: {warning}"));
        }
        Ok(loaded)
    }
}

pub(crate) fn check(args: &CheckArgs) -> Result<(), Failure> {
    let loaded = args.load()?;
    cli::say(describe(&loaded.config));
    Ok(())
}

pub(crate) async fn serve(args: Args) -> Result<(), Failure> {
    cli::log(args.verbose);
    let loaded = args.file.load()?;
    let overrides = Overrides {
        port: args.port,
        bind: args.bind,
        token: args.token.map(Secret::from),
        folder: args.file.folder(),
    };
    let gateway = Gateway::start(loaded.config, overrides, &variable)
        .await
        .map_err(Failure::new)?;
    for warning in gateway.warnings() {
        complain(format_args!("warning: {warning}"));
    }
    let handle = gateway.handle();
    let (page, url) = (gateway.page(), gateway.url());
    cli::say(format_args!("listening on {page} (WebSocket: {url})"));
    let running = tokio::spawn(gateway.run());

    cli::end_signal().await;
    complain("finishing the replies that are under way; once more ends at once");
    let report = tokio::select! {
        report = handle.drain(DRAIN) => report,
        () = cli::end_signal() => return Err(Failure::new("ended before everything was finished")),
    };
    running.await.map_err(Failure::new)?;
    let (finished, aborted) = (report.finished, report.aborted);
    complain(format_args!(
        "ended: {finished} connections closed, {aborted} cut"
    ));
    Ok(())
}
