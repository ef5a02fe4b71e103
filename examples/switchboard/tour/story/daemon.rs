//! The fourth hop, Acolyte: a coding agent with one folder, in which there is a poem.

use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::client::ClientConfig;
use acolyte_proto::net::{
    Client, Server, ServerHandle, ServerOptions, connect_with, dialer, link_config,
};
use futures_util::FutureExt;
use serde_json::json;
use switchboard::cli::Failure;
use switchboard::daemon::command::{CommandConfig, Commands, Confinement};
use switchboard::daemon::{Toolbox, Worker, Workspace};
use switchboard::screen::acolyte::Frames;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use super::hop::Hop;
use super::script::Script;
use crate::tour::patience::in_time;
use crate::tour::temp_dir::TempDir;

/// What clients have to show.
const KEY: &str = "0pen-sesam1";
const FILE: &str = "poem.txt";

/// The coding agent, and the gateway's client of it.
pub(super) struct Daemon {
    place: TempDir,
    client: Client,
    server: JoinHandle<()>,
    handle: ServerHandle,
}

/// Opens it. Its model pauses before it begins.
pub(super) async fn open(hop: &Hop, poem: &str, pause: Arc<Barrier>) -> Result<Daemon, Failure> {
    let place = TempDir::new("poem")?;
    place.write(FILE, poem)?;
    let script = Script {
        steps: &[
            ("file-read", |_| json!({ "path": FILE })),
            (
                "file-edit",
                |_| json!({ "path": FILE, "find": "Roses are red", "replace": "Roses are blue" }),
            ),
        ],
        answer: |said| said.last().cloned().unwrap_or_default(),
        pause: Some(pause),
    };
    let workspace = Workspace::open(place.path()).map_err(Failure::new)?;
    let no_commands = CommandConfig::default().with_confinement(Confinement::Off);
    let toolbox = Toolbox::new(Commands::new(no_commands));
    let worker = Worker::new(Arc::new(script), "script", workspace, toolbox);
    let key = ApiKey::new(KEY).map_err(Failure::new)?;
    let options = ServerOptions::new(Auth::key(key.clone()));
    let server = Server::bind("127.0.0.1:0", worker, options)
        .await
        .map_err(Failure::new)?;
    let (url, handle) = (server.url(), server.handle());
    hop.event(&format!("listens on {url}"));
    let server = tokio::spawn(server.run().map(drop));

    let config = ClientConfig::new(key);
    let dialer = dialer(&url, &config).map_err(Failure::new)?;
    let link = link_config().with_observer(hop.line(hop.name, Frames::default()));
    let (client, _, connection) = connect_with(dialer, config, link);
    tokio::spawn(connection.run());
    in_time("a line to the coding agent", client.ready())
        .await?
        .map_err(Failure::new)?;
    Ok(Daemon {
        place,
        client,
        server,
        handle,
    })
}

impl Daemon {
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The poem as it is now.
    pub(super) fn poem(&self) -> Result<String, Failure> {
        self.place.read(FILE)
    }

    pub(super) async fn close(self, within: Duration) -> Result<(), Failure> {
        self.client.drain(within).await;
        self.handle.drain(within).await;
        in_time("the end of the coding agent", self.server)
            .await?
            .map_err(Failure::new)
    }
}
