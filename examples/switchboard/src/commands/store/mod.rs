//! `switchboard store`: copies what servers store.

mod copy;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::storage::{export, import};
use rpc_core::file;
use rpc_core::store::{FileConfig, FileStore, Fsync, Store, StoreError};

use self::copy::copy;
use crate::cli::{self, Failure, complain};
use crate::commands::cluster::NatsArgs;
use crate::fsync;

/// Copies what servers store, between files and NATS.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Copy(Box<CopyArgs>),
}

/// Copies all that a server stores to another place, which must have none of it. No server may run on either
/// file meanwhile. A place is a file of `agent host` (sessions.redb) or of the gateway (gateway.redb); the word
/// nats, for the server of --nats; or a file whose name ends with .jsonl, of ConnectOnion's own hosts, for the
/// sessions of an agent alone.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// Where to copy from.
    from: PathBuf,
    /// Where to copy to. A file is created if it is missing.
    to: PathBuf,
    /// FROM is a damaged file: take over what can be read. What was deleted may come back.
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    nats: NatsArgs,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`]; some may be copied.
pub(crate) async fn run(Command::Copy(args): Command) -> Result<(), Failure> {
    // Opening a file that is missing would create it.
    ensure(
        is_nats(&args.from) || args.from.exists(),
        format_args!("there is no file {}", args.from.display()),
    )?;
    let real = |place: &Path| place.canonicalize().unwrap_or_else(|_| place.to_owned());
    let is_other = real(&args.from) != real(&args.to);
    ensure(
        is_other,
        "FROM and TO are one place: give another one to copy to",
    )?;
    match (is_results(&args.from), is_results(&args.to)) {
        _ if args.salvage => salvage(&args),
        (true, true) => Err(Failure::usage(
            "only one of the places can be a .jsonl file",
        )),
        (true, false) => {
            let store = args.store(&args.to).await?;
            let imported = import(&store, &args.from).await;
            match imported.map_err(|error| failed(&args.from, &error))? {
                Some(imported) => complain(imported),
                None => complain("nothing is new"),
            }
            Ok(())
        }
        (false, true) => {
            let store = args.store(&args.from).await?;
            absent(&args.to)?;
            let file = file::open(&args.to).map_err(|error| failed(&args.to, &error))?;
            let count = export(&*store, BufWriter::new(file)).await;
            let count = count.map_err(|error| failed(&args.to, &error))?;
            complain(format_args!("{count} sessions are copied"));
            Ok(())
        }
        (false, false) => {
            let (from, to) = (args.store(&args.from).await?, args.store(&args.to).await?);
            for copied in copy(&*from, &*to).await.map_err(Failure::new)? {
                complain(copied);
            }
            Ok(())
        }
    }
}

impl CopyArgs {
    /// Opens the store at a place.
    async fn store(&self, place: &Path) -> Result<Arc<dyn Store>, Failure> {
        if !is_nats(place) {
            let store = fsync::open(place, Fsync::Always, Duration::ZERO).await;
            return Ok(Arc::new(
                store.map_err(|error| self.unopened(place, &error))?,
            ));
        }
        let store = self.nats.connect_now().await?;
        store.ok_or_else(|| Failure::usage("nats needs the URL of its server: --nats URL"))
    }

    fn unopened(&self, place: &Path, error: &StoreError) -> Failure {
        let is_target = place == self.to;
        cli::cannot_open(if is_target { "TO" } else { "FROM" }, place, error)
    }
}

fn salvage(args: &CopyArgs) -> Result<(), Failure> {
    let mut places = [&args.from, &args.to].into_iter();
    ensure(
        !places.any(|it| is_nats(it) || is_results(it)),
        "--salvage reads a file of a store and writes another one",
    )?;
    absent(&args.to)?;
    let store = FileStore::salvage(&args.from, &args.to, FileConfig::default());
    let store = store.map_err(|error| args.unopened(&args.to, &error))?;
    if let Some(salvaged) = store.salvaged() {
        complain(format_args!(
            "{} records are copied, {} are lost",
            salvaged.found, salvaged.damaged
        ));
    }
    Ok(())
}

fn is_nats(place: &Path) -> bool {
    place == Path::new("nats")
}

/// Whether this is a file of ConnectOnion's own hosts.
fn is_results(place: &Path) -> bool {
    place.extension().is_some_and(|it| it == "jsonl")
}

/// Refuses a file that exists: it is not written over.
fn absent(place: &Path) -> Result<(), Failure> {
    let exists = format_args!("{} exists already", place.display());
    ensure(!place.exists(), exists)
}

fn ensure(is_so: bool, otherwise: impl Display) -> Result<(), Failure> {
    match is_so {
        true => Ok(()),
        false => Err(Failure::usage(otherwise)),
    }
}

fn failed(place: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format_args!("{}: {error}", place.display()))
}
