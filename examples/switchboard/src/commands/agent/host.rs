//! `switchboard agent host`: serves an agent.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use connectonion_proto::auth::{Address, InviteCodes};
use connectonion_proto::limits::MAX_USED_SIGNATURES;
use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
use connectonion_proto::net::{RuntimeOptions, Server, ServerOptions, http_config};
use connectonion_proto::storage::import;
use connectonion_proto::trust::{AccessControl, TrustLevel};
use rpc_core::Secret;
use rpc_core::net::Dialer as _;
use rpc_core::store::{Fsync, Store};

use super::home::Home;
use crate::agent::tools::tools;
use crate::agent::{Lists, SpentFile, Worker};
use crate::cli::{self, Failure, GOODBYE, Reach, Signals, TlsArgs, complain};
use crate::commands::choice;
use crate::commands::cluster::{LeaseArgs, NatsArgs, unless_failed};
use crate::daemon::Workspace;
use crate::fsync::FsyncArgs;
use crate::model::http::RequestPolicy;
use crate::model::options::ModelArgs;
use crate::model::scripted::Scripted;
use crate::{metrics, page};

/// The file of ConnectOnion's own hosts, which is read.
const RESULTS: &str = "session_results.jsonl";
/// How long agents may go on after Ctrl-C.
const DRAIN: Duration = Duration::from_secs(30);
/// How long the model may be silent, unless the user says otherwise.
const SILENCE: Duration = Duration::from_secs(190);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address to listen on; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = cli::address)]
    listen: SocketAddr,
    #[command(flatten)]
    reach: Reach,
    /// The agent's name.
    #[arg(long, value_name = "NAME", default_value = "agent")]
    name: String,
    #[command(flatten)]
    home: Home,
    /// The file of the agent's key, created if it is missing; with --nats all hosts of the agent need the same.
    /// Default: host.key in --home
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The folder of the agent's files, created if it is missing. Default: files in --home
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// The folder for files that are sent with a prompt. Default: uploads in --files
    #[arg(long, value_name = "FOLDER")]
    uploads: Option<PathBuf>,
    /// The file that keeps sessions across restarts; only one host at a time may use it, and with --nats none
    /// does. Sessions in session_results.jsonl in --home, of ConnectOnion's own hosts, are taken over.
    /// Default: sessions.redb in --home
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// How long to wait at the start for another host that has the file of --store, and is about to end.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = cli::duration)]
    wait: Duration,
    #[command(flatten)]
    fsync: FsyncArgs,
    /// How often a prompt is run again whose host ended during its run, when its client comes back. What the
    /// agent had done may be done twice. Default: 3 with --nats, else 0
    #[arg(long, value_name = "N")]
    reruns: Option<u32>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    nats: NatsArgs,
    #[command(flatten)]
    lease: LeaseArgs,
    /// With --nats: the URL at which the other hosts reach this one, as wss://NAME or ws://HOST:PORT, to pass
    /// clients on. Default: the address of --listen, unless that is 0.0.0.0 or [::], or a loopback address and
    /// NATS is on another machine.
    #[arg(long, value_name = "URL", help_heading = "Cluster", hide = cfg!(not(feature = "nats")))]
    advertise: Option<String>,
    /// With --nats: trust other hosts with a certificate of these issuers, or with one of these, and no others: a
    /// PEM file.
    #[arg(long, value_name = "FILE", help_heading = "Cluster", hide = cfg!(not(feature = "nats")))]
    ca: Option<PathBuf>,
    #[command(flatten)]
    pings: cli::Pings,
    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Access")]
struct TrustArgs {
    /// Who may connect. With 'careful', strangers need an invite code if there is one; 'strict' admits only
    /// addresses of --allow and of whitelist.txt in --home. Default on a loopback address: open.
    #[arg(long, value_parser = choice([
        ("open", "Everyone", TrustLevel::Open),
        ("careful", "Strangers with an invite code, and known addresses", TrustLevel::Careful),
        ("strict", "Allowed addresses only", TrustLevel::Strict),
    ]))]
    trust: Option<TrustLevel>,
    /// Require a signature from everyone. Always on with 'strict', with lists or invite codes, and with
    /// --public unless --unsigned is given.
    #[arg(long)]
    signed: bool,
    /// With --public, accept callers without a signature where --trust admits them.
    #[arg(long, requires = "public", conflicts_with = "signed")]
    unsigned: bool,
    /// An invite code that admits strangers with 'careful'; may be repeated. Prefer the variable
    /// AGENT_INVITE: other users can see command lines.
    #[arg(long = "invite", value_name = "CODE")]
    invites: Vec<Secret>,
    /// An address to admit; may be repeated.
    #[arg(long = "allow", value_name = "ADDRESS")]
    allowed: Vec<Address>,
    /// An origin of web pages that may connect, as SCHEME://HOST or SCHEME://HOST:PORT; may be repeated.
    /// Programs other than browsers, and pages of this machine at any port, may always connect.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
}

impl TrustArgs {
    fn level(&self) -> TrustLevel {
        self.trust.unwrap_or(TrustLevel::Open)
    }

    /// The invite codes of the options, else of the environment.
    fn codes(&self) -> Result<Vec<Secret>, Failure> {
        let given = self.invites.iter();
        // A blank one is refused with the others.
        let given = given.map(|code| {
            let code = cli::secret_text("--invite", code.expose())?;
            Ok(code.unwrap_or_else(|| Secret::from("")))
        });
        match given.collect::<Result<Vec<_>, Failure>>()? {
            none if none.is_empty() => Ok(cli::secret("AGENT_INVITE")?.into_iter().collect()),
            given => Ok(given),
        }
    }
}

pub(crate) async fn host(args: &Args) -> Result<(), Failure> {
    metrics::install()?;
    let _ = cli::raise_file_limit(u64::MAX);
    let address = args.listen;
    let is_public = check_reach(args)?;
    let (agent, mut options, place) = agent(args, is_public)?;
    if !args.nats.is_on() {
        options.runtime.store = Some(store(args).await?);
    }
    let (options, cluster) = join(args, options).await?;
    let pages = cli::web_pages(&options.http.guards);
    if is_public {
        warn_of_reach(args);
    }
    let host = Server::bind(address, agent, options)
        .await
        .map_err(|error| match error.kind() {
            // Of the cluster.
            ErrorKind::InvalidInput => Failure::usage(format_args!("--advertise: {error}")),
            _ => cli::cannot_listen(address, "--listen", &error),
        })?;
    let signals = Signals::listen();
    let (handle, runtime) = (host.handle(), host.runtime());
    cli::announce(format_args!(
        "listening on {} (WebSocket: {}, address: {})",
        args.tls.url(&format!("http://{}/", host.local_addr())),
        args.tls.url(&host.url()),
        runtime.address()
    ));
    cli::remark(format_args!("model: {place}"));
    cli::remark(pages);
    let serving = signals.serve(host.run(), handle.drain(DRAIN + GOODBYE));
    if let Some(cluster) = cluster {
        return unless_failed(serving, cluster.failed()).await;
    }
    serving.await
}

/// Opens what keeps sessions, with what ConnectOnion's own hosts have left.
async fn store(args: &Args) -> Result<Arc<dyn Store>, Failure> {
    let home = args.home.folder()?;
    let path = args.store.clone();
    let path = path.unwrap_or_else(|| home.join("sessions.redb"));
    let fsync = args.fsync.fsync.unwrap_or(Fsync::Always);
    let opened = crate::fsync::open(&path, fsync, args.wait).await;
    let opened = opened.map_err(|error| cli::cannot_open("--store", &path, &error))?;
    let store: Arc<dyn Store> = Arc::new(opened);
    let results = home.join(RESULTS);
    let imported = import(&store, &results).await;
    let imported =
        imported.map_err(|error| Failure::new(format_args!("{}: {error}", results.display())))?;
    if let Some(imported) = imported {
        complain(format_args!("{}: {imported}", results.display()));
    }
    Ok(store)
}

/// Makes the host one of several, if there is a NATS server for them.
async fn join(
    args: &Args,
    mut options: ServerOptions,
) -> Result<(ServerOptions, Option<Cluster>), Failure> {
    let Some(nats) = args.nats.connect().await? else {
        return Ok((options, None));
    };
    let mut config = ClusterOptions {
        lease: args.lease.config(None),
        advertise: args.advertise.clone(),
        ..ClusterOptions::default()
    };
    config.max_bytes = args.lease.nats_bytes;
    let address = *options.runtime.access.host();
    let cluster = Cluster::open(nats, address, config).await;
    let cluster = cluster.map_err(|error| cli::nats_failure(&error))?;
    if let Some(tls) = cli::trusted("--ca", args.ca.as_deref())? {
        cluster.dial_with(move |dialer| {
            let dialer = dialer.with_tls(tls.clone());
            async move { dialer.dial().await }
        });
    }
    options.runtime.cluster = Some(cluster.clone());
    Ok((options, Some(cluster)))
}

/// Whether other machines can reach the host, which must be asked for.
fn check_reach(args: &Args) -> Result<bool, Failure> {
    let address = args.listen;
    let is_public = args.reach.check(address)?;
    if is_public && args.trust.trust.is_none() {
        return Err(Failure::usage(format_args!(
            "other machines can reach {address}: choose who may connect with --trust open, careful or strict"
        )));
    }
    Ok(is_public)
}

fn warn_of_reach(args: &Args) {
    args.reach.warn(&args.tls);
    if args.trust.level() == TrustLevel::Open {
        complain("warning: with --trust open, anyone who can reach this host may use the agent");
    }
    if args.trust.unsigned {
        complain("warning: with --unsigned, callers need not prove who they are");
    }
}

/// The agent, and how it is served.
fn agent(args: &Args, is_public: bool) -> Result<(Worker, ServerOptions, String), Failure> {
    let home = args.home.folder()?;
    let key = args.home.key(args.key.as_deref(), "host.key")?;
    let files = args.files.clone().unwrap_or_else(|| home.join("files"));
    let folder = std::fs::create_dir_all(&files).and_then(|()| Workspace::open(&files));
    let cannot = |option: &str, path: &Path, error: &io::Error| {
        let why = format!("{option} {}: {error}", path.display());
        cli::cannot_write(why, option, error.kind())
    };
    let folder = folder.map_err(|error| cannot("--files", &files, &error))?;
    let uploads = args.uploads.clone();
    if let Some(uploads) = &uploads {
        std::fs::create_dir_all(uploads).map_err(|error| cannot("--uploads", uploads, &error))?;
    }
    let uploads = uploads.unwrap_or_else(|| folder.path().join("uploads"));
    let scripted = Scripted::default().with_commands(true);
    let policy = RequestPolicy::default().with_silence(SILENCE);
    let (model, config) = args.model.build(scripted, policy)?;
    let place = config.place();
    let name = folder.path().file_name().unwrap_or_default();
    let about = [
        ("model", (*config.model).into()),
        ("folder", name.to_string_lossy().into()),
    ];
    let mut worker = Worker::new(model, config.model, tools(Some(&folder)));
    worker.folder = Some(folder);
    worker.limits.tokens = config.context_tokens;
    if let Some(system) = &args.model.system {
        worker.system.clone_from(system);
    }

    let lists = Arc::new(Lists::open(&home, &args.trust.allowed)?);
    let spent = SpentFile::open(&home);
    let (spent, used) = spent.map_err(|error| cannot("--home", &home, &error))?;
    let is_signed = args.trust.signed || is_public && !args.trust.unsigned;
    let access = access(&args.trust, is_signed, *key.address(), &lists)?.with_spent(used);
    let reruns = args.reruns.unwrap_or(if args.nats.is_on() { 3 } else { 0 });
    let mut runtime = RuntimeOptions::with_access(access);
    runtime.hub.max_reruns = reruns;
    runtime.uploads = uploads;
    let kept = Arc::clone(&lists);
    runtime.on_trust = Some(Box::new(move |book| kept.keep(book)));
    runtime.trust_source = Some(Box::new(move || lists.changed()));
    runtime.on_spent = Some(Box::new(move |used| {
        if let Err(error) = spent.keep(used) {
            complain(format_args!(
                "warning: a used signature is not kept, and may count once more after a restart: {error}"
            ));
        }
    }));
    let mut http = http_config();
    http.guards = cli::guards(http.guards, &args.reach.hosts, &args.trust.origins)?;
    let http = args.tls.http(metrics::guard(http))?;
    let http = http.with_http(|request, _| async move {
        let metrics = metrics::respond(&request);
        metrics.unwrap_or_else(|| page::agent::respond(request.method(), request.uri().path()))
    });
    let mut options = ServerOptions::with_runtime(runtime);
    options.name.clone_from(&args.name);
    options.about = about
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect();
    options.tools = worker.tools().map(ToOwned::to_owned).collect();
    options.http = http;
    options.shutdown_timeout = DRAIN;
    options.connection.keep_alive = args.pings.over(options.connection.keep_alive);
    Ok((worker, options, place))
}

fn access(
    args: &TrustArgs,
    is_signed: bool,
    host: Address,
    lists: &Lists,
) -> Result<AccessControl, Failure> {
    let codes = InviteCodes::new(args.codes()?).map_err(|error| {
        Failure::usage(format_args!(
            "{error} (it comes from --invite or AGENT_INVITE)"
        ))
    })?;
    let mut access = AccessControl::new(host, args.level()).with_book(lists.book());
    if is_signed {
        // Not for everyone: clients of the specification repeat a signature within a second.
        access = access
            .require_signatures()
            .with_used_signatures(MAX_USED_SIGNATURES);
    }
    Ok(access.with_invites(codes))
}
