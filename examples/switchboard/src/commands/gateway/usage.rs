//! `switchboard gateway usage`: prints the log of usage.

use std::path::Path;

use super::serve::File;
use crate::cli::{Failure, complain, print_line};
use crate::commands::cluster::NatsArgs;
use crate::gateway::config::{Config, DataDir};
use crate::gateway::engine::unix_seconds;
use crate::gateway::store::{
    FILE_NAME, GatewayStoreConfig, OLD_FILE_NAME, empty_file, open_folder, probe, unopened,
};
use crate::gateway::usage::UsageEntry;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    file: File,
    /// The most replies to print.
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    last: usize,
    /// Accepted for uniformity: the output is JSON in any case.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    nats: NatsArgs,
}

pub(crate) async fn usage(args: &Args) -> Result<(), Failure> {
    let config = args.file.load()?.config;
    let entries = match shared(args, &config).await? {
        Some(entries) => entries,
        None => own(args, &config).await?,
    };
    for entry in entries.iter().rev() {
        print_line(serde_json::to_string(entry).map_err(Failure::new)?);
    }
    Ok(())
}

/// The log of a cluster; `None` if a gateway alone is meant.
async fn shared(args: &Args, config: &Config) -> Result<Option<Vec<UsageEntry>>, Failure> {
    let nats = args.nats.clone().or(config.nats.clone());
    let Some(nats) = nats.connect_now().await? else {
        return Ok(None);
    };
    let entries = crate::gateway::store::usage(&*nats, args.last).await;
    entries.map(Some).map_err(Failure::new)
}

/// The log of a gateway alone.
async fn own(args: &Args, config: &Config) -> Result<Vec<UsageEntry>, Failure> {
    let DataDir::Folder(folder) = &config.gateway.data else {
        return Err(Failure::new(
            "this gateway keeps no log of usage: its data_dir is \":memory:\"; set it to a folder",
        ));
    };
    // Opening would make it.
    let mut files = [FILE_NAME, OLD_FILE_NAME]
        .map(|name| folder.join(name))
        .into_iter();
    if !files.any(|file| file.exists()) {
        let probed = probe(folder).await;
        probed.map_err(|error| unopened(folder, &error))?;
        return Ok(Vec::new());
    }
    if let Some(why) = empty_file(folder) {
        complain(format_args!("warning: {why}"));
        return Ok(Vec::new());
    }
    // A gateway that runs also knows what a full disk has not taken yet.
    if let Some(entries) = running(folder, args.last)? {
        return Ok(entries);
    }
    let options = GatewayStoreConfig::default();
    let opened = open_folder(folder, config.gateway.fsync, options, unix_seconds).await;
    let (store, taken_over) = opened.map_err(|error| unopened(folder, &error))?;
    if let Some(taken_over) = taken_over {
        complain(taken_over);
    }
    store.usage(args.last).await.map_err(Failure::new)
}

/// What the gateway says that has the store, if one runs.
#[cfg(unix)]
fn running(folder: &Path, max: usize) -> Result<Option<Vec<UsageEntry>>, Failure> {
    use std::io::ErrorKind::{ConnectionRefused, InvalidInput, NotFound};

    use crate::gateway::usage_socket::{SOCKET_NAME, ask_usage};

    match ask_usage(folder, max) {
        Ok(entries) => Ok(Some(entries)),
        // One that was killed leaves its socket behind; the path of a socket has to be short.
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused | InvalidInput) => {
            Ok(None)
        }
        Err(error) => {
            let socket = folder.join(SOCKET_NAME);
            let socket = socket.display();
            let why = "the gateway that runs does not answer at";
            Err(Failure::new(format_args!("{why} {socket}: {error}")))
        }
    }
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn running(_: &Path, _: usize) -> Result<Option<Vec<UsageEntry>>, Failure> {
    Ok(None)
}
