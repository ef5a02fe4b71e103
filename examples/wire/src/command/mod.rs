//! `switchboard wire`: tools for the protocols.

mod check;
mod decode;
mod load;
mod page;
mod proxy;
mod replay;
mod send;

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;

use crate::Protocol;
use crate::cli::{EXIT_CODES, Failure, Service, cannot_listen, complain};
use crate::text::printable;
use clap::Subcommand;
use rpc_core::net::server::Listener;
use rpc_core::net::ws::WsDialer;

const EXAMPLES: &str = "\
Examples ('switchboard' stands for 'cargo run -p switchboard --' until it is installed):
  switchboard wire proxy --to ws://127.0.0.1:7200 --record run.jsonl
  switchboard wire decode run.jsonl
  switchboard wire replay run.jsonl --as client ws://127.0.0.1:7200
  switchboard wire decode --problems run.jsonl
  switchboard wire page run.jsonl
  switchboard wire decode --json run.jsonl.gz
  switchboard wire proxy --to ws://127.0.0.1:7200 --print
  switchboard wire send ws://127.0.0.1:7200 --protocol exoclaw '{\"id\":\"1\",\"method\":\"ping\"}'";

/// Sees, and judges, what passes between clients and servers of the five protocols.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct WireArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(Box<check::CheckArgs>),
    Decode(decode::Args),
    Load(Box<load::Args>),
    Page(page::Args),
    Proxy(Box<proxy::Args>),
    Replay(Box<replay::Args>),
    Send(Box<send::Args>),
}

/// Returns the protocol that is named, or that has the path of the URL.
fn protocol(named: Option<Protocol>, url: &str) -> Result<Protocol, Failure> {
    let of_url = || {
        let (_, rest) = url.split_once("://")?;
        Protocol::of_path(rest.get(rest.find('/')?..)?)
    };
    let unknown = || Failure::usage("the protocol is not known: add --protocol NAME");
    named.or_else(of_url).ok_or_else(unknown)
}

/// Returns what a server of a protocol is called, how one is started, and where its credentials come from.
const fn service(protocol: Protocol) -> Service {
    match protocol {
        Protocol::Snek => Service::SNEK,
        Protocol::Exoclaw => Service::EXOCLAW,
        Protocol::SmartHole => Service::SMARTHOLE,
        Protocol::ConnectOnion => Service::CONNECTONION,
        Protocol::Acolyte => Service::ACOLYTE,
    }
}

/// Creates a file that nobody else can read: frames may be private even without their secrets.
fn create(option: &str, file: &Path) -> Result<File, Failure> {
    let wrong = |error| Failure::usage(format_args!("{option} {}: {error}", file.display()));
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map_err(wrong)
}

/// Listens at an address.
async fn listen(address: SocketAddr) -> Result<Listener, Failure> {
    let bound = Listener::bind(address).await;
    bound.map_err(|error| cannot_listen(address, "--listen", &error))
}

/// Says that what goes to a server can be seen on the way.
fn warn_of_exposure(url: &str) {
    let dialer = WsDialer::new(url).ok();
    if let Some(host) = dialer.as_ref().and_then(WsDialer::exposed_host) {
        let host = printable(host);
        complain(format_args!(
            "warning: the connection to {host} is not encrypted"
        ));
    }
}

/// Fails if lines of a recording are not of a transcript.
fn judge(name: &str, bad: usize) -> Result<(), Failure> {
    let lines = match bad {
        0 => return Ok(()),
        1 => "1 line is",
        _ => &format!("{bad} lines are"),
    };
    Err(Failure::new(format_args!(
        "{name}: {lines} not of a transcript"
    )))
}

/// Opens a file that is read.
fn open(file: &Path) -> Result<File, Failure> {
    let wrong = |error| Failure::usage(format_args!("{}: {error}", file.display()));
    File::open(file).map_err(wrong)
}

/// Marks a recording as one that is still being written, for as long as it is open.
#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix marks files"))]
fn mark_written(file: &File) {
    #[cfg(unix)]
    // Without the mark, readers take what is missing for lost.
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
}

/// Returns whether a recording is still being written.
#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix marks files"))]
fn is_written(file: &File) -> bool {
    #[cfg(unix)]
    {
        let locked = rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockShared);
        locked == Err(rustix::io::Errno::WOULDBLOCK)
    }
    #[cfg(not(unix))]
    false
}

/// Runs a command.
///
/// # Errors
/// [`Failure`] if it did not do what it should.
///
/// # Cancel safety
/// Dropping the future ends what it does.
pub async fn run(args: WireArgs) -> Result<(), Failure> {
    match args.command {
        Command::Check(args) => check::check(*args).await,
        Command::Decode(args) => decode::run(args),
        Command::Load(args) => load::run(*args).await,
        Command::Page(args) => page::run(args).await,
        Command::Proxy(args) => proxy::run(*args).await,
        Command::Replay(args) => replay::run(*args).await,
        Command::Send(args) => send::run(*args).await,
    }
}
