//! `switchboard bot remove`: removes users and channels of Snek servers on NATS.

use snek_proto::net::{ClusterBackend, ClusterError, ClusterOptions};

use crate::cli::{self, Failure};
use crate::commands::cluster::NatsArgs;

const EXAMPLES: &str = "\
Examples:
  switchboard bot remove --nats nats://10.0.0.1:4222 --user alice
  switchboard bot remove --nats nats://10.0.0.1:4222 --channel random --channel old";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A user to remove, by name; may be repeated. The user's connections are closed.
    #[arg(
        long = "user",
        value_name = "NAME",
        required_unless_present = "channels"
    )]
    users: Vec<String>,
    /// A channel to remove, by UID; may be repeated. Its members leave it. A server whose options name it puts it
    /// there again when it starts.
    #[arg(long = "channel", value_name = "UID")]
    channels: Vec<String>,
    #[command(flatten)]
    nats: NatsArgs,
}

pub(crate) async fn remove(args: Args) -> Result<(), Failure> {
    let Some(nats) = args.nats.connect().await? else {
        return Err(Failure::usage(
            "--nats is missing: only servers that share users and channels on NATS keep them",
        ));
    };
    let opened = ClusterBackend::open(nats, ClusterOptions::default()).await;
    let (backend, _) = opened.map_err(|error| cli::nats_failure(&error))?;
    for name in &args.users {
        report(&format!("user {name}"), backend.remove_user(name).await)?;
    }
    for uid in &args.channels {
        report(&format!("channel {uid}"), backend.remove_channel(uid).await)?;
    }
    Ok(())
}

/// Says what is removed.
fn report(what: &str, removed: Result<bool, ClusterError>) -> Result<(), Failure> {
    match removed {
        Ok(true) => cli::print_line(format_args!("removed the {what}")),
        Ok(false) => return Err(Failure::new(format_args!("there is no {what}"))),
        Err(ClusterError::Store(error)) => return Err(cli::nats_failure(&error)),
        Err(error) => return Err(Failure::usage(format_args!("the {what}: {error}"))),
    }
    Ok(())
}
