//! `switchboard daemon serve`: serves a coding agent on a folder.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acolyte_proto::auth::Auth;
use acolyte_proto::event::ChecklistTag;
use acolyte_proto::limits::DEFAULT_PORT;
use acolyte_proto::net::{Server, ServerOptions, http_config};
use rpc_core::Secret;
use rpc_core::store::{Fsync, Store};
use rpc_core::text::{beginning, hex};
use sha2::{Digest as _, Sha256};

use super::tool_options::{ToolArgs, Tools};
use crate::chat::daemon::api_key;
use crate::chat::terminal::state_folder;
use crate::cli::{self, Failure, GOODBYE, Signals, TlsArgs, complain};
use crate::commands::choice;
use crate::daemon::{Worker, worker};
use crate::fsync::FsyncArgs;
use crate::gateway::store::make_folder;
use crate::model::options::ModelArgs;
use crate::model::provider::Provider;
use crate::model::scripted::Scripted;

/// How long chats may go on after Ctrl-C.
const DRAIN: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(mut_arg("model_timeout", |arg| arg.help("How long the model may be silent. Default: 120s")))]
pub(crate) struct Args {
    /// The address to listen on; port 0 takes a free port.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value_t = SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)),
        value_parser = cli::address
    )]
    listen: SocketAddr,
    /// The folder to work in. The agent reads and writes nothing outside of it; clients that ask for another
    /// folder are refused.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    workspace: PathBuf,
    /// The key that clients must send. Prefer the variable ACOLYTE_API_KEY: other users can see command lines.
    #[arg(long, value_name = "KEY")]
    api_key: Option<Secret>,
    /// An origin of web pages that may connect, as SCHEME://HOST or SCHEME://HOST:PORT; may be repeated.
    /// Default: none, not even pages of this machine. Programs other than browsers may always connect.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// The name of checklist events. Every released client knows 'checklist'; newer ones 'tasklist'.
    #[arg(long, default_value = "checklist", value_parser = choice([
        ("checklist", "The name in the specification", ChecklistTag::Checklist),
        ("tasklist", "The newer name", ChecklistTag::Tasklist),
    ]))]
    list_name: ChecklistTag,
    /// The file that keeps sessions across restarts, and what their changes can be undone with; only one server at
    /// a time may use it. Default: one for the workspace in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    #[command(flatten)]
    fsync: FsyncArgs,
    /// Send nothing more for an aborted chat, as the original server does.
    #[arg(long)]
    silent_aborts: bool,
    #[command(flatten)]
    tools: ToolArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    pings: cli::Pings,
    #[command(flatten)]
    tls: TlsArgs,
}

pub(crate) async fn serve(args: &Args) -> Result<(), Failure> {
    // No more than it needs: its commands have the same limit.
    let _ = cli::raise_file_limit(cli::SOME_FILES);
    let tools = Tools::open(&args.workspace, &args.tools).await?;
    let scripted = Scripted::default().with_commands(true).with_echo(true);
    let (model, config) = args.model.build(scripted, worker::policy())?;
    let place = config.place();
    let (workspace, words) = (tools.workspace.path().to_owned(), tools.words());
    let reach_servers = tools.reach_servers();
    let store = store(args, tools.workspace.path()).await?;
    let remarks = tools.remarks;
    let mut worker = Worker::new(model, config.model, tools.workspace, tools.toolbox);
    if let Some(store) = store {
        worker = worker.with_store(store);
    }
    worker.limits.tokens = config.context_tokens;
    if let Some(system) = &args.model.system {
        worker.system.clone_from(system);
    }
    if args.model.provider() != Provider::Scripted {
        worker.provider = args.model.provider().as_str();
    }
    let address = args.listen;
    let mut options = options(args)?;
    if reach_servers && options.auth.is_open() {
        options.admin_shutdown = false;
        cli::remark(
            "without a key, and with commands that reach it, this server is not ended by requests",
        );
    }
    let pages = cli::web_pages(&options.http.guards);
    let server = Server::bind(address, worker, options).await;
    let server = server.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Failure::usage(format_args!("{error}; set ACOLYTE_API_KEY")),
        _ => cli::cannot_listen(address, "--listen", &error),
    })?;

    let signals = Signals::listen();
    let (handle, url) = (server.handle(), args.tls.url(&server.url()));
    cli::announce(format_args!(
        "listening on {url} (workspace: {}, {words})",
        workspace.display()
    ));
    remarks.iter().for_each(cli::remark);
    cli::remark(format_args!("model: {place}"));
    cli::remark(pages);
    // A client may end it, too.
    signals
        .serve(server.run(), handle.drain(DRAIN + GOODBYE))
        .await
}

/// Opens what keeps sessions. Without a place for it, or beside another server of the workspace, they are not kept.
async fn store(args: &Args, workspace: &Path) -> Result<Option<Arc<dyn Store>>, Failure> {
    let fsync = args.fsync.fsync.unwrap_or(Fsync::Always);
    let open = async |path: &Path| crate::fsync::open(path, fsync, Duration::ZERO).await;
    if let Some(path) = &args.store {
        let opened = open(path).await;
        let opened = opened.map_err(|error| cli::cannot_open("--store", path, &error))?;
        return Ok(Some(Arc::new(opened)));
    }
    let opened = async {
        let folder = state_folder().ok_or_else(|| "there is no HOME".to_owned())?;
        let digest = hex(&Sha256::digest(workspace.as_os_str().as_encoded_bytes()));
        let path = folder.join(format!("daemon-{}.redb", beginning(&digest, 16)));
        make_folder(&folder).map_err(|it| it.to_string())?;
        open(&path).await.map_err(|it| it.to_string())
    };
    match opened.await {
        Ok(store) => Ok(Some(Arc::new(store))),
        Err(why) => {
            complain(format_args!(
                "warning: sessions end with this server: {why}; '--store FILE' keeps them"
            ));
            Ok(None)
        }
    }
}

fn options(args: &Args) -> Result<ServerOptions, Failure> {
    let auth = api_key(args.api_key.as_ref())?.map_or_else(Auth::open, Auth::key);
    if auth.is_guessable() {
        complain(format_args!("warning: {}", cli::guessable("the API key")));
    }
    let mut http = http_config();
    http.guards = cli::guards(http.guards, &[], &args.origins)?;
    let mut options = ServerOptions::new(auth);
    options.http = args.tls.http(http)?;
    let connection = &mut options.connection;
    connection.checklist = args.list_name;
    connection.silent_aborts = args.silent_aborts;
    connection.keep_alive = args.pings.over(connection.keep_alive);
    options.shutdown_timeout = DRAIN;
    Ok(options)
}
