//! `gateway usage`: prints the log of usage.

use examples::cli::{Failure, say};
use examples::gateway::config::DataDir;
use examples::gateway::store::{EmbeddedStore, FILE_NAME, Store as _, StoreLimits};

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
    let store = EmbeddedStore::open(folder, StoreLimits::default()).map_err(Failure::new)?;
    let entries = store.usage(args.last).map_err(Failure::new)?;
    for entry in entries.iter().rev() {
        say(serde_json::to_string(entry).map_err(Failure::new)?);
    }
    Ok(())
}
