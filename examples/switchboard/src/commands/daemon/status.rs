//! `switchboard daemon status`: what a server is and what it has to do, or the outcome of a task.

use acolyte_proto::id::TaskId;
use acolyte_proto::net::Client;

use crate::chat::daemon::{Server, status_lines};
use crate::cli::{self, Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A task to print the state of.
    task: Option<TaskId>,
    #[command(flatten)]
    server: Server,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn status(args: &Args) -> Result<(), Failure> {
    let shown = print_status(args).await;
    shown.inspect_err(|failure| failure.report(args.json))
}

async fn print_status(args: &Args) -> Result<(), Failure> {
    if let Some(id) = &args.task {
        let mut connection = args.server.open(None).await?;
        let outcome = match connection.client() {
            Some(client) => task(client, id, args).await,
            None => Err(Failure::usage(
                "the state of a task needs a WebSocket: leave --sse out",
            )),
        };
        connection.close().await;
        return outcome;
    }
    let status = args.server.http()?.status().await;
    let status = status.map_err(|error| args.server.unreachable(&error))?;
    if args.json {
        return json(&*status);
    }
    for line in status_lines(&status) {
        cli::print_line(line);
    }
    Ok(())
}

async fn task(client: &Client, id: &TaskId, args: &Args) -> Result<(), Failure> {
    let task = client.task_status(id).await;
    let task = task.map_err(|error| args.server.unreachable(&error))?;
    let task = task.ok_or_else(|| {
        Failure::new(format_args!(
            "the server does not know the task {id}: it keeps the last 1,000, until it ends"
        ))
    })?;
    match args.json {
        true => json(&task)?,
        false => cli::print_line(format_args!("{}: {}", task.id, task.state.name())),
    }
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    cli::print_line(serde_json::to_string(value).map_err(Failure::new)?);
    Ok(())
}
