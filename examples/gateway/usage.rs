//! `gateway usage`: prints the log of usage.

use std::path::Path;

use examples::cli::{Failure, complain, say};
use examples::gateway::config::DataDir;
use examples::gateway::store::{
    EmbeddedStore, FILE_NAME, Store as _, StoreError, StoreLimits, empty_file,
};
use examples::gateway::usage::UsageEntry;

use crate::serve::CheckArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    file: CheckArgs,
    /// How many replies at most
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    last: usize,
}

pub(crate) fn usage(args: &Args) -> Result<(), Failure> {
    let config = args.file.load()?.config;
    let DataDir::Folder(folder) = &config.gateway.data else {
        return Err(Failure::new("nothing is kept: data_dir is \":memory:\""));
    };
    // Opening would make it.
    if !folder.join(FILE_NAME).exists() {
        return Ok(());
    }
    if let Some(why) = empty_file(folder) {
        complain(format_args!("warning: {why}"));
        return Ok(());
    }
    let entries = match EmbeddedStore::open(folder, StoreLimits::default()) {
        Err(error @ StoreError::InUse { .. }) => running(folder, args.last, &error)?,
        store => store
            .and_then(|store| store.usage(args.last))
            .map_err(Failure::new)?,
    };
    for entry in entries.iter().rev() {
        say(serde_json::to_string(entry).map_err(Failure::new)?);
    }
    Ok(())
}

/// Asks the gateway that has the store.
#[cfg(unix)]
fn running(folder: &Path, max: usize, why: &StoreError) -> Result<Vec<UsageEntry>, Failure> {
    use examples::gateway::local::{SOCKET_NAME, ask_usage};

    let told = |error| {
        let socket = folder.join(SOCKET_NAME);
        let socket = socket.display();
        Failure::new(format_args!(
            "{why}, which does not answer at {socket}: {error}"
        ))
    };
    ask_usage(folder, max).map_err(told)
}

#[cfg(not(unix))]
fn running(_: &Path, _: usize, why: &StoreError) -> Result<Vec<UsageEntry>, Failure> {
    Err(Failure::new(why))
}
